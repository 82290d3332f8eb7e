"""What `./dev test` runs: every check, then every test on SQLite and on PostgreSQL.

The quick ones come first, and the first failure ends the run with the command to repeat it alone.
"""

import argparse
import base64
import os
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config.demo.supervisor import GUARD
from tests.postgres import NotRunning, ask_to_stop, server
from tests.programs import Missing, ensure_chromium, ensure_postgres

ROOT = Path(__file__).parent.parent
PATIENCE_SECONDS = "10"
NOTHING_COLLECTED = 5
WORKERS = "2"
ORDINARY = "not chaos and not browser and not bench"
# They kill processes or watch a clock: one at a time, and alone on the machine. Apart from each
# other, because Playwright leaves its event loop running, and the lanes want one of their own.
SERIAL = {
    "Chaos tests": "chaos and not bench",
    "Browser tests": "browser and not bench",
    "Measurements, short": "bench",
}


class Failed(Exception):
    """A step failed; the message names it and says how to run it alone."""


@dataclass(frozen=True)
class Step:
    """One command of the run."""

    title: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    alone: str = ""  # how to repeat it, where that is not the command itself


@dataclass
class Count:
    """Tests that were executed."""

    passed: int = 0
    failed: int = 0

    def add(self, report: Path) -> None:
        """Add what a JUnit report holds; a run that broke before its end has none."""
        if not report.exists():
            return
        for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314 - pytest wrote it
            tests, failures, errors, skipped = (
                int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
            )
            self.failed += failures + errors
            self.passed += max(0, tests - failures - errors - skipped)


def say(text: str) -> None:
    """Print a line now, before what the next command prints."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def execute(step: Step) -> int:
    """Run a step under guard, so that nothing it starts outlives us; its exit code."""
    say(f"\n== {step.title}")
    started = time.monotonic()
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", GUARD, PATIENCE_SECONDS, *step.command],
        cwd=ROOT,
        env={**os.environ, **step.env},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        code = guard.wait()
    except BaseException:
        guard.terminate()
        guard.wait()
        raise
    say(f"== {step.title}: {time.monotonic() - started:.1f} s")
    return code


def require(step: Step, code: int) -> None:
    """Raise unless the step went well."""
    if code != 0:
        raise Failed(f"{step.title} failed. To run it alone: {step.alone or shown(step)}")


def shown(step: Step) -> str:
    """A step's command as one would type it in the project's folder."""
    env = [f"{name}={value}" for name, value in step.env.items()]
    return shlex.join([*env, *step.command]).replace(f"{ROOT}/", "")


def programs_of(name: str) -> str:
    """A program that was installed with the packages."""
    return str(Path(sys.executable).with_name(name))


def manage(title: str, *arguments: str, **env: str) -> Step:
    """A step that is one of Django's commands."""
    return Step(title, [sys.executable, "manage.py", *arguments], env)


def checks(data_dir: str) -> list[Step]:
    """Everything that needs no test database, quick ones first."""
    production = {
        "DEBUG": "0",
        "HTTPS": "1",
        "DATA_DIR": data_dir,
        "DATABASE_URL": f"sqlite:///{data_dir}/check.sqlite3",
        "SECRET_KEY": secrets.token_urlsafe(64),
        "FIELD_KEYS": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "ALLOWED_HOSTS": "goodstanding.example",
        "EMAIL_URL": "submission://mail.example",
    }
    deploy = ("check", "--deploy", "--fail-level", "WARNING")
    python = [sys.executable, "-m"]
    return [
        Step("Format", [*python, "ruff", "format", "--check", "."]),
        Step("Lint", [*python, "ruff", "check", "."]),
        Step("Imports", [programs_of("lint-imports")]),
        manage("System checks, as in production", *deploy, **production),
        manage("Migrations are complete", "makemigrations", "--check", "--dry-run", **production),
        manage("Law packs", "check_packs", **production),
        Step("Types", [*python, "mypy", "."]),
    ]


