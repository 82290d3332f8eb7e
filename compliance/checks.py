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
def the_ladder_can_be_climbed(**_: Any) -> list[CheckMessage]:
    """Four rungs, each nearer to the due date than the one before."""
    days = settings.ESCALATION_DAYS
    if len(days) == 4 and sorted(set(days), reverse=True) == days:
        return []
    return [
        Error(
            f"ESCALATION_DAYS is {','.join(map(str, days))}, which is no ladder.",
            hint="Write four numbers of days, each smaller than the one before: 30,14,7,0.",
            id="compliance.E002",
        )
    ]


@register(deploy=True)
def mail_leaves_by_a_named_server(**_: Any) -> list[CheckMessage]:
    """In production somebody has said where mail goes."""
    if settings.EMAIL_HOST != "localhost":
        return []
    return [
        Warning(
            "Mail about deadlines goes to a mail server on this machine.",
            hint="Set EMAIL_URL, such as submission://user:password@mail.example.com, unless "
            "there is one.",
            id="compliance.W002",
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
