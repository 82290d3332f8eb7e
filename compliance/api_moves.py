"""The moves of deadlines and registrations over the API."""

from typing import Any

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api import DeadlineViewSet as ReadDeadlineViewSet
from compliance.api import ReasonSerializer, read_body
from compliance.api_facts import RegistrationViewSet as ToldRegistrationViewSet
from compliance.errors import NotAllowed, NotFound
from compliance.models import Deadline, Registration, people_of
from compliance.permissions import requires
from compliance.services import assign_deadlines, set_management

ASSIGN, MANAGE = "compliance.assign_deadline", "compliance.manage_registration"


class ManagementSerializer(ReasonSerializer):
    """How a registration is managed from now on, and why."""

    management = serializers.ChoiceField(Registration.Management.choices)


class PeopleSerializer(serializers.Serializer[Any]):
    """Who sees to a deadline and who stands in, by user name; null for nobody."""

    owner = serializers.CharField(max_length=150, allow_null=True)
    backup = serializers.CharField(max_length=150, allow_null=True)


class RegistrationViewSet(ToldRegistrationViewSet):
    """Registrations, with the move that begins or stops looking after one."""

    @extend_schema(request=ManagementSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(MANAGE)])
    def set_management(self, request: Request, pk: str) -> Response:
        """Begin or stop looking after it; its deadlines to come go, or come back."""
        body = read_body(ManagementSerializer, request)
        row = set_management(
            self.get_object(), body["management"], by=self.actor, reason=body["reason"]
        )
        return Response(self.get_serializer(row).data)


class DeadlineViewSet(ReadDeadlineViewSet):
    """Deadlines, with the move that names who sees to one."""

    @extend_schema(request=PeopleSerializer)
    @action(detail=True, methods=["post"], permission_classes=[requires(ASSIGN)])
    def assign(self, request: Request, pk: str) -> Response:
        """Name who sees to it and who stands in; both must be able to see its portfolio."""
        body = read_body(PeopleSerializer, request)
        row = self.get_object()
        people = {role: _person(row, username) for role, username in body.items()}
        if not assign_deadlines([row], by=self.actor, **people):
            raise NotAllowed("Only what is still owed can be assigned, and this is settled.")
        return Response(self.get_serializer(self.get_object()).data)


def _person(deadline: Deadline, username: str | None) -> User | None:
    """Somebody of the deadline's portfolio; whether others exist is not told."""
    if username is None:
        return None
    people = people_of([deadline.registration.entity.portfolio_id])
    found = people.filter(username=username).first()
    if found is None:
        raise NotFound(f"Nobody in this portfolio is called “{username}”. Check the user name.")
    return found
