"""The funder's own rules, asked before anybody approves: each problem is one sentence."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Protocol

from compliance.errors import DomainError
from grants.models import GrantSubmission
from grants.payloads import answered
from grants.schemas import UNITS, AttachmentRules, FieldRule, Schema, length_of, schema_of
from portals.cards import Card
from portals.registry import card_of
from portals.text_rules import text_problems, texts_in

EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")


class Severity(StrEnum):
    """How bad a problem is. CRITICAL stops before the wire."""

    CRITICAL = "CRITICAL"
    WARNING = "WARNING"


class Flag(StrEnum):
    """What kind of problem it is, for reports and filters."""

    MISSING_REQUIRED_FIELD = "MISSING_REQUIRED_FIELD"
    TRUNCATION_RISK = "TRUNCATION_RISK"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    INVALID_VALUE = "INVALID_VALUE"
    UNCLEAN_TEXT = "UNCLEAN_TEXT"
    MISSING_ATTACHMENT = "MISSING_ATTACHMENT"
    ATTACHMENT_TYPE = "ATTACHMENT_TYPE"
    ATTACHMENT_SIZE = "ATTACHMENT_SIZE"
    TOO_MANY_ATTACHMENTS = "TOO_MANY_ATTACHMENTS"
    CLOSED_OPPORTUNITY = "CLOSED_OPPORTUNITY"
    NO_WAY_IN = "NO_WAY_IN"


@dataclass(frozen=True)
class Problem:
    """One thing that stands in the way, or that somebody should look at."""

    flag: Flag
    at: str
    sentence: str
    severity: Severity = Severity.CRITICAL

    def __str__(self) -> str:
        return self.sentence


class FileFacts(Protocol):
    """What the rules ask of a file."""

    @property
    def name(self) -> str:
        """Under which name it goes."""

    @property
    def content_type(self) -> str:
        """What it is said to be."""

    @property
    def size(self) -> int:
        """How many bytes it has."""


def problems_of(submission: GrantSubmission, *, now: datetime) -> list[Problem]:
    """What stands in the way of this submission; without a CRITICAL one it can be approved."""
    opportunity = submission.opportunity
    found = list(_of_the_opportunity(submission, now))
    try:
        card = card_of(opportunity.funder.portal)
        schema = schema_of(opportunity.funder.slug, opportunity.schema_version)
    except DomainError as error:
        return [*found, Problem(Flag.NO_WAY_IN, "opportunity", str(error))]
    found += _of_the_card(submission, card)
    found += problems_in(schema, submission.answers, list(submission.attachments.all()))
    return found


def problems_in(
    schema: Schema, answers: dict[str, Any], attached: Sequence[FileFacts]
) -> list[Problem]:
    """What a schema finds wrong with answers and files; nothing else is looked at."""
    given = answered(answers)
    found = [
        Problem(Flag.UNKNOWN_FIELD, name, f"{name} is not a field of this funder. Remove it.")
        for name in given
        if name not in schema.fields
    ]
    for rule in schema.field:
        if rule.name in given:
            found += _of_the_field(rule, given[rule.name])
        elif rule.required:
            sentence = f"{rule.label} is missing. Fill it in."
            found.append(Problem(Flag.MISSING_REQUIRED_FIELD, rule.name, sentence))
    found += _of_the_files(schema.attachments, attached)
    return found


def critical(problems: Sequence[Problem]) -> list[Problem]:
    """Those that stop an approval."""
    return [problem for problem in problems if problem.severity == Severity.CRITICAL]


def _of_the_opportunity(submission: GrantSubmission, now: datetime) -> Iterator[Problem]:
    opportunity = submission.opportunity
    if opportunity.closes_at <= now:
        yield Problem(
            Flag.CLOSED_OPPORTUNITY,
            "opportunity",
            f"{opportunity} closed on {opportunity.closes_at:%d %b %Y at %H:%M %Z}. Withdraw this "
            "submission.",
        )


def _of_the_card(submission: GrantSubmission, card: Card) -> Iterator[Problem]:
    """What the portal asks of anything sent to it, whatever the funder's schema says."""
    if card.automation != "allowed":
        yield Problem(
            Flag.NO_WAY_IN,
            "opportunity",
            f"{card.title} does not allow automation. Apply by hand and record the number.",
        )
    ours = {"applicant": submission.entity.name, "opportunity": submission.opportunity.number}
    for where, text in ours.items():
        for sentence in text_problems(where, text):
            yield Problem(Flag.UNCLEAN_TEXT, where, sentence)
    most = card.field_max_characters
    for where, text in texts_in({**ours, **submission.answers}):
        if most and len(text) > most:
            yield Problem(
                Flag.TRUNCATION_RISK,
                where,
                f"{where} has {len(text):,} characters; {card.title} takes {most:,}. Shorten it.",
            )


