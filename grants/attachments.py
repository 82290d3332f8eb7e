"""Files on disk: written in chunks, measured as they are written, never held whole."""

import hashlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings
from django.utils import timezone

from compliance.errors import NotAllowed

CHUNK = 64 * 1024


@dataclass(frozen=True)
class Measure:
    """What a file is known by."""

    sha256: str
    size: int


def keep(file: IO[bytes], *, name: str, most: int) -> tuple[str, Measure]:
    """Write a file under MEDIA_ROOT; the path below it, and its measure.

    The place has a name of its own, so that what somebody calls a file is never a path of ours.
    """
    place = f"grants/{timezone.now():%Y/%m}/{uuid.uuid4().hex}"
    path = Path(settings.MEDIA_ROOT) / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.seekable():
        file.seek(0)  # whoever looked at it before us may have left it at its end
    try:
        return place, _write(file, path, name, most)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def discard(place: str) -> None:
    """Remove a file that nothing refers to any more."""
    (Path(settings.MEDIA_ROOT) / place).unlink(missing_ok=True)


def measure(path: Path) -> Measure | None:
    """The measure of a file as it lies on disk now; None if it is not there."""
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            for chunk in _chunks(file):
                digest.update(chunk)
                size += len(chunk)
    except FileNotFoundError:
        return None
    return Measure(digest.hexdigest(), size)


def _write(file: IO[bytes], path: Path, name: str, most: int) -> Measure:
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as kept:
        for chunk in _chunks(file):
            size += len(chunk)
            if size > most:
                raise NotAllowed(
                    f"{name} is larger than {most:,} bytes, which is the most that the funder "
                    "takes. Attach a smaller file.",
                    code="too_large",
                )
            digest.update(chunk)
            kept.write(chunk)
        kept.flush()
        os.fsync(kept.fileno())  # the row that names the digest must not outlive the bytes
    return Measure(digest.hexdigest(), size)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk
