"""Start-up checks of cards, handlers and the times that the protocol rests on."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.utils.module_loading import import_string

from compliance.errors import DomainError
from portals.registry import cards


@register()
def cards_can_be_read(**_: Any) -> list[CheckMessage]:
    """A malformed card stops the start, with the file and the field."""
    try:
        found = cards()
    except DomainError as error:
        return [Error(str(error), id="portals.E001")]
    spare = settings.LANE_LEASE_SECONDS * 0.6
    return [
        Error(
            f"{card.slug}: a request may take {settings.SEND_WITHIN_SECONDS:g} s to leave and "
            f"{card.timeout_seconds:g} s to be answered, too long for a lease of "
            f"{settings.LANE_LEASE_SECONDS:g} s.",
            hint="Raise LANE_LEASE_SECONDS, or lower timeout_seconds on the card.",
            id="portals.E002",
        )
        for card in found.values()
        if settings.SEND_WITHIN_SECONDS + card.timeout_seconds >= spare
    ]


@register()
def portals_are_reached_by_tls(**_: Any) -> list[CheckMessage]:
    """Outside a rehearsal nothing leaves in the clear."""
    if settings.PORTALS_BASE_URL:
        return []
    try:
        found = cards()
    except DomainError:
        return []  # told by cards_can_be_read
    return [
        Error(
            f"{card.slug}: its base_url is {card.base_url}, without TLS.",
            hint="Write https:// on the card, or set PORTALS_BASE_URL to rehearse.",
            id="portals.E005",
        )
        for card in found.values()
        if not card.base_url.startswith("https://")
    ]


@register()
def the_queue_never_retries(**_: Any) -> list[CheckMessage]:
    """A task is a wake-up: sending again is decided in our tables, never by the queue."""
    queue = settings.Q_CLUSTER
    wrong = []
    if queue.get("max_attempts") != 1 or not queue.get("ack_failures"):
        wrong.append("max_attempts must be 1 and ack_failures True")
    if not queue["retry"] > queue["timeout"] > settings.LANE_SLICE_SECONDS:
        wrong.append("retry must be longer than timeout, and that longer than LANE_SLICE_SECONDS")
    return [
        Error(f"Q_CLUSTER: {problem}.", hint="Correct config/settings.py.", id="portals.E003")
        for problem in wrong
    ]


@register()
def handlers_exist(**_: Any) -> list[CheckMessage]:
    """Every kind of intent has the handler that the settings name."""
    found: list[CheckMessage] = []
    for kind, path in settings.INTENT_HANDLERS.items():
        try:
            import_string(path)
        except ImportError as error:
            found.append(
                Error(
                    f"INTENT_HANDLERS[{kind!r}] cannot be imported: {error}.",
                    hint="Correct the path in config/settings.py.",
                    id="portals.E004",
                )
            )
    return found


@register(Tags.security, deploy=True)
def production_is_not_a_rehearsal(**_: Any) -> list[CheckMessage]:
    """With PORTALS_BASE_URL set, nothing reaches the real portals."""
    if not settings.PORTALS_BASE_URL:
        return []
    return [
        Warning(
            f"PORTALS_BASE_URL is set: every portal answers under {settings.PORTALS_BASE_URL}.",
            hint="Unset it to reach the real portals.",
            id="portals.W001",
        )
    ]
