"""What is owed, and the proof, over the API; and what all rooms' parts of the API share."""

from typing import Any, NoReturn, cast

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.plumbing import build_bearer_security_scheme_object
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet, ReadOnlyModelViewSet

from compliance.models import (
    Address,
    Deadline,
    Entity,
    Event,
    LedgerEntry,
    Officer,
    Portfolio,
    Registration,
    RegistrationEvent,
    ShareClass,
)

LARGEST_ID = 2**63 - 1
SLUG = "[-a-zA-Z0-9_]+"
NUMBER = "[0-9]+"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document tells of our tokens."""

    target_class = "compliance.api_auth.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """`Authorization: Token gst_…`."""
        return build_bearer_security_scheme_object("Authorization", "Token")


class ApiViewSet(GenericViewSet[Any]):
    """What every part of the API does the same way."""

    lookup_value_regex = NUMBER

    @property
    def actor(self) -> User:
        """The person or service that calls; permissions have let nobody else through."""
        return cast(User, self.request.user)

    def permission_denied(
        self, request: Request, message: str | None = None, code: str | None = None
    ) -> NoReturn:
        """A method that nobody wrote is 405 to whoever is known: no permission would help."""
        if not self.action and request.user.is_authenticated:
            raise MethodNotAllowed(str(request.method))
        super().permission_denied(request, message=message, code=code)


class SharedViewSet(ApiViewSet, ReadOnlyModelViewSet[Any]):
    """Rows that belong to no portfolio: whoever may read, reads them."""


class ScopedViewSet(ApiViewSet, ReadOnlyModelViewSet[Any]):
    """Rows of the caller's own portfolios. Another's does not exist: 404, never 403."""

    def get_queryset(self) -> QuerySet[Any]:
        """Only what the caller may see."""
        rows = cast(Any, super().get_queryset())
        return cast("QuerySet[Any]", rows.visible_to(self.request.user))


def read_body(kind: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    """The body of a move, checked; a wrong one is answered with where it is wrong."""
    serializer = kind(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


class UsernameField(serializers.SlugRelatedField[User]):
    """A person, by user name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(slug_field="username", read_only=True, **options)


class SlugField(serializers.SlugRelatedField[Any]):
    """A portfolio or a portal, by slug."""

    def __init__(self, **options: Any) -> None:
        super().__init__(slug_field="slug", read_only=True, **options)


class ReasonSerializer(serializers.Serializer[Any]):
    """Why; it goes on the ledger."""

    reason = serializers.CharField(max_length=2000)


class IdFilter(filters.NumberFilter):  # type: ignore[misc]
    """An id that a database integer can hold. It never tells whether the row exists."""

    def __init__(self, field_name: str, lookup_expr: str = "exact") -> None:
        super().__init__(
            field_name, lookup_expr, min_value=0, max_value=LARGEST_ID, decimal_places=0
        )


class AnyOfFilter(filters.MultipleChoiceFilter):  # type: ignore[misc]
    """One or more of the choices: `?status=draft&status=pending`."""

    def __init__(self, field_name: str, choices: Any) -> None:
        super().__init__(field_name, choices=choices, distinct=False)


class OfficerSerializer(serializers.ModelSerializer[Officer]):
    """A person or firm that runs an entity."""

    class Meta:
        model = Officer
        fields = ["id", "name", "title", "address", "since", "until"]


class AddressSerializer(serializers.ModelSerializer[Address]):
    """Where an entity is to be found."""

    class Meta:
        model = Address
        fields = ["id", "use", "street", "city", "region", "postal_code", "country"]


class ShareClassSerializer(serializers.ModelSerializer[ShareClass]):
    """A class of stock."""

    class Meta:
        model = ShareClass
        fields = ["id", "name", "authorized", "issued", "par_value"]


class PortfolioSerializer(serializers.ModelSerializer[Portfolio]):
    """A client or business unit."""

    class Meta:
        model = Portfolio
        fields = ["id", "slug", "name"]


