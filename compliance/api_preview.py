"""What the law would ask of an entity that need not exist, over the API."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api import ApiViewSet
from compliance.api_franchise_tax import MayRead
from compliance.preview import Question, preview_deadlines, shown
from compliance.rules import KINDS

MOST_TRAITS = 100


class QuestionSerializer(serializers.Serializer[Any]):
    """An entity as you describe it, and the days that you want to know of."""

    jurisdiction = serializers.CharField(max_length=6)
    entity_type = serializers.ChoiceField(choices=KINDS, source="kind")
    formed = serializers.DateField(source="formed_on")
    foreign = serializers.BooleanField(default=False, source="is_foreign")
    registered = serializers.DateField(allow_null=True, default=None, source="registered_on")
    fiscal_year_end = serializers.CharField(default="12-31", max_length=5, help_text="MM-DD")
    trait = serializers.ListField(
        child=serializers.CharField(max_length=60),
        default=list,
        max_length=MOST_TRAITS,
        source="traits",
        help_text="Each `only_if` of a pack that holds for it.",
    )
    event = serializers.ListField(
        child=serializers.CharField(max_length=60),
        default=list,
        max_length=MOST_TRAITS,
        source="events",
        help_text="What happened and when, each as NAME=YYYY-MM-DD.",
    )
    through = serializers.DateField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """With “from”, which Python keeps for itself."""
        return {**super().get_fields(), "from": serializers.DateField(source="since")}


class PreviewedDeadlineSerializer(serializers.Serializer[Any]):
    """A deadline as the law has it; nothing of it is kept."""

    duty = serializers.CharField()
    period = serializers.CharField()
    opens_on = serializers.DateField(allow_null=True)
    due_on = serializers.DateField()
    fee = serializers.CharField(allow_null=True)
    citation = serializers.CharField()
    confidence = serializers.CharField()


class PreviewViewSet(ApiViewSet):
    """The deadlines of an entity that need not be on file."""

    permission_classes = [MayRead]
    serializer_class = PreviewedDeadlineSerializer
    filter_backends = ()  # the whole list at once: there are no rows behind it
    pagination_class = None

    @extend_schema(
        request=QuestionSerializer, responses={200: PreviewedDeadlineSerializer(many=True)}
    )
    def create(self, request: Request) -> Response:
        """Tell the deadlines from one day to another. Ask in the body or in the address."""
        asked = QuestionSerializer(data=request.data or request.query_params)
        asked.is_valid(raise_exception=True)
        given = dict(asked.validated_data)
        several = {"traits": frozenset(given["traits"]), "events": tuple(given["events"])}
        question = Question(**{**given, **several})
        return Response([shown(owed) for owed in preview_deadlines(question)])
