"""Entities, what belongs to them, and their registrations."""

from datetime import timedelta

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils import timezone

from compliance.encryption import EncryptedTextField
from compliance.history import tracked
from compliance.models.access import OwnedByEntity, Portfolio, ScopedQuerySet

JURISDICTION = RegexValidator(
    r"^[A-Z]{2}(-[A-Z0-9]{1,3})?$", "Write a jurisdiction as ISO 3166-2, for example US-DE."
)


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
    title = models.CharField(
        max_length=100, help_text="For example: President, Director, Manager."
    )
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

    class Management(models.TextChoices):
        """Whether we look after it; only what is managed gets deadlines."""

        MANAGED = "managed", "Managed"
        DORMANT = "dormant", "Dormant"
        EXEMPT = "exempt", "Exempt"
        LET_LAPSE = "let_lapse", "Left to lapse"
        NOT_MANAGED = "not_managed", "Not managed by us"

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
    # What its conditional duties ask, each a trait that a pack names. Only `set_traits` writes it.
    traits = models.JSONField(default=list, blank=True, editable=False)
    management = models.CharField(
        max_length=20, choices=Management.choices, default=Management.MANAGED, editable=False
    )
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
        permissions = [("manage_registration", "Can begin or stop looking after a registration")]
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
            models.CheckConstraint(
                condition=Q(
                    management__in=["managed", "dormant", "exempt", "let_lapse", "not_managed"]
                ),
                name="a_registration_is_managed_in_a_known_way",
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