class EntitySerializer(serializers.ModelSerializer[Entity]):
    """An entity without its tax id, which leaves only in a filing."""

    portfolio = SlugField()
    officers = OfficerSerializer(many=True, read_only=True)
    addresses = AddressSerializer(many=True, read_only=True)
    share_classes = ShareClassSerializer(many=True, read_only=True)

    class Meta:
        model = Entity
        fields = [
            "id", "portfolio", "external_id", "name", "kind", "home_jurisdiction", "formed_on",
            "fiscal_year_end_month", "fiscal_year_end_day", "gross_assets", "officers",
            "addresses", "share_classes",
        ]  # fmt: skip


class RegistrationEventSerializer(serializers.ModelSerializer[RegistrationEvent]):
    """Something that happened to a registration and that a duty counts from."""

    class Meta:
        model = RegistrationEvent
        fields = ["id", "name", "happened_on", "retracted_at"]


class RegistrationSerializer(serializers.ModelSerializer[Registration]):
    """An entity in one jurisdiction, with what its registry last said and when."""

    portfolio = serializers.SlugField(source="entity.portfolio.slug", read_only=True)
    name = serializers.CharField(read_only=True)
    traits = serializers.ListField(child=serializers.CharField(), read_only=True)
    events = RegistrationEventSerializer(many=True, read_only=True)

    class Meta:
        model = Registration
        fields = [
            "id", "portfolio", "entity", "name", "jurisdiction", "is_foreign", "file_number",
            "registered_on", "ended_on", "registered_agent", "management", "traits", "events",
            "standing",
            "standing_words", "standing_source", "standing_read_at", "standing_sha256",
            "standing_is_stale",
        ]  # fmt: skip


class DeadlineSerializer(serializers.ModelSerializer[Deadline]):
    """What is owed, by when, by which law."""

    portfolio = serializers.SlugField(source="registration.entity.portfolio.slug", read_only=True)
    entity = serializers.IntegerField(source="registration.entity_id", read_only=True)
    jurisdiction = serializers.CharField(source="registration.jurisdiction", read_only=True)
    stage = serializers.SerializerMethodField()
    owner = UsernameField(allow_null=True)
    backup = UsernameField(allow_null=True)

    class Meta:
        model = Deadline
        fields = [
            "id", "portfolio", "entity", "registration", "jurisdiction", "duty", "title",
            "period", "opens_on", "due_on", "target_on", "owner", "backup", "fee", "currency",
            "penalty", "portal", "form", "citation", "confidence", "needs_review", "pack_sha256",
            "status", "stage", "settled_on",
        ]  # fmt: skip

    @extend_schema_field(serializers.ChoiceField(Deadline.Stage.choices))
    def get_stage(self, row: Deadline) -> str:
        """Where it stands today."""
        return row.stage(timezone.localdate())


class LedgerEntrySerializer(serializers.ModelSerializer[LedgerEntry]):
    """An entry with the bytes that its digest covers: sha256(prev ‖ body)."""

    portfolio = SlugField(allow_null=True)
    body = serializers.SerializerMethodField()

    class Meta:
        model = LedgerEntry
        fields = ["seq", "prev", "digest", "body", "at", "type", "actor", "subject", "portfolio"]

    def get_body(self, entry: LedgerEntry) -> str:
        """The canonical JSON, as text; its UTF-8 bytes are what was hashed."""
        return bytes(entry.body).decode()


class EventSerializer(serializers.ModelSerializer[Event]):
    """Something that happened."""

    portfolio = SlugField(allow_null=True)
    data = serializers.DictField(read_only=True)  # type: ignore[assignment]

    class Meta:
        model = Event
        fields = ["id", "type", "portfolio", "subject", "data", "at"]


class EntityFilter(filters.FilterSet):  # type: ignore[misc]
    """Entities by portfolio, kind, home and your own id."""

    portfolio = filters.CharFilter("portfolio__slug")
    jurisdiction = filters.CharFilter("home_jurisdiction")
    kind = AnyOfFilter("kind", Entity.Kind.choices)
    external_id = filters.CharFilter("external_id")


