"""The portal's own rules, asked before anybody approves: each problem is one sentence."""

from collections.abc import Iterator
from datetime import date
from typing import Any

from pydantic import ValidationError

from compliance.errors import DomainError
from compliance.formulas import payable
from compliance.models import Deadline
from filings.models import Filing
from portals.cards import Card
from portals.registry import card_of, form_of
from portals.text_rules import text_problems, texts_in

REMEDIES = {
    "officers": "Add a current officer on the entity's page.",
    "principal_address": "Add the principal office on the entity's page.",
    "process_address": "Add an address for service of process on the entity's page.",
    "registered_agent": "Add the registered agent on the registration.",
}


def problems_of(filing: Filing, *, today: date) -> list[str]:
    """What stands in the way of this filing; empty means that it can be approved."""
    try:
        card = card_of(filing.portal)
        form = form_of(card, filing.form)
    except DomainError as error:
        return [str(error)]
    found = [*_of_the_deadline(filing, card, today), *_of_the_fee(filing)]
    try:
        form.model_validate(filing.answers)
    except ValidationError as error:
        found += [_sentence(problem) for problem in error.errors()]
    found += list(_of_the_text(filing, card))
    return found


def _of_the_deadline(filing: Filing, card: Card, today: date) -> Iterator[str]:
    deadline = filing.deadline
    if deadline.status != Deadline.Status.OWED:
        status = deadline.get_status_display().lower()
        yield f"The deadline is {status}, not owed. Withdraw this filing."
    if deadline.opens_on and today < deadline.opens_on:
        yield f"{card.title} takes it from {deadline.opens_on:%d %b %Y} on. Approve it then."
    if card.automation != "allowed":
        yield f"{card.title} does not allow automation. File it by hand and record the number."
    if not deadline.registration.file_number.strip():
        yield "The registration has no file number. Enter the registry's number for it."


def _of_the_fee(filing: Filing) -> Iterator[str]:
    """What was prepared must still be what is owed when it is approved."""
    try:
        owed = payable(filing.deadline)
    except DomainError as error:
        yield str(error)
        return
    if owed != filing.fee:
        yield (
            f"The fee was ${filing.fee:,.2f} when it was prepared and is ${owed:,.2f} now. "
            "Withdraw it and open a new one."
        )


def _of_the_text(filing: Filing, card: Card) -> Iterator[str]:
    """Refused, never repaired: a signed document is not changed on its way out."""
    registration = filing.deadline.registration
    texts = {"entity_name": registration.name, "entity_number": registration.file_number}
    for where, text in [*texts.items(), *texts_in(filing.answers)]:
        most = card.field_max_characters
        if most and len(text) > most:
            yield (
                f"{where} has {len(text):,} characters; {card.title} takes {most:,}. Shorten it."
            )
        yield from text_problems(where, text)


def _sentence(problem: Any) -> str:
    """One of Pydantic's errors, as people say it."""
    where = ".".join(str(part) for part in problem["loc"])
    remedy = REMEDIES.get(str(problem["loc"][0]) if problem["loc"] else "", "Correct it.")
    if problem["type"] in ("missing", "too_short", "string_too_short"):
        return f"{where} is missing. {remedy}"
    if problem["type"] == "extra_forbidden":
        return f"{where} is not a field of this form. Remove it."
    return f"{where}: {problem['msg']}. {remedy}"
