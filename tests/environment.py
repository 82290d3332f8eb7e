"""The environment of every test process, set before the settings read it.

Loaded with `-p` (pyproject.toml): pytest-django reads the settings before any conftest is found.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# What somebody exported for their own site must not reach the tests.
FOREIGN = (
    "ALLOWED_HOSTS",
    "BEHIND_PROXY",
    "CSRF_TRUSTED_ORIGINS",
    "DEBUG",
    "EMAIL_URL",
    "ESCALATION_DAYS",
    "FIELD_KEYS",
    "MEDIA_ROOT",
    "PACKS_DIR",
    "PORTALS_BASE_URL",
    "PORTALS_DIR",
    "REDIS_URL",
    "SECRET_KEY",
    "SITE_URL",
)


def data_folder() -> Path:
    """A folder for this process alone; what it holds goes when the test run ends."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        return Path(os.environ["DATA_DIR"]) / worker
    folder = tempfile.mkdtemp(prefix="goodstanding-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def prepare() -> None:
    """Point the settings at a fresh data folder and at plain HTTP, as a test client speaks it."""
    for name in FOREIGN:
        os.environ.pop(name, None)
    folder = data_folder()
    (folder / "static").mkdir(parents=True)
    os.environ.update(DATA_DIR=str(folder), STATIC_ROOT=str(folder / "static"), HTTPS="0")


prepare()
