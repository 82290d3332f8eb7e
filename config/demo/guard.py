"""Runs one program so that nothing it ever starts outlives it, its guard or our supervisor.

Usage: `python -I -S guard.py PATIENCE PROGRAM [ARGUMENT…]`, with a pipe from the parent as stdin.

* The program ends, however: everything it left behind is killed, and we end with its exit code.
* SIGTERM to us: SIGTERM to the program alone, never to its group (django-q2's cluster hangs when
  its workers get one too), and SIGKILL to everything after PATIENCE seconds.
* Our stdin ends because the parent died, even by SIGKILL: everything is killed at once.
* We are killed: the kernel kills the program, and the supervisor kills the rest of our session.

Orphans cannot get away: as a subreaper we become the parent of every descendant that loses its
own. Only the standard library is used and nothing of the project, so that starting is quick.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
PARENT = 0  # our stdin; its other end is open as long as the parent lives
KILLED = -signal.SIGKILL
KILL_SECONDS = 10.0
LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Set a property of this process that only Linux knows."""
    if LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) was refused")


def die_with_parent(parent: int, sent: int = signal.SIGKILL) -> None:
    """Between fork and exec: have the kernel send us a signal when the parent dies."""
    prctl(PR_SET_PDEATHSIG, sent)
    if os.getppid() != parent:  # it died before we asked
        os.kill(os.getpid(), sent)


def processes() -> Iterator[tuple[int, int, int]]:
    """Every living process as (pid, parent, session); zombies are dead."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            # The command's name stands in parentheses and may hold anything.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] not in "ZX":
                yield int(folder.name), int(fields[1]), int(fields[3])


def descendants(ancestor: int) -> set[int]:
    """Every living process below this one."""
    parents = {pid: parent for pid, parent, _ in processes()}
    found: set[int] = set()
    generation = {ancestor}
    while generation:
        generation = {pid for pid, parent in parents.items() if parent in generation} - found
        found |= generation
    return found


def session_members(session: int) -> set[int]:
    """Every living process of a session, whoever its parent is now."""
    return {pid for pid, _, its_session in processes() if its_session == session}


def kill(pids: set[int]) -> None:
    """Send SIGKILL to each that is still there."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def reap(program: int) -> int | None:
    """Collect every child that has ended; the program's exit code if it was among them."""
    code = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == program:
                code = os.waitstatus_to_exitcode(status)
    return code


def kill_descendants() -> None:
    """Kill until nothing is left: one may have started another before its end."""
    deadline = time.monotonic() + KILL_SECONDS
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        kill(left)
        time.sleep(0.01)
        reap(program=0)


def signals_as_bytes() -> int:
    """A file descriptor from which each arriving signal is read as one byte."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (*STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader


def watch(program: int, *, arrivals: int, patience: float) -> int:
    """Wait for the program's end, for a request to stop, or for the parent's death."""
    deadline: float | None = None
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        readable, _, _ = select.select([PARENT, arrivals], [], [], left)
        arrived = set(os.read(arrivals, 4096)) if arrivals in readable else set()
        code = reap(program)
        if code is not None:
            return code
        if PARENT in readable or not readable:
            return KILLED
        if arrived & STOP_SIGNALS and deadline is None:
            deadline = time.monotonic() + patience
            os.kill(program, signal.SIGTERM)


def main(arguments: list[str]) -> int:
    """Run the program under guard; its exit code, as a shell would give it."""
    patience, *command = arguments
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    arrivals = signals_as_bytes()
    try:
        program = subprocess.Popen(  # noqa: S603 - the command is our own supervisor's
            command,
            stdin=subprocess.DEVNULL,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]} could not be started: {error}\n")
        return 127
    program.returncode = watch(program.pid, arrivals=arrivals, patience=float(patience))
    kill_descendants()
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
