import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from config.demo.guard import processes
from config.demo.supervisor import (
    NotStarted,
    Program,
    ProgramEnded,
    Supervisor,
    answers,
    free_port,
    listens,
)

ROOT = Path(__file__).parents[2]
MARK = "SUPERVISOR_TEST"

# It ignores SIGTERM, as the worst of programs do.
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
PLAIN = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(600)
"""
# Two grandchildren outlive a killed leader; one of them has even left its session.
FAMILY = f"""
import os, pathlib, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}])
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(600)
"""


def marked(token: str) -> set[int]:
    """Every living process that inherited the token, found without asking the supervisor."""
    found = set()
    for pid, _, _ in processes():
        with suppress(OSError):
            if f"{MARK}={token}".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.add(pid)
    return found


def wait_until(condition: Callable[[], bool], *, seconds: float = 20.0) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


@dataclass
class Tree:
    """A supervisor in a process of its own, with everything below it."""

    supervisor: subprocess.Popen[str]
    token: str
    logs: Path

    def living(self) -> set[int]:
        return marked(self.token)

    def leader(self, name: str) -> int:
        return int((self.logs / f"{name}.pid").read_text())

    def guard_of(self, name: str) -> int:
        leader = self.leader(name)
        return next(parent for pid, parent, _ in processes() if pid == leader)

    def assert_all_gone(self) -> None:
        assert wait_until(lambda: not self.living()), f"left behind: {self.living()}"


@contextmanager
def supervised(logs: Path, *programs: str, **env: str) -> Iterator[Tree]:
    """Start the programs under a supervisor; kill whatever a failed test leaves."""
    token = uuid.uuid4().hex
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "tests.config.supervised", str(logs), *programs],
        cwd=ROOT,
        env={**os.environ, **env, MARK: token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == "ready\n"
        yield Tree(supervisor, token, logs)
    finally:
        for pid in marked(token):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        supervisor.communicate()


def command(logs: Path, name: str, code: str) -> str:
    return f"{name}={shlex.join([sys.executable, '-c', code, str(logs / f'{name}.pid')])}"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    programs = (command(tmp_path, "plain", PLAIN), command(tmp_path, "family", FAMILY))
    with supervised(tmp_path, *programs) as tree:
        # The supervisor, two guards, two leaders, two grandchildren.
        assert wait_until(lambda: len(tree.living()) == 7)
        yield tree


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_being_asked_to_stop_ends_everything_well(tree: Tree, number: int) -> None:
    tree.supervisor.send_signal(number)

    assert tree.supervisor.wait(10) == 0
    assert not tree.living()


def test_ctrl_c_in_a_terminal_reaches_the_supervisor_alone(tree: Tree) -> None:
    os.killpg(tree.supervisor.pid, signal.SIGINT)

    assert tree.supervisor.wait(10) == 0
    assert not tree.living()


def test_a_killed_supervisor_leaves_nothing_behind(tree: Tree) -> None:
    tree.supervisor.kill()

    tree.supervisor.wait(10)
    tree.assert_all_gone()


@pytest.mark.parametrize("name", ["plain", "family"])
def test_when_one_program_is_killed_the_others_are_stopped(tree: Tree, name: str) -> None:
    os.kill(tree.leader(name), signal.SIGKILL)

    _, errors = tree.supervisor.communicate(timeout=10)
    assert tree.supervisor.returncode == 1
    assert f"{name} has ended (exit code 137)" in errors
    assert not tree.living()


def test_when_one_guard_is_killed_its_program_dies_and_the_others_are_stopped(tree: Tree) -> None:
    os.kill(tree.guard_of("plain"), signal.SIGKILL)

    assert tree.supervisor.wait(10) == 1
    assert not tree.living()


def test_a_killed_guard_cannot_save_the_rest_of_its_session(tmp_path: Path) -> None:
    family = FAMILY.replace(", start_new_session=True", "")
    with supervised(tmp_path, command(tmp_path, "family", family)) as tree:
        os.kill(tree.guard_of("family"), signal.SIGKILL)

        assert tree.supervisor.wait(10) == 1
        assert not tree.living()


def test_a_program_dies_even_with_its_guard_and_the_supervisor_at_once(tmp_path: Path) -> None:
    with supervised(tmp_path, command(tmp_path, "plain", PLAIN)) as tree:
        leader = tree.leader("plain")
        for pid in tree.living() - {leader}:
            os.kill(pid, signal.SIGKILL)

        tree.supervisor.wait(10)
        tree.assert_all_gone()


def test_a_program_that_ignores_sigterm_is_killed_after_its_patience(tmp_path: Path) -> None:
    stubborn = PLAIN.replace(
        "time.sleep", "import signal; signal.signal(15, signal.SIG_IGN); time.sleep"
    )
    with supervised(tmp_path, command(tmp_path, "stubborn", stubborn)) as tree:
        tree.supervisor.terminate()

        # Two seconds, and well before the supervisor would lose its own patience with the guard.
        assert tree.supervisor.wait(6) == 0
        assert not tree.living()


def test_a_program_may_finish_what_it_is_at(tmp_path: Path) -> None:
    careful = """
import pathlib, signal, sys, time
def finish(*_):
    time.sleep(0.5)
    print("finished", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, finish)