def _of_the_field(rule: FieldRule, value: Any) -> Iterator[Problem]:
    if wanted := _not_what_is_asked(rule, value):
        yield Problem(Flag.INVALID_VALUE, rule.name, f"{rule.label} must be {wanted}. Correct it.")
        return
    if not isinstance(value, str):
        return
    for sentence in text_problems(rule.label, value, may_break_lines=rule.kind == "lines"):
        yield Problem(Flag.UNCLEAN_TEXT, rule.name, sentence)
    if rule.max_length:
        yield from _of_the_length(rule, value)


def _not_what_is_asked(rule: FieldRule, value: Any) -> str:
    """What the field wants, if the value is something else."""
    match rule.kind:
        case "text" | "lines":
            return "" if isinstance(value, str) else "text"
        case "email":
            fits = isinstance(value, str) and EMAIL.fullmatch(value) is not None
            return "" if fits else "an e-mail address like name@example.org"
        case "date":
            return "" if _is_date(value) else "a date like 2026-11-30"
        case "whole_number":
            # A bool is an int to Python, and not to a funder.
            fits = type(value) is int and rule.minimum <= value <= rule.maximum
            bounds = f"from {rule.minimum:,} to {rule.maximum:,}"
            return "" if fits else f"a whole number {bounds}"
        case "choice":
            return "" if value in rule.choices else f"one of: {', '.join(rule.choices)}"
        case "yes_no":
            return "" if isinstance(value, bool) else "yes or no"


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _of_the_length(rule: FieldRule, text: str) -> Iterator[Problem]:
    length, most, unit = length_of(text, rule.counted_in), rule.max_length, UNITS[rule.counted_in]
    if length > most:
        yield Problem(
            Flag.TRUNCATION_RISK,
            rule.name,
            f"{rule.label} has {length:,} {unit}; the funder takes {most:,}. Shorten it.",
        )
    elif rule.counted_in == "characters" and _as_browsers_count(text) > most:
        yield Problem(
            Flag.TRUNCATION_RISK,
            rule.name,
            f"{rule.label} has {length:,} of {most:,} characters, but more if the funder counts "
            "line breaks or emoji as two. Shorten it a little to be sure.",
            Severity.WARNING,
        )


def _as_browsers_count(text: str) -> int:
    """The length of a form's value: UTF-16 units, with a line break as CR and LF."""
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2 + text.count("\n")


def _of_the_files(rules: AttachmentRules, attached: Sequence[FileFacts]) -> Iterator[Problem]:
    names = {file.name for file in attached}
    for name in rules.required:
        if name not in names:
            sentence = f"{name} is missing. Attach it under exactly this name."
            yield Problem(Flag.MISSING_ATTACHMENT, name, sentence)
    if len(attached) > rules.max_count:
        yield Problem(
            Flag.TOO_MANY_ATTACHMENTS,
            "attachments",
            f"There are {len(attached)} files; the funder takes {rules.max_count}. Remove some.",
        )
    for file in attached:
        if file.content_type not in rules.types:
            taken = ", ".join(rules.types) or "none"
            sentence = (
                f"{file.name} is {file.content_type}; the funder takes: {taken}. Convert it."
            )
            yield Problem(Flag.ATTACHMENT_TYPE, file.name, sentence)
        if not 0 < file.size <= rules.max_bytes:
            yield Problem(
                Flag.ATTACHMENT_SIZE,
                file.name,
                f"{file.name} has {file.size:,} bytes; the funder takes 1 to {rules.max_bytes:,}. "
                "Attach another file.",
            )
