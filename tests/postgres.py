"""A private PostgreSQL server that lives exactly as long as the process that started it.

By hand: `python -m tests.postgres COMMAND…` runs a command with DATABASE_URL pointing at one.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import psycopg

from config.demo.guard import die_with_parent
from config.demo.supervisor import free_port
from tests.programs import ensure_postgres

START_SECONDS = 60.0
STOP_SECONDS = 20.0
LONGEST_SOCKET_PATH = 107


class NotRunning(Exception):
    """The server could not be started; the message holds what it said."""


def runs_as() -> int | None:
    """The user to run the server as; it refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise NotRunning("PostgreSQL does not run as root, and there is no user postgres or nobody.")


def ask_to_stop(number: int, frame: FrameType | None) -> None:
    """Make SIGTERM unwind the stack, so that the server is stopped on the way out."""
    raise SystemExit(128 + number)


@contextmanager
def server(**options: str) -> Iterator[str]:
    """A running server's DATABASE_URL; options are settings, as in `server(fsync="off")`."""
    user = runs_as()
    with tempfile.TemporaryDirectory(prefix="goodstanding-postgres-") as name:
        folder = Path(name)
        password = secrets.token_urlsafe(24)
        programs = reachable(ensure_postgres(), folder, user)
        (folder / "password").write_text(password)
        if user is not None:
            for path in (folder, folder / "password"):
                os.chown(path, user, -1)
        initialise(programs, folder, user)
        port = free_port()
        process = start(programs, folder, user, {"port": str(port), **options})
        url = f"postgresql://goodstanding:{password}@127.0.0.1:{port}/postgres"
        try:
            wait_until_ready(url, process, folder / "server.log")
            yield url
        finally:
            stop(process)


def reachable(programs: Path, folder: Path, user: int | None) -> Path:
    """The programs where the server's user can run them.

    A wheel may lie below a home folder that only root can enter. It runs from anywhere, as long
    as its libraries stay beside it.
    """
    if user is None or not programs.is_relative_to(sys.prefix):
        return programs
    packages = programs.parents[2]
    libraries = f"{programs.parents[1].name}.libs"
    for part in (programs.parent.relative_to(packages), Path(libraries)):
        shutil.copytree(packages / part, folder / part, symlinks=True)
    return folder / programs.relative_to(packages)


def initialise(programs: Path, folder: Path, user: int | None) -> None:
    """Create the cluster; every connection, by socket or TCP, needs the password."""
    arguments = ["--auth=scram-sha-256", "--pwfile=password", "--username=goodstanding"]
    locale = ["--encoding=UTF8", "--locale=C", "--no-sync"]
    done = subprocess.run(
        [programs / "initdb", "--pgdata=data", *arguments, *locale],
        cwd=folder,
        user=user,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotRunning(f"initdb failed: {done.stderr or done.stdout}")


def start(
    programs: Path, folder: Path, user: int | None, options: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start the server; the kernel shuts it down when this process dies, even by SIGKILL."""
    sockets = folder if len(f"{folder}/.s.PGSQL.65535") <= LONGEST_SOCKET_PATH else ""
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": str(sockets),
        "max_connections": "100",
        **options,
    }
    with (folder / "server.log").open("wb") as log:
        return subprocess.Popen(
            [programs / "postgres", "-D", "data", *(f"-c{k}={v}" for k, v in settings.items())],
            cwd=folder,
            user=user,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us; we stop the server after its clients
            # SIGQUIT is its immediate shutdown. It is set after the change of user clears it.
            preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGQUIT),
        )


def wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the server takes connections."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise NotRunning(f"PostgreSQL did not start: {log.read_text(errors='replace')}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Shut the server down without waiting for its clients, and be sure that it is gone."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)
        process.wait()


def main(command: list[str]) -> int:
    """Run a command on a server of its own; its exit code."""
    signal.signal(signal.SIGTERM, ask_to_stop)
    with server() as url:
        done = subprocess.run(
            command,
            env={**os.environ, "DATABASE_URL": url},
            preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
            check=False,
        )
        return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
