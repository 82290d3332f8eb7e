"""A process of its own with a supervisor in it, for tests that kill it.

Usage: `python -m tests.config.supervised LOGS NAME=COMMAND…`; prints "ready" once all run.
"""

import shlex
import sys
from functools import partial
from pathlib import Path

from compliance.errors import DomainError
from config.demo.supervisor import Program, Supervisor


def program(logs: Path, text: str) -> Program:
    """A program that is ready when it has written `<name>.pid`, or at once if it never will."""
    name, _, command = text.partition("=")
    ready = partial(Path.exists, logs / f"{name}.pid")
    if "qcluster" in command:
        return Program(name=name, argv=shlex.split(command))
    return Program(name=name, argv=shlex.split(command), ready=ready, patience=2.0)


def main() -> int:
    """Run until asked to stop (0) or until a program ends (1)."""
    logs = Path(sys.argv[1])
    try:
        with Supervisor(logs) as supervisor:
            for text in sys.argv[2:]:
                supervisor.start(program(logs, text))
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            supervisor.wait()
    except DomainError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
