"""Runs several programs as one: they start in order, and they end together.

Each program runs in a session of its own under a guard (`guard.py`), so that no process is left
behind however the end comes: Ctrl-C, SIGTERM, SIGKILL of us, of a guard, of a program or of the
leader of a program's workers. What a program writes goes to `<logs>/<name>.log`.
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn, Self

from compliance.errors import DomainError
from config.demo.guard import kill, session_members

GUARD = Path(__file__).with_name("guard.py")
POLL_SECONDS = 0.1
GUARD_SECONDS = 5.0
TAIL_LINES = 15


class NotStarted(DomainError):
    """A program could not be started, or was not ready in time."""

    code = "not_started"


class ProgramEnded(DomainError):
    """A program that should run for as long as we do has ended."""

    code = "program_ended"


def at_once() -> bool:
    """The readiness of a program that nobody has to wait for."""
    return True


@dataclass(frozen=True)
class Program:
    """One program: what to run, and how to know that it is ready."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)  # on top of our own
    ready: Callable[[], bool] = at_once
    ready_within: float = 30.0
    port: int | None = None  # must be free before we start
    patience: float = 10.0  # between SIGTERM and SIGKILL


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether we could listen on this port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def listens(port: int) -> bool:
    """Whether something accepts connections on this port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(port: int, path: str) -> bool:
    """Whether a web server on this port answers this path without a fault of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def ask_to_stop(number: int, frame: FrameType | None) -> None:
    """Make SIGTERM and SIGHUP look like Ctrl-C: one way to be asked."""
    raise KeyboardInterrupt


class Guarded:
    """A program that was started, with its guard."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        with log.open("wb") as output:
            self.guard = subprocess.Popen(  # noqa: S603 - the caller's own programs
                # -I and -S: the guard needs no packages and starts in a few milliseconds.
                [sys.executable, "-I", "-S", GUARD, str(program.patience), *program.argv],
                env={**os.environ, **program.env},
                stdin=subprocess.PIPE,  # closed by the kernel when we die
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal reaches us alone
            )

    @property
    def ended(self) -> bool:
        """Whether the program and its guard are gone."""
        return self.guard.poll() is not None

    def ask_to_stop(self) -> None:
        """Let the program finish what it is at."""
        if not self.ended:
            self.guard.terminate()

    def kill(self) -> None:
        """End the program and everything it started, now."""
        if self.guard.stdin:
            self.guard.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.guard.wait(GUARD_SECONDS)
        # A guard that was killed itself could not clear up; its session is still known.
        kill(session_members(self.guard.pid))
        self.guard.wait()

    def last_words(self) -> str:
        """The end of the log, for a message."""
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join([f"The end of {self.log}:", *(f"  {line}" for line in lines)])


class Supervisor:
    """Starts programs and ends them together; use it with `with`.

    Ctrl-C, SIGTERM and SIGHUP end the block wherever it is, without an error; afterwards
    `asked_to_stop` says so.
    """

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.asked_to_stop = False
        self.guarded: list[Guarded] = []

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        self._handlers = {
            number: signal.signal(number, ask_to_stop)
            for number in (signal.SIGTERM, signal.SIGHUP)
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self.asked_to_stop = isinstance(error, KeyboardInterrupt)
        self.stop()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        return self.asked_to_stop

    def start(self, program: Program) -> None:
        """Start a program and wait until it is ready."""
        if program.port is not None and not is_free(program.port):
            raise NotStarted(
                f"Port {program.port} is taken, and {program.name} needs it."
                " Stop what uses it, or choose another port with --port."
            )
        guarded = Guarded(program, self.logs / f"{program.name}.log")
        self.guarded.append(guarded)
        deadline = time.monotonic() + program.ready_within
        while not program.ready():
            if guarded.ended:
                raise NotStarted(
                    f"{program.name} ended before it was ready. {guarded.last_words()}"
                )
            if time.monotonic() > deadline:
                raise NotStarted(
                    f"{program.name} was not ready within {program.ready_within:g} seconds."
                    f" {guarded.last_words()}"
                )
            time.sleep(POLL_SECONDS)

    def check(self) -> None:
        """Raise when a program has ended; call it now and then while you do other work."""
        for guarded in self.guarded:
            if guarded.ended:
                raise ProgramEnded(
                    f"{guarded.program.name} has ended (exit code {guarded.guard.returncode}),"
                    f" so everything else is stopped. {guarded.last_words()}"
                )

    def wait(self) -> NoReturn:
        """Wait until somebody asks us to stop; raise when a program has ended."""
        while True:
            self.check()
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Ask every program to stop, and kill what has not after its patience.

        A second Ctrl-C ends the waiting.
        """
        # The guards keep their programs' patience; the margin is for a guard that hangs itself.
        patience = max((guarded.program.patience for guarded in self.guarded), default=0.0)
        deadline = time.monotonic() + patience + GUARD_SECONDS
        with suppress(KeyboardInterrupt):
            for guarded in self.guarded:
                guarded.ask_to_stop()
            while self._any_left() and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS / 10)
        for guarded in self.guarded:
            guarded.kill()
        self.guarded.clear()

    def _any_left(self) -> bool:
        return not all(guarded.ended for guarded in self.guarded)