pathlib.Path(sys.argv[1]).write_text("0")
time.sleep(600)
"""
    with supervised(tmp_path, command(tmp_path, "careful", careful)) as tree:
        tree.supervisor.terminate()

        assert tree.supervisor.wait(10) == 0
    assert (tmp_path / "careful.log").read_text() == "finished\n"


def test_only_the_leader_is_asked_to_stop(tmp_path: Path) -> None:
    # django-q2's cluster hangs when its workers get a SIGTERM of their own.
    worker = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: print("worker was asked", flush=True))
pathlib.Path(sys.argv[1]).write_text("0")
time.sleep(600)
"""
    leader = f"""
import signal, subprocess, sys, time
def finish(*_):
    time.sleep(0.5)
    print("leader was asked", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, finish)
subprocess.Popen([sys.executable, "-c", {worker!r}, sys.argv[1]])
time.sleep(600)
"""
    with supervised(tmp_path, command(tmp_path, "leader", leader)) as tree:
        tree.supervisor.terminate()

        assert tree.supervisor.wait(10) == 0
        assert not tree.living()
    assert (tmp_path / "leader.log").read_text() == "leader was asked\n"


def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, Supervisor(tmp_path) as supervisor:
        port = other.getsockname()[1]

        with pytest.raises(NotStarted, match=rf"Port {port} is taken.*web.*--port"):
            supervisor.start(Program(name="web", argv=["true"], port=port))


def test_a_program_that_fails_to_start_shows_its_last_words(tmp_path: Path) -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no such table')"]
    last_words = r"web ended before it was ready.*\n.*no such table"
    with Supervisor(tmp_path) as supervisor, pytest.raises(NotStarted, match=last_words):
        supervisor.start(Program(name="web", argv=failing, ready=lambda: False))


def test_a_program_that_does_not_exist_is_named(tmp_path: Path) -> None:
    missing = Program(name="web", argv=["no-such-program"], ready=lambda: False)
    named = "no-such-program could not be started"
    with Supervisor(tmp_path) as supervisor, pytest.raises(NotStarted, match=named):
        supervisor.start(missing)


def test_a_program_that_is_never_ready_is_given_up(tmp_path: Path) -> None:
    sleeper = Program(
        name="web",
        argv=[sys.executable, "-c", "import time; time.sleep(600)"],
        ready=lambda: False,
        ready_within=0.3,
    )
    too_late = r"web was not ready within 0\.3 seconds"
    with Supervisor(tmp_path) as supervisor, pytest.raises(NotStarted, match=too_late):
        supervisor.start(sleeper)


def test_a_web_server_is_ready_when_it_answers(tmp_path: Path) -> None:
    port = free_port()
    serve = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    with Supervisor(tmp_path) as supervisor:
        supervisor.start(
            Program(name="web", argv=serve, port=port, ready=lambda: answers(port, "/"))
        )

        assert listens(port)
        supervisor.check()
    assert not listens(port)


def test_an_early_end_is_noticed_by_a_check(tmp_path: Path) -> None:
    with Supervisor(tmp_path) as supervisor:
        supervisor.start(Program(name="brief", argv=[sys.executable, "-c", "print('bye')"]))
        assert wait_until(lambda: supervisor.guarded[0].ended)

        with pytest.raises(ProgramEnded, match=r"brief has ended \(exit code 0\)(.|\n)*bye"):
            supervisor.check()


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a database of its own, as a cluster in another process needs it."""
    folder = tmp_path_factory.mktemp("data")
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity=0"],
        cwd=ROOT,
        env={**os.environ, "DATA_DIR": str(folder), "DATABASE_URL": database_in(folder)},
        check=True,
    )
    return folder


def database_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'goodstanding.sqlite3'}"


@pytest.fixture
def cluster(data_dir: Path, tmp_path: Path) -> Iterator[Tree]:
    qcluster = f"worker={shlex.join([sys.executable, 'manage.py', 'qcluster'])}"
    env = {"DATA_DIR": str(data_dir), "DATABASE_URL": database_in(data_dir)}
    with supervised(tmp_path, qcluster, **env) as tree:
        # The supervisor, the guard, the leader, its sentinel, pusher, monitor and two workers.
        assert wait_until(lambda: len(tree.living()) >= 8)
        yield tree


def cluster_leader(tree: Tree) -> int:
    guard = next(pid for pid, parent, _ in processes() if parent == tree.supervisor.pid)
    return next(pid for pid, parent, _ in processes() if parent == guard)


def test_a_real_cluster_stops_when_asked(cluster: Tree) -> None:
    cluster.supervisor.terminate()

    assert cluster.supervisor.wait(20) == 0
    assert not cluster.living()


def test_a_real_cluster_does_not_outlive_a_killed_supervisor(cluster: Tree) -> None:
    cluster.supervisor.kill()

    cluster.supervisor.wait(10)
    cluster.assert_all_gone()


def test_the_workers_of_a_real_cluster_do_not_outlive_their_leader(cluster: Tree) -> None:
    os.kill(cluster_leader(cluster), signal.SIGKILL)

    assert cluster.supervisor.wait(20) == 1
    assert not cluster.living()