class RegistrationFilter(filters.FilterSet):  # type: ignore[misc]
    """Registrations by portfolio, entity, jurisdiction, number and standing."""

    portfolio = filters.CharFilter("entity__portfolio__slug")
    entity = IdFilter("entity_id")
    jurisdiction = filters.CharFilter("jurisdiction")
    file_number = filters.CharFilter("file_number")
    standing = AnyOfFilter("standing", Registration.Standing.choices)


class DeadlineFilter(filters.FilterSet):  # type: ignore[misc]
    """Deadlines by portfolio, registration, jurisdiction, status, stage, person and due date."""

    portfolio = filters.CharFilter("registration__entity__portfolio__slug")
    registration = IdFilter("registration_id")
    jurisdiction = filters.CharFilter("registration__jurisdiction")
    duty = filters.CharFilter("duty")
    status = AnyOfFilter("status", Deadline.Status.choices)
    stage = filters.ChoiceFilter(choices=Deadline.Stage.choices, method="at_stage")
    mine = filters.BooleanFilter(method="seen_to_by_me")
    due_from = filters.DateFilter("due_on", "gte")
    due_until = filters.DateFilter("due_on", "lte")

    def at_stage(self, rows: Any, name: str, value: str) -> Any:
        """Where they stand today."""
        return rows.at_stage(value, today=timezone.localdate())

    def seen_to_by_me(self, rows: Any, name: str, value: bool) -> Any:  # noqa: FBT001 - its call
        """Those that the caller owns or stands in for, or all the others."""
        mine = Deadline.objects.seen_to_by(self.request.user).values("pk")
        return rows.filter(pk__in=mine) if value else rows.exclude(pk__in=mine)


class LedgerFilter(filters.FilterSet):  # type: ignore[misc]
    """Entries by portfolio, subject and type, or all after one that you have."""

    portfolio = filters.CharFilter("portfolio__slug")
    subject = filters.CharFilter("subject")
    type = filters.CharFilter("type")
    after = IdFilter("seq", "gt")


class EventFilter(filters.FilterSet):  # type: ignore[misc]
    """Events by portfolio, subject and type, or all after one that you have."""

    portfolio = filters.CharFilter("portfolio__slug")
    subject = filters.CharFilter("subject")
    type = filters.CharFilter("type")
    after = IdFilter("id", "gt")


class PortfolioViewSet(ScopedViewSet):
    """The caller's portfolios."""

    queryset = Portfolio.objects.order_by("name", "id")
    serializer_class = PortfolioSerializer
    lookup_field = "slug"
    lookup_value_regex = SLUG


class EntityViewSet(ScopedViewSet):
    """Entities with their officers, addresses and share classes."""

    queryset = (
        Entity.objects.select_related("portfolio")
        .prefetch_related("officers", "addresses", "share_classes")
        .defer("tax_id")  # not even decrypted here
        .order_by("id")
    )
    serializer_class = EntitySerializer
    filterset_class = EntityFilter


class RegistrationViewSet(ScopedViewSet):
    """Registrations and their standing."""

    queryset = (
        Registration.objects.select_related("entity__portfolio")
        .prefetch_related("events")
        .defer("entity__tax_id")
        .order_by("id")
    )
    serializer_class = RegistrationSerializer
    filterset_class = RegistrationFilter


class DeadlineViewSet(ScopedViewSet):
    """Deadlines, the nearest first."""

    queryset = Deadline.objects.select_related(
        "registration__entity__portfolio", "owner", "backup"
    ).defer("registration__entity__tax_id")
    serializer_class = DeadlineSerializer
    filterset_class = DeadlineFilter


class LedgerViewSet(ScopedViewSet):
    """The caller's entries of the ledger, the newest first."""

    queryset = LedgerEntry.objects.select_related("portfolio")
    serializer_class = LedgerEntrySerializer
    filterset_class = LedgerFilter


class EventViewSet(ScopedViewSet):
    """What happened, the newest first."""

    queryset = Event.objects.select_related("portfolio")
    serializer_class = EventSerializer
    filterset_class = EventFilter
