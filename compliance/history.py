"""Who changed a row, in requests, commands and workers, for one row or for many."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone
from simple_history.models import HistoricalRecords

from compliance.bulk import copy_rows
from compliance.errors import NotFound

Row = TypeVar("Row", bound=models.Model)


def tracked(**options: Any) -> HistoricalRecords:
    """History for a model, with room for more than two thousand million rows."""
    return HistoricalRecords(history_id_field=models.BigAutoField(), **options)


@contextmanager
def acting_as(user: User | None) -> Iterator[None]:
    """Name the person or service behind every change made inside."""
    before = getattr(HistoricalRecords.context, "request", None)
    HistoricalRecords.context.request = SimpleNamespace(user=user)
    try:
        yield
    finally:
        if before is None:
            del HistoricalRecords.context.request
        else:
            HistoricalRecords.context.request = before


def service_user(name: str) -> User:
    """The account under which a part of the program acts; nobody can log in with it."""
    user, made = get_user_model().objects.get_or_create(
        username=name, defaults={"is_active": False, "first_name": "Service"}
    )
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


def find_user(username: str) -> User:
    """The active user of that name, or a sentence that says there is none."""
    user = get_user_model().objects.filter(username=username, is_active=True).first()
    if user is None:
        raise NotFound(
            f"There is no active user “{username}”. Check the name, or create the user."
        )
    return user


def update_tracked(rows: Sequence[Row], *, reason: str = "", **values: Any) -> None:
    """Give many rows the same new values in one statement, and each its history row."""
    if not rows:
        return
    model = type(rows[0])
    model._default_manager.filter(pk__in=[row.pk for row in rows]).update(**values)
    for row in rows:
        for name, value in values.items():
            setattr(row, name, value)
    remember(rows, reason=reason)


def remember(rows: Sequence[Row], *, reason: str = "", created: bool = False) -> None:
    """Write the history rows of a bulk change that has just been made."""
    if rows:
        keys = [row.pk for row in rows]
        remember_keys(type(rows[0]), keys, reason=reason, created=created)


def remember_keys(
    model: type[models.Model], keys: Sequence[int], *, reason: str, created: bool = False
) -> None:
    """The same for rows that are only known by their keys; the database copies their columns."""
    history = model.history.model  # type: ignore[attr-defined]
    user = history.get_default_history_user(None)
    added = {
        "history_date": timezone.now(),
        "history_change_reason": reason,
        "history_type": "+" if created else "~",
        "history_user_id": user.pk if user else None,
    }
    copy_rows(model, history, [field.column for field in history.tracked_fields], added, keys)
