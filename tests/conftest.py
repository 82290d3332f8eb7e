"""What holds for every test: localhost only, databases that can be emptied, one browser."""

import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.operations import BaseDatabaseOperations

from tests.programs import NO_CHROMIUM, find_chromium

pytest_plugins = ["tests.lanes"]

# --- Settings -----------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Set what only tests want; tests/environment.py has set what the settings read."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Nobody has collected the static files, so there is no manifest to look names up in.
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    keep_to_localhost()
    flush = flush_in_spite_of_triggers(BaseDatabaseOperations.execute_sql_flush)
    setattr(BaseDatabaseOperations, "execute_sql_flush", flush)  # noqa: B010 - mypy forbids "="


# --- Localhost only -----------------------------------------------------------------------------

LEFT_LOCALHOST: list[str] = []


class LeftLocalhost(RuntimeError):
    """A test tried to reach another machine."""


def is_local(host: object) -> bool:
    """Whether a host is this machine; names are refused because looking them up leaves it."""
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def refuse_others(host: object) -> None:
    """Raise for another machine, and remember it in case somebody catches that."""
    if not is_local(host):
        LEFT_LOCALHOST.append(str(host))
        raise LeftLocalhost(f"Tests stay on localhost; this one tried to reach {host!r}.")


def keep_to_localhost() -> None:
    """Guard every way in which Python code reaches another machine."""
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_others(host)
        return look_up(host, *args, **kwargs)

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: socket.socket, *args: Any) -> Any:
            if self.family != socket.AF_UNIX:
                refuse_others(args[-1][0])  # the address comes last in connect and in sendto
            return original(self, *args)

        return call

    socket.getaddrinfo = getaddrinfo
    for name in ("connect", "connect_ex", "sendto"):
        setattr(socket.socket, name, guarded(getattr(socket.socket, name)))


@pytest.fixture(autouse=True)
def _stays_on_localhost() -> Iterator[None]:
    """Fail a test that left localhost even if the code under test swallowed the refusal."""
    LEFT_LOCALHOST.clear()
    yield
    assert not LEFT_LOCALHOST, f"left localhost for {LEFT_LOCALHOST}"


# --- Databases ----------------------------------------------------------------------------------

Flush = Callable[[BaseDatabaseOperations, Iterable[str]], None]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Keep SQLite in a file, as in production: other processes and threads must see it."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(settings.DATA_DIR / "test.sqlite3")


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """The test database's DATABASE_URL, for a process that a test starts."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{database['NAME']}"
    user = f"{database['USER']}:{database['PASSWORD']}"
    return f"postgresql://{user}@{database['HOST']}:{database['PORT']}/{database['NAME']}"


def flush_in_spite_of_triggers(flush: Flush) -> Flush:
    """Empty the tables between tests although triggers make some of them write-once."""

    def execute_sql_flush(self: BaseDatabaseOperations, sql_list: Iterable[str]) -> None:
        with transaction.atomic(using=self.connection.alias), triggers_off(self.connection):
            flush(self, [truncate_unlisted(sql) for sql in sql_list])

    return execute_sql_flush


def truncate_unlisted(sql: str) -> str:
    """Let PostgreSQL empty the tables that Django does not list but that refer to ours.

    knox's own token table is one: it exists although our model stands in its place.
    """
    lists_tables = sql.startswith("TRUNCATE") and "CASCADE" not in sql
    return sql.replace(";", " CASCADE;") if lists_tables else sql


@contextmanager
def triggers_off(database: BaseDatabaseWrapper) -> Iterator[None]:
    """No trigger fires inside; on the way out each is as it was."""
    with database.cursor() as cursor:
        if database.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
            yield
            cursor.execute("SET LOCAL session_replication_role = origin")
            return
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {database.ops.quote_name(name)}")
        yield
        for _, sql in triggers:
            cursor.execute(sql)


# --- The browser --------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one way to leave the browser tests out; it shows in the summary."""
    parser.addoption("--no-browser", action="store_true", help="skip tests that need a browser")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip browser tests when told to."""
    if config.getoption("--no-browser"):
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.skip(reason="--no-browser"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let Django work in the thread where Playwright's event loop runs.

    The loop outlives the browser test, so this must hold for the whole session.
    """
    if any(item.get_closest_marker("browser") for item in session.items):
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


@pytest.fixture(scope="session")
def base_url() -> None:
    """Stands for pytest-base-url's own, which this pytest warns about; we open full addresses."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Start the machine's own Chromium."""
    executable = find_chromium()
    if not executable:
        pytest.fail(NO_CHROMIUM)
    # Chromium's sandbox refuses to work for root.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    arguments = [*browser_type_launch_args.get("args", []), *sandbox]
    return {**browser_type_launch_args, "executable_path": executable, "args": arguments}
