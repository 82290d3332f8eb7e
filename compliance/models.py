"""Portfolios, entities, registrations, deadlines; the ledger and its events."""

from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils import timezone
from knox.models import AbstractAuthToken

from compliance.encryption import EncryptedTextField
from compliance.history import tracked

JURISDICTION = RegexValidator(
    r"^[A-Z]{2}(-[A-Z0-9]{1,3})?$", "Write a jurisdiction as ISO 3166-2, for example US-DE."
)


class ScopedQuerySet(models.QuerySet[Any]):
    """Rows that belong to a portfolio; nobody sees another's."""

    portfolio_path = "portfolio"

    def visible_to(self, user: User | AnonymousUser) -> "ScopedQuerySet":
        """The rows of the portfolios that this user is a member of."""
        if not user.is_active:
            return self.none()
        if user.is_superuser:
            return self
        return self.filter(**{f"{self.portfolio_path}__in": Portfolio.ids_of(user)})


class OwnedByEntity(ScopedQuerySet):
    """Rows that reach their portfolio through their entity."""

    portfolio_path = "entity__portfolio"


class OwnedByRegistration(ScopedQuerySet):
    """Rows that reach their portfolio through their registration."""

    portfolio_path = "registration__entity__portfolio"


class Portfolio(models.Model):
    """A client or business unit: the boundary of what a user may see."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    members = models.ManyToManyField(User, through="Membership", related_name="portfolios")
    history = tracked()

    class PortfolioQuerySet(ScopedQuerySet):
        """Portfolios are scoped by themselves."""

        portfolio_path = "pk"

    objects = PortfolioQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def ids_of(user: User | AnonymousUser) -> "models.QuerySet[Membership, int]":
        """The ids of a user's portfolios, as a subquery."""
        mine = Membership.objects.filter(user__pk=user.pk or 0)
        return mine.values_list("portfolio_id", flat=True)


class Membership(models.Model):
    """One person's place in one portfolio. What they may do there is a matter of their groups."""

    portfolio = models.ForeignKey(Portfolio, on_delete=models.CASCADE)
    user = models.ForeignKey(User, on_delete=models.CASCADE)
    history = tracked()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["portfolio", "user"], name="a_user_is_a_member_of_a_portfolio_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.portfolio}"


