"""Deadlines: what is owed, by when."""

from datetime import date, timedelta

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q

from compliance.history import tracked
from compliance.models.access import OwnedByRegistration
from compliance.models.entities import Registration

DUE_SOON_DAYS = 30


class DeadlineQuerySet(OwnedByRegistration):
    """Deadlines, and the questions that people ask of them."""

    def unmet(self) -> "DeadlineQuerySet":
        """Still owed."""
        return self.filter(status=Deadline.Status.OWED)

    def due_within(self, days: int, *, today: date) -> "DeadlineQuerySet":
        """Owed, with a due date in the next days or already past."""
        return self.unmet().filter(due_on__lte=today + timedelta(days=days))

    def seen_to_by(self, user: User) -> "DeadlineQuerySet":
        """Those that this person owns or stands in for."""
        return self.filter(Q(owner=user) | Q(backup=user))

    def at_stage(self, stage: str, *, today: date) -> "DeadlineQuerySet":
        """Those that stand there on that day, as `Deadline.stage` has it."""
        soon = today + timedelta(days=DUE_SOON_DAYS)
        match stage:
            case Deadline.Stage.OVERDUE:
                return self.unmet().filter(due_on__lt=today)
            case Deadline.Stage.DUE_SOON:
                return self.unmet().filter(due_on__range=(today, soon))
            case Deadline.Stage.UPCOMING:
                return self.unmet().filter(due_on__gt=soon, opens_on__gt=today)
            case Deadline.Stage.OPEN:
                already = Q(opens_on__isnull=True) | Q(opens_on__lte=today)
                return self.unmet().filter(already, due_on__gt=soon)
            case _:
                return self.filter(status=stage)


class Deadline(models.Model):
    """One duty of one registration for one period. Its due date never moves by itself."""

    class Status(models.TextChoices):
        """Whether it is still owed; open, due soon and overdue follow from the dates."""

        OWED = "owed", "Owed"
        MET = "met", "Met"
        WAIVED = "waived", "Waived"
        NOT_DUE = "not_due", "Not due"  # its registration is not managed for now

    class Stage(models.TextChoices):
        """Where it stands on a day; follows from the status and the dates, and is never stored."""

        UPCOMING = "upcoming", "Upcoming"
        OPEN = "open", "Open"
        DUE_SOON = "due_soon", "Due soon"
        OVERDUE = "overdue", "Overdue"
        MET = "met", "Met"
        WAIVED = "waived", "Waived"
        NOT_DUE = "not_due", "Not due"

    registration = models.ForeignKey(
        # Found by the index of the constraint below.
        Registration, on_delete=models.PROTECT, related_name="deadlines", db_index=False,
    )  # fmt: skip
    duty = models.CharField(max_length=80, help_text="The duty's id in its pack.")
    title = models.CharField(max_length=200)
    period = models.CharField(max_length=20, help_text="For example 2026, or 2026-06-01.")
    opens_on = models.DateField(null=True, blank=True)
    due_on = models.DateField()
    target_on = models.DateField(
        null=True, blank=True, help_text="By when we mean to have filed; the law does not ask it."
    )
    owner = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="deadlines_owned"
    )
    backup = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="deadlines_backed_up"
    )
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
    # Its history is read by the deadline alone; each other index is written for every row.
    history = tracked(no_db_index=["registration", "owner", "backup"])

    class Meta:
        ordering = ["due_on", "id"]
        permissions = [("assign_deadline", "Can say who sees to a deadline")]
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
                condition=Q(target_on__isnull=True) | Q(target_on__lte=F("due_on")),
                name="a_target_is_not_after_the_due_date",
            ),
            models.CheckConstraint(
                condition=Q(owner__isnull=True) | Q(backup__isnull=True) | ~Q(owner=F("backup")),
                name="nobody_backs_up_themselves",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["owed", "not_due"], settled_on__isnull=True)
                | Q(status__in=["met", "waived"], settled_on__isnull=False),
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

    def stage(self, today: date) -> Stage:
        """Where it stands on that day. Overdue stays overdue: the date never rolls."""
        if self.status != self.Status.OWED:
            return self.Stage(self.status)
        if self.due_on < today:
            return self.Stage.OVERDUE
        if self.due_on - today <= timedelta(days=DUE_SOON_DAYS):
            return self.Stage.DUE_SOON
        if self.opens_on and today < self.opens_on:
            return self.Stage.UPCOMING
        return self.Stage.OPEN


class Reckoning(models.Model):
    """When a registration's deadlines were last worked out: from which law and facts, how far.

    While neither has changed and nobody asks about later days, there is nothing to work out.
    It repeats what other rows say, so it has no history and can be emptied at any time.
    """

    registration = models.OneToOneField(
        Registration, on_delete=models.CASCADE, primary_key=True, related_name="reckoning"
    )
    sha256 = models.CharField(max_length=64)
    through = models.DateField()

    def __str__(self) -> str:
        return f"{self.registration_id} through {self.through}"
