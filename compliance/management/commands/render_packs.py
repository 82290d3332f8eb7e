"""Writes each pack's page for people, or says which pages are out of date."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compliance.errors import DomainError
from compliance.reference import page
from compliance.rules import pack_folders, read_pack

NAME = "README.md"


class Command(BaseCommand):
    help = "Write README.md beside every pack.toml; with --check, only say which are out of date."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            stale = stale_pages()
        except DomainError as error:
            raise CommandError(str(error)) from error
        if options["check"] and stale:
            names = ", ".join(path.parent.name for path in stale)
            raise CommandError(f"Out of date: {names}. Run manage.py render_packs.")
        for path, text in stale.items():
            path.write_text(text, encoding="utf-8")
        self.stdout.write(f"Pages written: {len(stale)}; all others were up to date.")


def stale_pages() -> dict[Path, str]:
    """Every page that does not say what its pack says, with what it should say."""
    pages = {folder / NAME: page(read_pack(folder)) for folder in pack_folders().values()}
    return {path: text for path, text in pages.items() if _read(path) != text}


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
