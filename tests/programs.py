"""The machine's own programs that tests need: where they are, and how to get them."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_CHROMIUM = (
    "No Chromium was found, and the browser tests need one. Install it with"
    " `apt-get install chromium`, name one in BROWSER_BIN, or leave the browser tests out"
    " with --no-browser."
)
NO_POSTGRES = (
    "No PostgreSQL was found, and every test must pass on it too. Install it with"
    " `apt-get install postgresql` (it need not run), or test on SQLite alone with --sqlite."
)


class Missing(Exception):
    """A program is not here and could not be installed; the message says what to do."""


def find_chromium() -> str | None:
    """The path of the browser to test with; BROWSER_BIN overrides what is found."""
    chosen = os.environ.get("BROWSER_BIN")
    if chosen:
        return shutil.which(chosen)
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def ensure_chromium() -> str:
    """The path of a browser, installed first if we may."""
    found = find_chromium()
    if not found and "BROWSER_BIN" not in os.environ and apt_install("chromium"):
        found = find_chromium()
    if not found:
        raise Missing(NO_CHROMIUM)
    return found


def find_postgres() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps them off the PATH, one per version."""
    on_path = shutil.which("postgres")
    places = [Path(on_path).resolve().parent] if on_path else []
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    return newest(places) or newest(debian) or find_wheel()


def find_wheel() -> Path | None:
    """The folder of PostgreSQL's programs in our virtual environment."""
    return newest(Path(sys.prefix).glob("lib/python*/site-packages/*pgserver/pginstall*/bin"))


def newest(folders: Iterable[Path]) -> Path | None:
    """The folder with the highest number in its path that holds a server."""
    complete = [folder for folder in folders if (folder / "initdb").is_file()]
    return max(complete, key=version_in, default=None)


def version_in(folder: Path) -> list[int]:
    """The numbers in a path, so that 15 counts for more than 9.6."""
    return [int(number) for number in re.findall(r"\d+", folder.as_posix())]


def ensure_postgres() -> Path:
    """The folder of PostgreSQL's programs, installed first if we may."""
    found = find_postgres()
    if not found and apt_install("postgresql"):
        found = find_postgres()
    if not found and install_wheel():
        found = find_postgres()
    if not found:
        raise Missing(NO_POSTGRES)
    return found


def apt_install(package: str) -> bool:
    """Install a Debian package, which only root may; whether that worked."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    sys.stdout.write(f"Installing {package}, because this machine has none.\n")
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    return runs(install) or (runs(["apt-get", "update", "-qq"]) and runs(install))


def install_wheel() -> bool:
    """Install PostgreSQL's programs from the wheel that pyproject.toml pins."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    sys.stdout.write("Installing PostgreSQL's programs as a Python wheel.\n")
    # Only the programs are wanted, not the library around them and what that needs.
    arguments = ["--quiet", "--no-deps", *groups["postgres"]]
    return runs(
        [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, *arguments]
    ) or runs([sys.executable, "-m", "pip", "install", *arguments])


def runs(command: list[str]) -> bool:
    """Run a command to its end; whether it succeeded."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environment, check=False).returncode == 0
