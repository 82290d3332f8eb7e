"""Deadlines: what is owed, by when."""

from datetime import date, timedelta

from django.db import models
from django.db.models import F, Q

from compliance.history import tracked
from compliance.models.access import OwnedByRegistration
from compliance.models.entities import Registration


class DeadlineQuerySet(OwnedByRegistration):
    """Deadlines, and the questions that people ask of them."""

    def unmet(self) -> "DeadlineQuerySet":
        """Still owed."""
        return self.filter(status=Deadline.Status.OWED)

    def due_within(self, days: int, *, today: date) -> "DeadlineQuerySet":
        """Owed, with a due date in the next days or already past."""
        return self.unmet().filter(due_on__lte=today + timedelta(days=days))


class Deadline(models.Model):
    """One duty of one registration for one period. Its due date never moves by itself."""

    class Status(models.TextChoices):
        """Whether it is still owed; open, due soon and overdue follow from the dates."""

        OWED = "owed", "Owed"
        MET = "met", "Met"
        WAIVED = "waived", "Waived"

    registration = models.ForeignKey(
        Registration, on_delete=models.PROTECT, related_name="deadlines"
    )
    duty = models.CharField(max_length=80, help_text="The duty's id in its pack.")
    title = models.CharField(max_length=200)
    period = models.CharField(max_length=20, help_text="For example 2026, or 2026-06-01.")
    opens_on = models.DateField(null=True, blank=True)
    due_on = models.DateField()
    fee = models.DecimalField(max_digits=12, decimal_places=2, null=True, blank=True)
    currency = models.CharField(max_length=3, default="USD")
    penalty = models.CharField(max_length=300, blank=True, help_text="What lateness costs.")
    portal = models.CharField(max_length=60, blank=True)
    form = models.CharField(max_length=60, blank=True)
    citation = models.CharField(max_length=300)
    confidence = models.CharField(max_length=10)
    pack_sha256 = models.CharField(max_length=64, help_text="The pack this was computed from.")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OWED)
    settled_on = models.DateField(null=True, blank=True)
    objects = DeadlineQuerySet.as_manager()
    history = tracked()

    class Meta:
        ordering = ["due_on", "id"]
        indexes = [
            models.Index(
                fields=["due_on", "id"], condition=Q(status="owed"), name="owed_by_due_date"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["registration", "duty", "period"],
                name="a_duty_is_owed_once_for_a_period",
            ),
            models.CheckConstraint(
                condition=Q(opens_on__isnull=True) | Q(opens_on__lte=F("due_on")),
                name="a_deadline_opens_before_it_is_due",
            ),
            models.CheckConstraint(
                condition=Q(status="owed", settled_on__isnull=True)
                | (~Q(status="owed") & Q(settled_on__isnull=False)),
                name="a_settled_deadline_says_when",
            ),
            models.CheckConstraint(
                condition=~Q(citation=""), name="nothing_statutory_lacks_a_citation"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title} {self.period}: {self.registration}"

    @property
    def needs_review(self) -> bool:
        """The law behind it is not certain; shown as such wherever it is shown."""
        return self.confidence != "high"
