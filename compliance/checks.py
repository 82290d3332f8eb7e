"""Start-up checks: a wrong value stops the program before it can do harm."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from compliance.errors import DomainError
from compliance.rules import packs


@register(Tags.security, deploy=True)
def secrets_are_given(**_: Any) -> list[CheckMessage]:
    """In production the keys come from outside, not from a file beside the data."""
    if settings.FIELD_KEYS:
        return []
    return [
        Warning(
            "FIELD_KEYS is not set: tax ids and credentials are encrypted with a key that lies "
            "beside the data.",
            hint="Set FIELD_KEYS to one or more Fernet keys, newest first.",
            id="compliance.W001",
        )
    ]


@register()
def packs_can_be_read(**_: Any) -> list[CheckMessage]:
    """Law that cannot be read is no law."""
    try:
        packs()
    except DomainError as error:
        return [Error(str(error), id="compliance.E001")]
    return []
