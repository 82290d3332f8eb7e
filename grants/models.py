"""Funders, what they offer, and our applications to them."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from compliance.history import tracked
from compliance.models import Entity, Portfolio, ScopedQuerySet
from portals.road import Status


class Funder(models.Model):
    """Who gives. Its field rules are a folder under grants/funders."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=200)
    portal = models.CharField(max_length=60, help_text="The slug of the portal it takes them by.")
    history = tracked()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Opportunity(models.Model):
    """What a funder offers, and until when."""

    funder = models.ForeignKey(Funder, on_delete=models.PROTECT, related_name="opportunities")
    number = models.CharField(max_length=60)
    title = models.CharField(max_length=300)
    schema_version = models.PositiveSmallIntegerField(default=1)
    closes_at = models.DateTimeField()
    history = tracked()

    class Meta:
        verbose_name_plural = "opportunities"
        ordering = ["closes_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["funder", "number"], name="a_funder_numbers_its_opportunities"
            )
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.title}"


class GrantSubmission(models.Model):
    """Our application to an opportunity, from draft to accepted."""

    Status = Status

    portfolio = models.ForeignKey(Portfolio, on_delete=models.PROTECT)
    opportunity = models.ForeignKey(
        Opportunity, on_delete=models.PROTECT, related_name="submissions"
    )
    entity = models.ForeignKey(Entity, on_delete=models.PROTECT, related_name="grant_submissions")
    revision = models.PositiveSmallIntegerField(default=1)
    answers = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.DRAFT)
    prepared_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    approved_by = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    approved_at = models.DateTimeField(null=True, blank=True)
    payload_sha256 = models.CharField(max_length=64, blank=True)
    tracking_number = models.CharField(max_length=200, blank=True)
    reasons = models.JSONField(default=list, blank=True)
    cause = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    settled_at = models.DateTimeField(null=True, blank=True)
    objects = ScopedQuerySet.as_manager()
    history = tracked()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["status"], name="grant_by_status")]
        permissions = [
            ("prepare_grant", "Can open, edit and check grant submissions"),
            ("approve_grant", "Can approve grant submissions that others prepared"),
            ("withdraw_grant", "Can withdraw grant submissions"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["opportunity", "entity"],
                condition=~Q(status__in=["rejected", "withdrawn"]),
                name="an_entity_has_one_live_submission_to_an_opportunity",
            ),
            models.UniqueConstraint(
                fields=["opportunity", "entity", "revision"],
                name="revisions_of_a_grant_submission_are_numbered",
            ),
            models.CheckConstraint(
                condition=Q(approved_by__isnull=True) | ~Q(approved_by=F("prepared_by")),
                name="a_grant_is_approved_by_another_person",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["draft", "withdrawn"])
                | (Q(approved_by__isnull=False) & ~Q(payload_sha256="")),
                name="no_grant_is_sent_without_approval",
            ),
            models.CheckConstraint(
                condition=~Q(status="accepted") | ~Q(tracking_number=""),
                name="an_accepted_grant_has_its_number",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.entity} to {self.opportunity}"


class Attachment(models.Model):
    """A file of a grant submission, known by its digest."""

    submission = models.ForeignKey(
        GrantSubmission, on_delete=models.PROTECT, related_name="attachments"
    )
    name = models.CharField(max_length=150)
    file = models.FileField(upload_to="grants/%Y/%m/")
    content_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    history = tracked()

    class AttachmentQuerySet(ScopedQuerySet):
        """Attachments are seen by who sees their submission."""

        portfolio_path = "submission__portfolio"

    objects = AttachmentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["submission", "name"], name="attachments_of_a_submission_have_own_names"
            )
        ]

    def __str__(self) -> str:
        return self.name
