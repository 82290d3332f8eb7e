"""The script that everybody starts with, the lock, and what the repository must not name."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.run import parse

ROOT = Path(__file__).parent.parent
TOOLS = ("sh", "awk", "basename", "cat", "cksum", "dirname", "grep", "id")


def run_dev(script: Path, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the script from another folder, with nothing of our own environment."""
    return subprocess.run(
        [script, *arguments],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The script in a fresh folder whose name has a space, where nothing is set up."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    shutil.copy(ROOT / "requirements.txt", folder)
    return Path(shutil.copy(ROOT / "dev", folder))


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with a shell's tools and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(shutil.which(name) or pytest.fail(f"no {name} here"))
    return folder


def fake_python(folder: Path, body: str) -> None:
    script = folder / "python3"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)


@pytest.mark.parametrize("script", ["dev", ".ci/run"])
def test_the_scripts_are_executable_and_well_formed(script: str) -> None:
    shell = "bash" if script == ".ci/run" else "sh"
    checked = subprocess.run(
        [shutil.which(shell) or shell, "-n", ROOT / script], capture_output=True, check=False
    )

    assert checked.returncode == 0, checked.stderr
    assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "say what to do"),
        (["deploy"], "there is no command deploy"),
        (["--headless"], "there is no command --headless"),
        (["setup", "now"], "setup takes no arguments, but got: now"),
    ],
)
def test_a_wrong_call_is_explained_before_anything_happens(
    copy: Path, arguments: list[str], complaint: str
) -> None:
    done = run_dev(copy, *arguments)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Usage: ./dev COMMAND" in done.stderr
    assert not (copy.parent / ".venv").exists()


def test_help_is_not_an_error(copy: Path) -> None:
    done = run_dev(copy, "--help")

    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ./dev COMMAND")


def test_without_python_it_says_what_to_install(copy: Path, bare_path: Path) -> None:
    done = run_dev(copy, "setup", PATH=str(bare_path))

    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "apt-get install python3" in done.stderr


def test_an_old_python_is_not_enough(copy: Path, bare_path: Path) -> None:
    fake_python(bare_path, "exit 1")  # what the question for 3.11 is answered with

    done = run_dev(copy, "setup", PATH=str(bare_path))

    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr


def test_without_the_venv_module_it_names_the_package(copy: Path, bare_path: Path) -> None:
    fake_python(bare_path, 'case "$2" in *ensurepip*) exit 1 ;; esac')

    done = run_dev(copy, "setup", PATH=str(bare_path))

    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert not (copy.parent / ".venv").exists()


def test_our_options_are_told_from_those_of_pytest() -> None:
    options = parse(["--sqlite", "-x", "-m", "chaos", "tests/portals", "-k", "doubt"])

    assert options.sqlite
    assert not options.no_browser
    assert options.marks == "chaos"
    assert options.pytest == ["-x", "tests/portals", "-k", "doubt"]


def test_fast_leaves_out_what_takes_long() -> None:
    options = parse(["--fast"])

    assert options.sqlite
    assert options.no_browser


# --- The lock -----------------------------------------------------------------------------------


def pinned() -> dict[str, str]:
    """Every package that pyproject.toml asks for by name, with its version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    pairs = (re.sub(r"\[.*?\]", "", requirement).split("==") for requirement in wanted)
    return {name.lower(): version for name, version in pairs}


def locked() -> dict[str, str]:
    """Every package of requirements.txt, with its version."""
    lines = re.findall(
        r"^([a-z0-9._-]+)(?:\[.*?\])?==([^ ;]+)", (ROOT / "requirements.txt").read_text(), re.M
    )
    return dict(lines)


def test_the_lock_holds_every_version_that_we_ask_for() -> None:
    missing = pinned().items() - locked().items()

    assert not missing, f"run ./dev lock: {missing}"


def test_every_locked_package_has_a_hash() -> None:
    text = (ROOT / "requirements.txt").read_text()
    packages = re.split(r"^(?=[a-z0-9])", text, flags=re.M)[1:]

    assert len(packages) == len(locked())
    assert all("--hash=sha256:" in package for package in packages)


# --- What the repository must not name ----------------------------------------------------------


def our_files() -> list[Path]:
    """Everything that is, or could be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - any
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("this is not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]


def test_no_file_names_a_path_of_this_machine() -> None:
    forbidden = re.compile("|".join(re.escape(f"{folder}/") for folder in (ROOT, Path.home())))

    found = {
        str(path.relative_to(ROOT)): match.group()
        for path in our_files()
        if (match := forbidden.search(path.read_text(errors="replace")))
    }

    assert not found


def test_the_lock_says_nothing_about_where_packages_come_from() -> None:
    assert "://" not in (ROOT / "requirements.txt").read_text()
