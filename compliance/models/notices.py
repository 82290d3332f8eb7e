"""Notices: who was told that a deadline comes near, once for each rung of the ladder."""

from datetime import date

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.utils import timezone

from compliance.models.access import ScopedQuerySet
from compliance.models.deadlines import Deadline


class Rung(models.TextChoices):
    """The rungs of the ladder, from the first to the last."""

    OWNER = "owner", "Owner"
    BACKUP = "backup", "Backup"
    OFFICER = "officer", "Compliance officer"
    EVERYONE = "everyone", "Everyone"


def ladder() -> list[tuple[int, Rung]]:
    """Each rung, and at how many days left it is reached."""
    return list(zip(settings.ESCALATION_DAYS, Rung, strict=True))


def escalation_level(deadline: Deadline, today: date) -> str:
    """Who must know of it by now, as far up as the ladder goes; empty for nobody yet."""
    if deadline.status != Deadline.Status.OWED:
        return ""
    left = (deadline.due_on - today).days
    reached = [level for days, level in ladder() if left <= days]
    return reached[-1] if reached else ""


class OwnedByDeadline(ScopedQuerySet):
    """Rows that reach their portfolio through their deadline."""

    portfolio_path = "deadline__registration__entity__portfolio"


class Notice(models.Model):
    """That one rung of one deadline was reached and told. Written once, with its ledger entry."""

    deadline = models.ForeignKey(Deadline, on_delete=models.PROTECT, related_name="notices")
    rung = models.CharField(max_length=10, choices=Rung.choices)
    days_left = models.IntegerField(help_text="Until the due date, on the day of the notice.")
    is_unowned = models.BooleanField(help_text="Nobody who could see it owned it that day.")
    at = models.DateTimeField(default=timezone.now)
    people = models.ManyToManyField(User, through="NoticeCopy", related_name="notices")
    objects = OwnedByDeadline.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["deadline", "rung"], name="a_rung_of_a_deadline_is_told_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_rung_display()}: {self.deadline}"


class NoticeCopy(models.Model):
    """A notice as one person gets it."""

    notice = models.ForeignKey(Notice, on_delete=models.PROTECT, related_name="copies")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    mailed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "notice copies"
        constraints = [
            models.UniqueConstraint(fields=["notice", "user"], name="a_person_gets_a_notice_once")
        ]
        indexes = [
            models.Index(
                fields=["user", "id"], condition=Q(mailed_at__isnull=True), name="unmailed_notice"
            )
        ]

    def __str__(self) -> str:
        return f"{self.notice} to {self.user}"
