"""Verify the ledger's chain from its stored bytes."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compliance import ledger
from compliance.models import LedgerEntry

TAMPERED, INCOMPLETE = 1, 3


class Command(BaseCommand):
    help = (
        "Recomputes every digest. Exits 0 if all hold, 1 at the first that does not, 3 if there "
        "was nothing to verify. A cut of the newest entries shows only against a digest that you "
        "kept elsewhere: --holds SEQ:DIGEST."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--since", type=int, default=1, help="Start at this entry.")
        parser.add_argument("--holds", metavar="SEQ:DIGEST", help="An entry you know of.")
        parser.add_argument("--json", action="store_true", help="End with one line of JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["holds"]:
            _look_for(options["holds"])
        verdict = ledger.verify(since=options["since"])
        if options["json"]:
            told = {"entries": verdict.entries, "head": verdict.head}
            if verdict.broken:
                told |= {"broken_at": verdict.broken.seq, "why": verdict.broken.why}
            self.stdout.write(json.dumps(told))
        if verdict.broken:
            raise CommandError(
                f"The ledger does not hold at entry {verdict.broken.seq}: {verdict.broken.why}. "
                f"{verdict.entries} entries before it were verified.",
                returncode=TAMPERED,
            )
        if verdict.entries == 0:
            raise CommandError("The ledger is empty: nothing was verified.", returncode=INCOMPLETE)
        if not options["json"]:
            self.stdout.write(f"{verdict.entries} entries verified. Head: {verdict.head}")


def _look_for(known: str) -> None:
    seq, _, digest = known.partition(":")
    if not seq.isdigit() or len(digest) != 64:
        raise CommandError("--holds takes SEQ:DIGEST, a number and 64 hexadecimal digits.")
    entry = LedgerEntry.objects.filter(seq=int(seq)).first()
    if entry is None or entry.digest != digest:
        what = "is missing" if entry is None else "has another digest than the one you kept"
        raise CommandError(
            f"Entry {seq} {what}: the ledger was cut or rewritten.", returncode=TAMPERED
        )
