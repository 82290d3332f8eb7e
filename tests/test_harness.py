"""The promises of conftest.py, on which every other test relies."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import DatabaseError, connection

from tests.config.test_supervisor import wait_until
from tests.conftest import LEFT_LOCALHOST, LeftLocalhost
from tests.postgres import server
from tests.run import Count

ROOT = Path(__file__).parent.parent
WRITE_ONCE = {
    "sqlite": [
        "CREATE TRIGGER once BEFORE DELETE ON auth_group"
        " BEGIN SELECT RAISE(ABORT, 'write once'); END",
    ],
    "postgresql": [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'write once'; END $$",
        "CREATE TRIGGER once BEFORE DELETE ON auth_group FOR EACH ROW EXECUTE FUNCTION refuse()",
        "CREATE TRIGGER once_all BEFORE TRUNCATE ON auth_group EXECUTE FUNCTION refuse()",
    ],
}
WRITE_MANY = {
    "sqlite": ["DROP TRIGGER once"],
    "postgresql": ["DROP FUNCTION refuse CASCADE"],
}


@pytest.fixture
def write_once_groups(transactional_db: None) -> Iterator[None]:
    """Groups guarded as the ledger is."""
    execute(WRITE_ONCE)
    yield
    execute(WRITE_MANY)


def execute(statements: dict[str, list[str]]) -> None:
    with connection.cursor() as cursor:
        for statement in statements[connection.vendor]:
            cursor.execute(statement)


@pytest.mark.usefixtures("write_once_groups")
def test_a_flush_empties_a_write_once_table_and_leaves_it_write_once() -> None:
    Group.objects.create(name="before")

    call_command("flush", interactive=False, verbosity=0)

    assert not Group.objects.exists()
    after = Group.objects.create(name="after")
    with pytest.raises(DatabaseError, match="write once"):
        after.delete()


def test_another_process_sees_the_test_database(database_url: str) -> None:
    Group.objects.create(name="seen from outside")
    ask = "from django.contrib.auth.models import Group; print(Group.objects.get().name)"

    answer = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", ask],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout == "seen from outside\n"


def test_the_settings_are_those_of_a_fresh_site() -> None:
    assert not settings.DEBUG
    assert not settings.DATA_DIR.is_relative_to(ROOT)
    assert Path(os.environ["DATA_DIR"]) == settings.DATA_DIR


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "portal.example"])
def test_leaving_localhost_is_refused_and_remembered(host: str) -> None:
    with pytest.raises(LeftLocalhost, match="tried to reach"):
        socket.create_connection((host, 443), timeout=1)

    assert [host] == LEFT_LOCALHOST
    LEFT_LOCALHOST.clear()  # or this very test would fail


def test_an_address_cannot_be_reached_without_looking_it_up_either() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, pytest.raises(LeftLocalhost):
        probe.sendto(b"", ("192.0.2.1", 53))

    LEFT_LOCALHOST.clear()


def test_localhost_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        socket.create_connection(("localhost", port), timeout=5).close()


def test_a_private_server_takes_settings_and_is_gone_afterwards() -> None:
    with server(fsync="off") as url, psycopg.connect(url) as database:
        setting = database.execute("SHOW fsync").fetchone()

    assert setting == ("off",)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the server's user may enter, which pytest's own is not for root's server."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_private_server_does_not_outlive_a_killed_owner(open_folder: Path) -> None:
    told = open_folder / "url"
    tell = f"import os; open({str(told)!r}, 'w').write(os.environ['DATABASE_URL'])"
    wait = "import time; time.sleep(600)"
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres", sys.executable, "-c", f"{tell}; {wait}"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(open_folder)},
    )
    try:
        assert wait_until(lambda: text_of(told) != "")
        url = text_of(told)
        assert takes_connections(url)
    finally:
        owner.kill()
        owner.wait()

    assert wait_until(lambda: not takes_connections(url))


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def takes_connections(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def test_the_sum_leaves_out_what_was_skipped(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>'
    )
    count = Count()

    count.add(report)
    count.add(tmp_path / "of a run that broke.xml")

    assert (count.passed, count.failed) == (3, 3)
