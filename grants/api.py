"""Funders, opportunities and grant submissions over the API."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api import (
    SLUG,
    AnyOfFilter,
    IdFilter,
    ReasonSerializer,
    ScopedViewSet,
    SharedViewSet,
    SlugField,
    UsernameField,
    read_body,
)
from compliance.permissions import requires
from grants import services
from grants.models import Attachment, Funder, GrantSubmission, Opportunity

PREPARE, APPROVE = "grants.prepare_grant", "grants.approve_grant"
WITHDRAW = "grants.withdraw_grant"


class FunderSerializer(serializers.ModelSerializer[Funder]):
    """Who gives."""

    class Meta:
        model = Funder
        fields = ["id", "slug", "name", "portal"]


class OpportunitySerializer(serializers.ModelSerializer[Opportunity]):
    """What a funder offers, and until when."""

    funder = SlugField()

    class Meta:
        model = Opportunity
        fields = ["id", "funder", "number", "title", "schema_version", "closes_at"]


class AttachmentSerializer(serializers.ModelSerializer[Attachment]):
    """A file, known by its digest; its place on disk stays here."""

    class Meta:
        model = Attachment
        fields = ["id", "name", "content_type", "size", "sha256"]


class GrantSubmissionSerializer(serializers.ModelSerializer[GrantSubmission]):
    """An application, what it answers, and how far it has come."""

    portfolio = SlugField()
    answers = serializers.DictField(read_only=True)
    reasons = serializers.ListField(child=serializers.CharField(), read_only=True)
    prepared_by = UsernameField()
    approved_by = UsernameField(allow_null=True)
    attachments = AttachmentSerializer(many=True, read_only=True)

    class Meta:
        model = GrantSubmission
        fields = [
            "id", "portfolio", "opportunity", "entity", "revision", "answers", "status",
            "prepared_by", "approved_by", "approved_at", "payload_sha256", "tracking_number",
            "reasons", "cause", "created_at", "settled_at", "attachments",
        ]  # fmt: skip


class FlagSerializer(serializers.Serializer[Any]):
    """One thing that stands in the way, or that somebody should look at."""

    flag = serializers.CharField()
    at = serializers.CharField(allow_blank=True)
    sentence = serializers.CharField()
    severity = serializers.CharField()


class FlagsSerializer(serializers.Serializer[Any]):
    """What a check found; nothing CRITICAL among it means that it can be approved."""

    problems = FlagSerializer(many=True)


class OpportunityFilter(filters.FilterSet):  # type: ignore[misc]
    """Opportunities by funder, number and closing date."""

    funder = filters.CharFilter("funder__slug")
    number = filters.CharFilter("number")
    closes_from = filters.DateFilter("closes_at__date", "gte")
    closes_until = filters.DateFilter("closes_at__date", "lte")


class GrantSubmissionFilter(filters.FilterSet):  # type: ignore[misc]
    """Submissions by portfolio, funder, opportunity, entity, status and closing date."""

    portfolio = filters.CharFilter("portfolio__slug")
    funder = filters.CharFilter("opportunity__funder__slug")
    opportunity = IdFilter("opportunity_id")
    entity = IdFilter("entity_id")
    status = AnyOfFilter("status", GrantSubmission.Status.choices)
    closes_from = filters.DateFilter("opportunity__closes_at__date", "gte")
    closes_until = filters.DateFilter("opportunity__closes_at__date", "lte")


class FunderViewSet(SharedViewSet):
    """Funders that we know."""

    queryset = Funder.objects.order_by("name", "id")
    serializer_class = FunderSerializer
    lookup_field = "slug"
    lookup_value_regex = SLUG


class OpportunityViewSet(SharedViewSet):
    """Opportunities, the next to close first."""

    queryset = Opportunity.objects.select_related("funder").order_by("closes_at", "id")
    serializer_class = OpportunitySerializer
    filterset_class = OpportunityFilter


class GrantSubmissionViewSet(ScopedViewSet):
    """Our applications: checked, approved by another person, withdrawn."""

    queryset = GrantSubmission.objects.select_related(
        "portfolio", "prepared_by", "approved_by"
    ).prefetch_related("attachments")
    serializer_class = GrantSubmissionSerializer
    filterset_class = GrantSubmissionFilter

    @extend_schema(request=None, responses=FlagsSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(PREPARE)])
    def check(self, request: Request, pk: str) -> Response:
        """Ask what stands in the way of approving it."""
        problems = services.check_submission(self.get_object())
        return Response(FlagsSerializer({"problems": problems}).data)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], permission_classes=[requires(APPROVE)])
    def approve(self, request: Request, pk: str) -> Response:
        """Release a draft that somebody else prepared to its lane."""
        submission = services.approve_submission(self.get_object(), by=self.actor)
        return Response(self.get_serializer(submission).data)

    @extend_schema(request=ReasonSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(WITHDRAW)])
    def withdraw(self, request: Request, pk: str) -> Response:
        """Take a submission back before anything of it has left."""
        body = read_body(ReasonSerializer, request)
        submission = services.withdraw_submission(self.get_object(), by=self.actor, **body)
        return Response(self.get_serializer(submission).data)
