"""Portals, intents and the review queue over the API."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ReadOnlyModelViewSet

from compliance.api import (
    SLUG,
    AnyOfFilter,
    ApiViewSet,
    ReasonSerializer,
    ScopedViewSet,
    SlugField,
    UsernameField,
    read_body,
)
from compliance.permissions import requires
from portals import fallout
from portals.cards import Card
from portals.models import Attempt, Intent, Lane, Portal, Resolution
from portals.registry import cards

WORK, RESEND = "portals.work_fallout", "portals.approve_resend"


@dataclass(frozen=True)
class Declared:
    """A portal's card, and its row once anything was queued for it."""

    card: Card
    row: Portal | None

    @property
    def is_enabled(self) -> bool:
        """A portal is on until an operator turns it off."""
        return self.row is None or self.row.is_enabled


def declared(chosen: Iterable[Card]) -> list[Declared]:
    """Cards with their rows."""
    rows = {row.slug: row for row in Portal.objects.select_related("lane")}
    return [Declared(card, rows.get(card.slug)) for card in chosen]


class LaneSerializer(serializers.ModelSerializer[Lane]):
    """Whether a lane is at work or held."""

    is_working = serializers.SerializerMethodField()

    class Meta:
        model = Lane
        fields = ["is_working", "paused_until", "pause_cause", "needs_person", "quiet_since"]

    def get_is_working(self, lane: Lane) -> bool:
        """Somebody owns it; who that is, is nobody's business outside."""
        return bool(lane.owner)


class LimitSerializer(serializers.Serializer[Any]):
    """At most so many requests in any so many seconds."""

    requests = serializers.IntegerField()
    seconds = serializers.FloatField()


