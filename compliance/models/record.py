"""The record: the ledger with its head, and the events that others react to."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from compliance.models.access import Portfolio, ScopedQuerySet


class LedgerHead(models.Model):
    """The end of the chain. One row; whoever appends locks it last."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    size = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="there_is_one_ledger_head")]

    def __str__(self) -> str:
        return f"{self.size} entries, {self.digest[:12]}"


class LedgerEntry(models.Model):
    """One link of the chain. Database triggers refuse any change to it."""

    seq = models.PositiveBigIntegerField(primary_key=True)
    prev = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    body = models.BinaryField(help_text="The canonical bytes that the digest covers.")
    at = models.DateTimeField()
    type = models.CharField(max_length=60)
    actor = models.CharField(max_length=150)
    subject = models.CharField(max_length=80)
    portfolio = models.ForeignKey(
        Portfolio, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False
    )
    objects = ScopedQuerySet.as_manager()

    class Meta:
        ordering = ["-seq"]
        verbose_name_plural = "ledger entries"
        indexes = [models.Index(fields=["subject", "seq"], name="ledger_by_subject")]

    def __str__(self) -> str:
        return f"{self.seq} {self.type} {self.subject}"


class Event(models.Model):
    """What happened, for calendars, webhooks and alerts; written with the change itself."""

    type = models.CharField(max_length=60)
    portfolio = models.ForeignKey(Portfolio, on_delete=models.CASCADE, null=True)
    subject = models.CharField(max_length=80)
    data = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now)
    handled_at = models.DateTimeField(null=True, blank=True)
    objects = ScopedQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["id"], condition=Q(handled_at__isnull=True), name="unhandled_event"
            )
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.subject}"
