"""Filings, the batches they travel in, and standing checks."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from compliance.history import tracked
from compliance.models import (
    Deadline,
    OwnedByRegistration,
    Portfolio,
    Registration,
    ScopedQuerySet,
)
from portals.road import Status


class Batch(models.Model):
    """Filings that were prepared and approved together."""

    portfolio = models.ForeignKey(Portfolio, on_delete=models.PROTECT)
    name = models.CharField(max_length=200)
    prepared_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    approved_by = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    created_at = models.DateTimeField(default=timezone.now)
    objects = ScopedQuerySet.as_manager()
    history = tracked()

    class Meta:
        verbose_name_plural = "batches"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(approved_by__isnull=True) | ~Q(approved_by=F("prepared_by")),
                name="a_batch_is_approved_by_another_person",
            )
        ]

    def __str__(self) -> str:
        return self.name


class Filing(models.Model):
    """Our record of meeting a deadline, from draft to accepted."""

    Status = Status
    LIVE = ("draft", "pending", "sending", "submitted", "in_doubt", "fallout", "accepted")

    portfolio = models.ForeignKey(Portfolio, on_delete=models.PROTECT)
    deadline = models.ForeignKey(Deadline, on_delete=models.PROTECT, related_name="filings")
    batch = models.ForeignKey(
        Batch, on_delete=models.PROTECT, related_name="filings", null=True, blank=True
    )
    revision = models.PositiveSmallIntegerField(default=1)
    portal = models.CharField(max_length=60)
    form = models.CharField(max_length=60)
    answers = models.JSONField(default=dict, blank=True)
    fee = models.DecimalField(max_digits=12, decimal_places=2)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.DRAFT)
    prepared_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    approved_by = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    approved_at = models.DateTimeField(null=True, blank=True)
    payload_sha256 = models.CharField(max_length=64, blank=True)
    confirmation_number = models.CharField(max_length=200, blank=True)
    reasons = models.JSONField(default=list, blank=True, help_text="Why the portal refused it.")
    cause = models.CharField(max_length=300, blank=True, help_text="Why it waits for a person.")
    created_at = models.DateTimeField(default=timezone.now)
    settled_at = models.DateTimeField(null=True, blank=True)
    objects = ScopedQuerySet.as_manager()
    history = tracked()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["status", "portal"], name="filing_by_status"),
            models.Index(fields=["confirmation_number"], name="filing_by_confirmation"),
        ]
        permissions = [
            ("prepare_filing", "Can open, edit and check filings"),
            ("approve_filing", "Can approve filings that others prepared"),
            ("withdraw_filing", "Can withdraw filings"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["deadline"],
                condition=~Q(status__in=["rejected", "withdrawn"]),
                name="a_deadline_has_one_live_filing",
            ),
            models.UniqueConstraint(
                fields=["deadline", "revision"], name="revisions_of_a_filing_are_numbered"
            ),
            models.CheckConstraint(
                condition=Q(approved_by__isnull=True) | ~Q(approved_by=F("prepared_by")),
                name="a_filing_is_approved_by_another_person",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["draft", "withdrawn"])
                | (Q(approved_by__isnull=False) & ~Q(payload_sha256="")),
                name="nothing_is_sent_without_approval",
            ),
            models.CheckConstraint(
                condition=~Q(status="accepted") | ~Q(confirmation_number=""),
                name="accepted_means_we_have_the_number",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.deadline.title} {self.deadline.period}: {self.deadline.registration}"


class StatusCheck(models.Model):
    """One look at what a registry says about a registration."""

    registration = models.ForeignKey(
        Registration, on_delete=models.PROTECT, related_name="status_checks"
    )
    portal = models.CharField(max_length=60)
    requested_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    standing = models.CharField(
        max_length=20, choices=Registration.Standing.choices, default=Registration.Standing.UNKNOWN
    )
    words = models.CharField(max_length=300, blank=True)
    source = models.CharField(max_length=500, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    rule = models.CharField(max_length=80, blank=True)
    error_category = models.CharField(max_length=20, blank=True)
    detail = models.TextField(blank=True)
    objects = OwnedByRegistration.as_manager()

    class Meta:
        ordering = ["-id"]
        permissions = [("request_check", "Can ask a registry for the standing of an entity")]
        constraints = [
            models.UniqueConstraint(
                fields=["registration"], condition=Q(ended_at__isnull=True),
                name="a_registration_has_one_live_check",
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"Standing of {self.registration}"