class PortalSerializer(serializers.Serializer[Declared]):
    """What a portal is and allows, and the state of its lane."""

    slug = serializers.SlugField(source="card.slug")
    title = serializers.CharField(source="card.title")
    jurisdiction = serializers.CharField(source="card.jurisdiction", allow_blank=True)
    base_url = serializers.CharField(source="card.base_url")
    timezone = serializers.CharField(source="card.timezone")
    verified_on = serializers.DateField(source="card.verified_on")
    doubt_class = serializers.CharField(source="card.doubt_class")
    automation = serializers.CharField(source="card.automation")
    is_simulated = serializers.BooleanField(source="card.simulated")
    has_lookup = serializers.BooleanField(source="card.lookup")
    max_concurrency = serializers.IntegerField(source="card.max_concurrency")
    limits = LimitSerializer(source="card.limits", many=True)
    status_freshness_hours = serializers.IntegerField(source="card.status_freshness_hours")
    forms = serializers.ListField(source="card.forms", child=serializers.CharField())
    is_enabled = serializers.BooleanField()
    lane = LaneSerializer(source="row.lane", allow_null=True)


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One try, and how it ended."""

    class Meta:
        model = Attempt
        fields = [
            "no", "purpose", "armed_at", "ended_at", "outcome", "category", "rule", "detail",
            "payload_sha256", "answer_sha256",
        ]  # fmt: skip


class IntentSerializer(serializers.ModelSerializer[Intent]):
    """One thing to be done at one portal, and where it stands."""

    portfolio = SlugField()
    portal = SlugField()
    claimed_by = UsernameField(allow_null=True)

    class Meta:
        model = Intent
        fields = [
            "id", "kind", "subject_id", "portfolio", "portal", "is_read", "state", "rank", "cost",
            "deadline_at", "not_before", "tries", "sends", "first_sent_at", "last_sent_at",
            "resend_by", "number", "cause", "detail", "payload_sha256", "trace_id", "created_at",
            "settled_at", "claimed_by", "claimed_at",
        ]  # fmt: skip


class IntentWithAttemptsSerializer(IntentSerializer):
    """An intent with everything that was tried."""

    attempts = AttemptSerializer(many=True, read_only=True)

    class Meta(IntentSerializer.Meta):
        fields = [*IntentSerializer.Meta.fields, "attempts"]


class OfferSerializer(serializers.Serializer[Any]):
    """A way out of fallout, and why it is closed if it is."""

    verb = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    consequence = serializers.CharField()
    is_allowed = serializers.BooleanField()
    refusal = serializers.CharField(allow_blank=True)


class FalloutSerializer(IntentSerializer):
    """An item of the review queue."""

    cause_in_words = serializers.SerializerMethodField()

    class Meta(IntentSerializer.Meta):
        fields = [*IntentSerializer.Meta.fields, "cause_in_words"]

    def get_cause_in_words(self, intent: Intent) -> str:
        """Why it waits, as people say it."""
        return fallout.cause_in_words(intent)


class FalloutItemSerializer(FalloutSerializer):
    """An item with everything that was tried and what may be done about it."""

    attempts = AttemptSerializer(many=True, read_only=True)
    offers = serializers.SerializerMethodField()

    class Meta(FalloutSerializer.Meta):
        fields = [*FalloutSerializer.Meta.fields, "attempts", "offers"]

    @extend_schema_field(OfferSerializer(many=True))
    def get_offers(self, intent: Intent) -> Any:
        """Every verb, allowed or not."""
        return OfferSerializer(instance=fallout.offers(intent), many=True).data


class AdoptSerializer(ReasonSerializer):
    """The number that the portal gave, and how we know."""

    number = serializers.CharField(max_length=200)


class ResolutionSerializer(serializers.ModelSerializer[Resolution]):
    """What somebody decided, or asked for, about an item."""

    requested_by = UsernameField()
    approved_by = UsernameField(allow_null=True)

    class Meta:
        model = Resolution
        fields = [
            "id", "intent", "verb", "reason", "number", "requested_by", "requested_at",
            "approved_by", "closed_at", "was_carried_out",
        ]  # fmt: skip


class IntentFilter(filters.FilterSet):  # type: ignore[misc]
    """Intents by portfolio, portal, jurisdiction, kind, state and cause."""

    portfolio = filters.CharFilter("portfolio__slug")
    portal = filters.CharFilter("portal__slug")
    jurisdiction = filters.CharFilter("portal__jurisdiction")
    kind = filters.CharFilter("kind")
    state = AnyOfFilter("state", Intent.State.choices)
    cause = filters.CharFilter("cause")


class FalloutFilter(filters.FilterSet):  # type: ignore[misc]
    """Items by portfolio, portal, jurisdiction, kind, cause and who works on them."""

    portfolio = filters.CharFilter("portfolio__slug")
    portal = filters.CharFilter("portal__slug")
    jurisdiction = filters.CharFilter("portal__jurisdiction")
    kind = filters.CharFilter("kind")
    cause = filters.CharFilter("cause")
    claimed_by = filters.CharFilter("claimed_by__username")


class ResolutionFilter(filters.FilterSet):  # type: ignore[misc]
    """Resolutions that wait for a second person, or those that do not."""

    is_open = filters.BooleanFilter("closed_at", "isnull")
    verb = AnyOfFilter("verb", Resolution.Verb.choices)


class PortalViewSet(ApiViewSet):
    """Every portal that has a card, with the state of its lane."""

    queryset = Portal.objects.none()  # the cards are what is listed
    serializer_class = PortalSerializer
    filter_backends = []
    lookup_field = "slug"
    lookup_value_regex = SLUG

    @extend_schema(parameters=[OpenApiParameter("jurisdiction", str)])
    def list(self, request: Request) -> Response:
        """All portals, or those of one jurisdiction."""
        wanted = request.query_params.get("jurisdiction")
        chosen = [card for card in cards().values() if wanted in (None, card.jurisdiction)]
        page = self.paginate_queryset(declared(chosen))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, slug: str) -> Response:
        """One portal."""
        card = cards().get(slug)
        if card is None:
            raise Http404
        return Response(self.get_serializer(declared([card])[0]).data)


class IntentViewSet(ScopedViewSet):
    """Everything that is to be done at portals; one intent comes with its attempts."""

    queryset = Intent.objects.select_related("portfolio", "portal", "claimed_by")
    filterset_class = IntentFilter

    def get_serializer_class(self) -> type[IntentSerializer]:
        """Attempts only with a single intent: a list of all of them has no end."""
        return IntentWithAttemptsSerializer if self.action == "retrieve" else IntentSerializer


class FalloutViewSet(ScopedViewSet):
    """The review queue: what waits for a person, what costs most first."""

    queryset = (
        Intent.objects.fallout()
        .select_related("portfolio", "portal", "claimed_by")
        .order_by("-cost", "id")
    )
    filterset_class = FalloutFilter

    def get_serializer_class(self) -> type[FalloutSerializer]:
        """The verbs that are open only with a single item."""
        return FalloutSerializer if self.action == "list" else FalloutItemSerializer

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], permission_classes=[requires(WORK)])
    def claim(self, request: Request, pk: str) -> Response:
        """Take the item, so that no two people work on it. A claim lasts four hours."""
        item = fallout.claim_item(self.get_object(), by=self.actor)
        return Response(self.get_serializer(item).data)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], permission_classes=[requires(WORK)])
    def release(self, request: Request, pk: str) -> Response:
        """Give the item back to the queue."""
        item = fallout.release_item(self.get_object(), by=self.actor)
        return Response(self.get_serializer(item).data)

    @extend_schema(request=AdoptSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(WORK)])
    def adopt(self, request: Request, pk: str) -> Response:
        """Record that the portal has accepted it, with the number that it gave."""
        body = read_body(AdoptSerializer, request)
        item = fallout.adopt_item(self.get_object(), by=self.actor, **body)
        return Response(self.get_serializer(item).data)

    @extend_schema(request=ReasonSerializer, responses=ResolutionSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(WORK)])
    def withdraw(self, request: Request, pk: str) -> Response:
        """Ask to end it without sending; where it may have arrived, a second person decides."""
        body = read_body(ReasonSerializer, request)
        resolution = fallout.request_withdrawal(self.get_object(), by=self.actor, **body)
        return Response(ResolutionSerializer(resolution).data)

    @extend_schema(request=ReasonSerializer, responses=ResolutionSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(WORK)])
    def request_replay(self, request: Request, pk: str) -> Response:
        """Ask to send it again; where it may have arrived, a second person decides."""
        body = read_body(ReasonSerializer, request)
        resolution = fallout.request_replay(self.get_object(), by=self.actor, **body)
        return Response(ResolutionSerializer(resolution).data)


class ResolutionViewSet(ApiViewSet, ReadOnlyModelViewSet[Resolution]):
    """What was decided or asked for about items; what may have arrived takes a second person."""

    queryset = Resolution.objects.select_related("requested_by", "approved_by")
    serializer_class = ResolutionSerializer
    filterset_class = ResolutionFilter

    def get_queryset(self) -> QuerySet[Resolution]:
        """Only those about what the caller may see."""
        seen = Intent.objects.visible_to(self.request.user)
        return super().get_queryset().filter(intent__in=seen)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], permission_classes=[requires(RESEND)])
    def approve(self, request: Request, pk: str) -> Response:
        """Agree, as the second person, to what was asked for."""
        resolution = fallout.approve_resolution(self.get_object(), by=self.actor)
        return Response(self.get_serializer(resolution).data)

    @extend_schema(request=ReasonSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(RESEND)])
    def refuse(self, request: Request, pk: str) -> Response:
        """Decide against what was asked for; the item stays in the queue."""
        body = read_body(ReasonSerializer, request)
        resolution = fallout.refuse_resolution(self.get_object(), by=self.actor, **body)
        return Response(self.get_serializer(resolution).data)