class Tests:
    """The test suite on one database."""

    def __init__(self, engine: str, options: argparse.Namespace, *, url: str = "") -> None:
        self.engine = engine
        self.options = options
        self.url = url
        self.before = f"{shown_python()} -m tests.postgres " if url else ""

    def step(self, title: str, marks: str, report: Path, *arguments: str) -> Step:
        """One run of pytest."""
        if self.options.marks:
            marks = f"({marks}) and ({self.options.marks})"
        chosen = [*arguments, "-m", marks, *self.options.pytest]
        pytest = [sys.executable, "-m", "pytest"]
        return Step(
            f"{title} on {self.engine}",
            [*pytest, f"--junitxml={report}", *chosen],
            {"DATABASE_URL": self.url} if self.url else {},
            alone=f"{self.before}{shown_python()} -m pytest {shlex.join(chosen)}",
        )

    def run(self, total: Count) -> None:
        """Run ordinary tests side by side, then the others one by one."""
        before = total.passed + total.failed
        self.run_one("Tests", ORDINARY, total, "-n", WORKERS)
        if not self.options.fast:
            for title, marks in SERIAL.items():
                self.run_one(title, marks, total)
        if total.passed + total.failed == before:
            raise Failed(f"Not one test was executed on {self.engine}. Check what you selected.")

    def run_one(self, title: str, marks: str, total: Count, *arguments: str) -> None:
        """Run pytest once, count, and raise if it went wrong."""
        skip_browser = ["--no-browser"] if self.options.no_browser else []
        with tempfile.TemporaryDirectory(prefix="goodstanding-report-") as folder:
            report = Path(folder) / "junit.xml"
            step = self.step(title, marks, report, *arguments, *skip_browser)
            code = execute(step)
            total.add(report)
        if code == NOTHING_COLLECTED and (self.options.pytest or self.options.marks):
            return  # somebody chose
        require(step, code)


def shown_python() -> str:
    """The interpreter as one would type it in the project's folder."""
    return sys.executable.replace(f"{ROOT}/", "")


def bench(arguments: list[str]) -> int:
    """Every measurement at full size on PostgreSQL, as it runs in production; prints tables."""
    ensure_postgres()
    os.environ.pop("DATABASE_URL", None)
    with server() as url:
        env = {"BENCH": "full", "DATABASE_URL": url}
        pytest = [sys.executable, "-m", "pytest", "-q", "-s", "-m", "bench", *arguments]
        return execute(Step("Measurements", pytest, env))


def parse(arguments: list[str]) -> argparse.Namespace:
    """Our own options; everything else is pytest's."""
    parser = argparse.ArgumentParser(prog="./dev test", allow_abbrev=False)
    parser.add_argument("--sqlite", action="store_true", help="leave PostgreSQL out")
    parser.add_argument("--no-browser", action="store_true", help="skip the browser tests")
    parser.add_argument(
        "--fast", action="store_true", help="checks and ordinary tests on SQLite only"
    )
    parser.add_argument("-m", dest="marks", default="", help="only tests with these marks")
    options, others = parser.parse_known_args(arguments)
    options.pytest = others
    options.no_browser = options.no_browser or options.fast
    options.sqlite = options.sqlite or options.fast
    return options


def run(options: argparse.Namespace, total: Count) -> None:
    """Everything, in order, up to the first failure."""
    if not options.no_browser:
        ensure_chromium()
    if not options.sqlite:
        ensure_postgres()
    with tempfile.TemporaryDirectory(prefix="goodstanding-checks-") as data_dir:
        for step in checks(data_dir):
            require(step, execute(step))
    os.environ.pop("DATABASE_URL", None)  # the tests' own: a SQLite file in their data folder
    Tests("SQLite", options).run(total)
    if not options.sqlite:
        with server(fsync="off") as url:
            Tests("PostgreSQL", options, url=url).run(total)


def main(arguments: list[str]) -> int:
    """Exit code 0 only when every step went well; the last line says how many tests did."""
    signal.signal(signal.SIGTERM, ask_to_stop)
    if arguments[:1] == ["bench"]:
        return bench(arguments[1:])
    total = Count()
    try:
        run(parse(arguments), total)
    except (Failed, Missing, NotRunning) as error:
        say(f"\n{error}")
        code = 1
    except KeyboardInterrupt:
        say("\nStopped.")
        code = 130
    else:
        say("\nEverything passed.")
        code = 0
    say(f"{total.passed} passed, {total.failed} failed")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
