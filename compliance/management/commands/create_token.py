"""Makes a token of the API and prints it once."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from compliance.errors import DomainError
from compliance.history import find_user
from compliance.tokens import create_token


class Command(BaseCommand):
    help = "Create a token of the API. It is printed once and kept only as a digest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user as whom the token acts")
        parser.add_argument("--name", required=True, help="what it is for")
        parser.add_argument(
            "--scope", action="append", required=True, dest="scopes", metavar="SCOPE",
            help="read, or a permission such as filings.approve_filing; may be repeated",
        )  # fmt: skip
        parser.add_argument("--days", type=int, default=90, help="until it expires; default 90")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            token = create_token(
                find_user(options["user"]),
                name=options["name"],
                scopes=options["scopes"],
                days=options["days"],
            )
        except DomainError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(token)