class Entity(models.Model):
    """A corporation, LLC, nonprofit or limited partnership."""

    class Kind(models.TextChoices):
        """The families that the law of every state tells apart."""

        CORPORATION = "corporation", "Corporation"
        LLC = "llc", "LLC"
        NONPROFIT = "nonprofit", "Nonprofit corporation"
        LP = "lp", "Limited partnership"

    portfolio = models.ForeignKey(Portfolio, on_delete=models.PROTECT, related_name="entities")
    external_id = models.CharField(
        max_length=100, blank=True, help_text="The id of this entity in your own system."
    )
    name = models.CharField(max_length=300, help_text="Exactly as registered in its home state.")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    home_jurisdiction = models.CharField(max_length=6, validators=[JURISDICTION])
    formed_on = models.DateField()
    fiscal_year_end_month = models.PositiveSmallIntegerField(default=12)
    fiscal_year_end_day = models.PositiveSmallIntegerField(default=31)
    tax_id = EncryptedTextField(
        blank=True, default="", help_text="EIN. Encrypted; shown to nobody in full."
    )
    gross_assets = models.DecimalField(
        max_digits=18, decimal_places=2, null=True, blank=True,
        help_text="Total gross assets in US dollars, Form 1120 Schedule L.",
    )  # fmt: skip
    objects = ScopedQuerySet.as_manager()
    history = tracked(excluded_fields=["tax_id"])

    class Meta:
        verbose_name_plural = "entities"
        ordering = ["name"]
        indexes = [models.Index(Lower("name"), name="entity_by_name")]
        constraints = [
            models.UniqueConstraint(
                fields=["portfolio", "external_id"],
                condition=~Q(external_id=""),
                name="an_external_id_names_one_entity_of_a_portfolio",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["corporation", "llc", "nonprofit", "lp"]),
                name="an_entity_is_of_a_known_kind",
            ),
            models.CheckConstraint(
                condition=Q(fiscal_year_end_month__range=(1, 12))
                & Q(fiscal_year_end_day__range=(1, 31)),
                name="a_fiscal_year_ends_on_a_day_of_a_month",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Officer(models.Model):
    """A person or firm that runs an entity: director, officer, member, manager, partner."""

    entity = models.ForeignKey(Entity, on_delete=models.CASCADE, related_name="officers")
    name = models.CharField(max_length=200)
    title = models.CharField(max_length=100, help_text="For example: President, Director, Manager.")
    address = models.CharField(max_length=400, blank=True)
    since = models.DateField(null=True, blank=True)
    until = models.DateField(null=True, blank=True)
    objects = OwnedByEntity.as_manager()
    history = tracked()

    class Meta:
        ordering = ["entity", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(until__isnull=True) | Q(since__isnull=True) | Q(until__gte=F("since")),
                name="an_officer_leaves_after_taking_office",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name}, {self.title}"


class Address(models.Model):
    """Where an entity is to be found."""

    class Use(models.TextChoices):
        """What a state asks an address for."""

        PRINCIPAL = "principal", "Principal office"
        MAILING = "mailing", "Mailing"
        PROCESS = "process", "Service of process"

    entity = models.ForeignKey(Entity, on_delete=models.CASCADE, related_name="addresses")
    use = models.CharField(max_length=20, choices=Use.choices)
    street = models.CharField(max_length=200)
    city = models.CharField(max_length=100)
    region = models.CharField(max_length=100, blank=True)
    postal_code = models.CharField(max_length=20, blank=True)
    country = models.CharField(max_length=2, default="US")
    objects = OwnedByEntity.as_manager()
    history = tracked()

    class Meta:
        verbose_name_plural = "addresses"
        constraints = [
            models.UniqueConstraint(
                fields=["entity", "use"], name="an_entity_has_one_address_for_each_use"
            )
        ]

    def __str__(self) -> str:
        return ", ".join(filter(None, [self.street, self.city, self.region, self.postal_code]))


class ShareClass(models.Model):
    """A class of stock, as the charter authorizes it."""

    entity = models.ForeignKey(Entity, on_delete=models.CASCADE, related_name="share_classes")
    name = models.CharField(max_length=100, default="Common")
    authorized = models.PositiveBigIntegerField()
    issued = models.PositiveBigIntegerField(default=0)
    par_value = models.DecimalField(
        max_digits=18, decimal_places=8, null=True, blank=True, validators=[MinValueValidator(0)],
        help_text="Leave empty for stock without par value.",
    )  # fmt: skip
    objects = OwnedByEntity.as_manager()
    history = tracked()

    class Meta:
        verbose_name_plural = "share classes"
        constraints = [
            models.UniqueConstraint(
                fields=["entity", "name"], name="an_entity_has_one_share_class_of_a_name"
            ),
            models.CheckConstraint(
                condition=Q(issued__lte=F("authorized")),
                name="no_more_shares_are_issued_than_authorized",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.authorized:,} authorized"


class Registration(models.Model):
    """An entity in one jurisdiction, at home or as a foreign entity, and its standing there."""

    class Standing(models.TextChoices):
        """What a registry last said; unknown until it has said something we can read."""

        ACTIVE = "active", "Active"
        DELINQUENT = "delinquent", "Delinquent"
        SUSPENDED = "suspended", "Suspended"
        DISSOLVED = "dissolved", "Dissolved"
        NOT_LISTED = "not_listed", "Not listed"
        PENDING_REVIEW = "pending_review", "Pending review"
        UNKNOWN = "unknown", "Unknown"

    entity = models.ForeignKey(Entity, on_delete=models.PROTECT, related_name="registrations")
    jurisdiction = models.CharField(max_length=6, validators=[JURISDICTION])
    is_foreign = models.BooleanField(
        default=False, help_text="Registered here, but formed in another jurisdiction."
    )
    file_number = models.CharField(max_length=50, help_text="The registry's number for it.")
    name_as_registered = models.CharField(
        max_length=300, blank=True, help_text="Only where it differs from the entity's name."
    )
    registered_on = models.DateField()
    ended_on = models.DateField(null=True, blank=True, help_text="Withdrawn or dissolved by us.")
    registered_agent = models.CharField(max_length=300, blank=True)
    standing = models.CharField(
        max_length=20, choices=Standing.choices, default=Standing.UNKNOWN, editable=False
    )
    standing_words = models.CharField(max_length=300, blank=True, editable=False)
    standing_source = models.CharField(max_length=500, blank=True, editable=False)
    standing_read_at = models.DateTimeField(null=True, blank=True, editable=False)
    standing_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    standing_fresh_hours = models.PositiveIntegerField(default=72, editable=False)
    objects = OwnedByEntity.as_manager()
    history = tracked()

    class Meta:
        ordering = ["jurisdiction", "file_number"]
        indexes = [
            models.Index(fields=["jurisdiction", "standing"], name="registration_by_standing"),
            models.Index(fields=["file_number"], name="registration_by_file_number"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["jurisdiction", "file_number", "entity"],
                name="an_entity_has_a_file_number_once_in_a_jurisdiction",
            ),
            models.CheckConstraint(
                condition=Q(standing="unknown") | Q(standing_read_at__isnull=False),
                name="a_known_standing_says_when_it_was_read",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.jurisdiction}"

    @property
    def name(self) -> str:
        """The name under which this registry knows the entity."""
        return self.name_as_registered or self.entity.name

    @property
    def standing_is_stale(self) -> bool:
        """Evidence older than its portal's limit is shown as stale, never as current."""
        if self.standing_read_at is None:
            return False
        return timezone.now() - self.standing_read_at > timedelta(hours=self.standing_fresh_hours)


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


class LedgerHead(models.Model):
    """The end of the chain. One row; whoever appends locks it last."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    size = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="there_is_one_ledger_head")
        ]

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
            models.Index(fields=["id"], condition=Q(handled_at__isnull=True), name="unhandled_event")
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.subject}"


class ApiToken(AbstractAuthToken):  # type: ignore[misc]
    """A token of the API: only its digest is kept; it can do what its scopes name, no more."""

    name = models.CharField(max_length=100)
    scopes = models.JSONField(
        default=list, help_text='For example ["read", "filings.prepare", "filings.approve"].'
    )

    def __str__(self) -> str:
        return f"{self.name} ({self.user})"
