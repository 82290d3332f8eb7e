"""The facts of a registration over the API: what can be told of it, and the moves that tell it."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from compliance import facts
from compliance.api import (
    LARGEST_ID,
    RegistrationEventSerializer,
    RegistrationSerializer,
    read_body,
)
from compliance.api import RegistrationViewSet as ReadRegistrationViewSet
from compliance.models import Registration, RegistrationEvent
from compliance.permissions import requires

CHANGE = "compliance.change_registration"
MOST_TRAITS = 100


class TraitSerializer(serializers.Serializer[Any]):
    """A trait that decides a duty there, and whether it holds."""

    trait = serializers.CharField()
    words = serializers.CharField()
    holds = serializers.BooleanField()


class FactsSerializer(serializers.Serializer[Any]):
    """What can be told of a registration, what was, and what the figures on file suggest."""

    traits = TraitSerializer(many=True)
    events = RegistrationEventSerializer(many=True)
    hints = serializers.ListField(child=serializers.CharField())


class TraitsSerializer(serializers.Serializer[Any]):
    """All the traits that hold from now on."""

    traits = serializers.ListField(
        child=serializers.CharField(max_length=60), max_length=MOST_TRAITS
    )


class RecordEventSerializer(serializers.Serializer[Any]):
    """What happened, and when."""

    name = serializers.ChoiceField(choices=RegistrationEvent.Name.choices)
    happened_on = serializers.DateField()


class RetractEventSerializer(serializers.Serializer[Any]):
    """Which event did not happen, and why it was told."""

    event = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    reason = serializers.CharField(max_length=2000)


class RegistrationViewSet(ReadRegistrationViewSet):
    """Registrations, with the facts that decide their duties."""

    @extend_schema(responses=FactsSerializer)
    @action(detail=True)
    def facts(self, request: Request, pk: str) -> Response:
        """The traits and events of a registration, and what the figures on file suggest."""
        return Response(FactsSerializer(facts_told(self.get_object())).data)

    @extend_schema(request=TraitsSerializer, responses=RegistrationSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(CHANGE)])
    def set_traits(self, request: Request, pk: str) -> Response:
        """Say which traits hold. The next synchronisation makes the deadlines that follow."""
        row = self.get_object()
        asked = read_body(TraitsSerializer, request)
        row = facts.set_traits(row, traits=asked["traits"], by=self.actor)
        return Response(RegistrationSerializer(row).data)

    @extend_schema(request=RecordEventSerializer, responses=RegistrationEventSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(CHANGE)])
    def record_event(self, request: Request, pk: str) -> Response:
        """Tell that something happened. Telling it again gives the event there is."""
        row = self.get_object()
        asked = read_body(RecordEventSerializer, request)
        event = facts.record_event(row, by=self.actor, **asked)
        return Response(RegistrationEventSerializer(event).data)

    @extend_schema(request=RetractEventSerializer, responses=RegistrationEventSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(CHANGE)])
    def retract_event(self, request: Request, pk: str) -> Response:
        """Take back an event that was told by mistake."""
        row = self.get_object()
        asked = read_body(RetractEventSerializer, request)
        event = facts.event_of(row, asked["event"])
        event = facts.retract_event(event, by=self.actor, reason=asked["reason"])
        return Response(RegistrationEventSerializer(event).data)


def facts_told(row: Registration) -> dict[str, Any]:
    """The facts of a registration, as the answer shows them."""
    return {
        "traits": [
            {"trait": trait, "words": words, "holds": trait in row.traits}
            for trait, words in facts.known_traits(row).items()
        ],
        "events": row.events.all(),
        "hints": facts.hints_of(row),
    }
