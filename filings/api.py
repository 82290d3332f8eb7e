"""Filings, batches and standing checks over the API: reads, and one action for each move."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Sum
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api import (
    LARGEST_ID,
    AnyOfFilter,
    IdFilter,
    ReasonSerializer,
    ScopedViewSet,
    SlugField,
    UsernameField,
    read_body,
)
from compliance.api_facts import RegistrationViewSet as ReadRegistrationViewSet
from compliance.errors import NotFound
from compliance.models import Deadline, Registration
from compliance.permissions import requires
from filings import services
from filings.models import Batch, Filing, StatusCheck

PREPARE, APPROVE = "filings.prepare_filing", "filings.approve_filing"
WITHDRAW, CHECK = "filings.withdraw_filing", "filings.request_check"


class FilingSerializer(serializers.ModelSerializer[Filing]):
    """A filing, what it answers, and how far it has come."""

    portfolio = SlugField()
    registration = serializers.IntegerField(source="deadline.registration_id", read_only=True)
    entity = serializers.IntegerField(source="deadline.registration.entity_id", read_only=True)
    jurisdiction = serializers.CharField(
        source="deadline.registration.jurisdiction", read_only=True
    )
    title = serializers.CharField(source="deadline.title", read_only=True)
    period = serializers.CharField(source="deadline.period", read_only=True)
    due_on = serializers.DateField(source="deadline.due_on", read_only=True)
    currency = serializers.CharField(source="deadline.currency", read_only=True)
    answers = serializers.DictField(read_only=True)
    reasons = serializers.ListField(child=serializers.CharField(), read_only=True)
    prepared_by = UsernameField()
    approved_by = UsernameField(allow_null=True)

    class Meta:
        model = Filing
        fields = [
            "id", "portfolio", "entity", "registration", "jurisdiction", "deadline", "title",
            "period", "due_on", "batch", "revision", "portal", "form", "answers", "fee",
            "currency", "status", "prepared_by", "approved_by", "approved_at", "payload_sha256",
            "confirmation_number", "reasons", "cause", "created_at", "settled_at",
        ]  # fmt: skip


class OpenFilingSerializer(serializers.Serializer[Any]):
    """The deadline to be met."""

    deadline = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)


class AnswersSerializer(serializers.Serializer[Any]):
    """All answers of a draft; they take the place of those it has."""

    answers = serializers.DictField()


class ProblemsSerializer(serializers.Serializer[Any]):
    """What stands in the way of approving; empty if nothing does."""

    problems = serializers.ListField(child=serializers.CharField())


class BatchSerializer(serializers.ModelSerializer[Batch]):
    """Filings that were approved together, and what they cost."""

    portfolio = SlugField()
    prepared_by = UsernameField()
    approved_by = UsernameField(allow_null=True)
    fees = serializers.DecimalField(
        max_digits=18, decimal_places=2, read_only=True, allow_null=True
    )

    class Meta:
        model = Batch
        fields = ["id", "portfolio", "name", "prepared_by", "approved_by", "created_at", "fees"]


class StatusCheckSerializer(serializers.ModelSerializer[StatusCheck]):
    """One look at a registry, and what it said."""

    portfolio = serializers.SlugField(source="registration.entity.portfolio.slug", read_only=True)
    jurisdiction = serializers.CharField(source="registration.jurisdiction", read_only=True)
    requested_by = UsernameField()

    class Meta:
        model = StatusCheck
        fields = [
            "id", "portfolio", "registration", "jurisdiction", "portal", "requested_by",
            "requested_at", "ended_at", "standing", "words", "source", "sha256", "rule",
            "error_category", "detail",
        ]  # fmt: skip


class FilingFilter(filters.FilterSet):  # type: ignore[misc]
    """Filings by portfolio, jurisdiction, deadline, batch, portal, status and due date."""

    portfolio = filters.CharFilter("portfolio__slug")
    jurisdiction = filters.CharFilter("deadline__registration__jurisdiction")
    registration = IdFilter("deadline__registration_id")
    deadline = IdFilter("deadline_id")
    batch = IdFilter("batch_id")
    portal = filters.CharFilter("portal")
    status = AnyOfFilter("status", Filing.Status.choices)
    confirmation_number = filters.CharFilter("confirmation_number")
    due_from = filters.DateFilter("deadline__due_on", "gte")
    due_until = filters.DateFilter("deadline__due_on", "lte")


class BatchFilter(filters.FilterSet):  # type: ignore[misc]
    """Batches by portfolio."""

    portfolio = filters.CharFilter("portfolio__slug")


class StatusCheckFilter(filters.FilterSet):  # type: ignore[misc]
    """Looks by portfolio, jurisdiction, registration and what was read."""

    portfolio = filters.CharFilter("registration__entity__portfolio__slug")
    jurisdiction = filters.CharFilter("registration__jurisdiction")
    registration = IdFilter("registration_id")
    standing = AnyOfFilter("standing", Registration.Standing.choices)
    is_open = filters.BooleanFilter("ended_at", "isnull")


class FilingViewSet(ScopedViewSet):
    """Filings: opened, edited, checked, approved by another person, withdrawn."""

    queryset = Filing.objects.select_related(
        "portfolio", "deadline__registration__entity", "prepared_by", "approved_by"
    ).defer("deadline__registration__entity__tax_id")
    serializer_class = FilingSerializer
    filterset_class = FilingFilter

    def get_permissions(self) -> Sequence[Any]:
        """Opening and editing are moves too."""
        if self.action in ("create", "partial_update"):
            return [requires(PREPARE)()]
        return super().get_permissions()

    @extend_schema(request=OpenFilingSerializer, responses={201: FilingSerializer})
    def create(self, request: Request) -> Response:
        """Open a draft for a deadline. Asking again gives the filing that there is."""
        number = read_body(OpenFilingSerializer, request)["deadline"]
        deadline = Deadline.objects.visible_to(self.actor).filter(pk=number).first()
        if deadline is None:
            raise NotFound(f"There is no deadline {number}. List the deadlines to find its id.")
        filing = services.open_filing(deadline, by=self.actor)
        return Response(self.get_serializer(filing).data, status=201)

    @extend_schema(request=AnswersSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Replace the answers of a draft; whoever does is its preparer from then on."""
        body = read_body(AnswersSerializer, request)
        filing = services.edit_filing(self.get_object(), by=self.actor, **body)
        return Response(self.get_serializer(filing).data)

    @extend_schema(request=None, responses=ProblemsSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(PREPARE)])
    def check(self, request: Request, pk: str) -> Response:
        """Ask what stands in the way of approving it."""
        return Response({"problems": services.check_filing(self.get_object())})

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], permission_classes=[requires(APPROVE)])
    def approve(self, request: Request, pk: str) -> Response:
        """Release a draft that somebody else prepared to its lane."""
        filing = services.approve_filing(self.get_object(), by=self.actor)
        return Response(self.get_serializer(filing).data)

    @extend_schema(request=ReasonSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(WITHDRAW)])
    def withdraw(self, request: Request, pk: str) -> Response:
        """Take a filing back before anything of it has left."""
        body = read_body(ReasonSerializer, request)
        filing = services.withdraw_filing(self.get_object(), by=self.actor, **body)
        return Response(self.get_serializer(filing).data)


class BatchViewSet(ScopedViewSet):
    """Batches and the sum of their fees."""

    queryset = Batch.objects.select_related("portfolio", "prepared_by", "approved_by").annotate(
        fees=Sum("filings__fee")
    )
    serializer_class = BatchSerializer
    filterset_class = BatchFilter


class StatusCheckViewSet(ScopedViewSet):
    """Looks at registries, the newest first."""

    queryset = StatusCheck.objects.select_related(
        "registration__entity__portfolio", "requested_by"
    ).defer("registration__entity__tax_id")
    serializer_class = StatusCheckSerializer
    filterset_class = StatusCheckFilter


class RegistrationViewSet(ReadRegistrationViewSet):
    """Registrations, with the move that looks their standing up."""

    @extend_schema(request=None, responses=StatusCheckSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(CHECK)])
    def check_standing(self, request: Request, pk: str) -> Response:
        """Ask the registry for the standing. Asking again gives the look under way."""
        check = services.request_check(self.get_object(), by=self.actor)
        return Response(StatusCheckSerializer(check).data)
