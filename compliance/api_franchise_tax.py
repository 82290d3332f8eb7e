"""Delaware's franchise tax over the API: for given shares, and for an entity on file."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api import ApiViewSet, read_body
from compliance.api import EntityViewSet as ReadEntityViewSet
from compliance.franchise_tax import MOST_SHARES, PAR_DECIMALS, Shares, Stock, worksheet
from compliance.permissions import READ, Scoped, token_allows
from compliance.worksheets import account, worksheet_of

MOST_CLASSES = 1_000


class MayRead(Scoped):
    """Whoever may read may compute: it changes nothing, although it is asked by POST."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Any method, for a logged-in user whose token may read."""
        return bool(request.user.is_authenticated) and token_allows(request, READ)


class SharesSerializer(serializers.Serializer[Any]):
    """A class of stock; without a par value, it is no-par stock."""

    authorized = serializers.IntegerField(min_value=1, max_value=MOST_SHARES)
    par_value = serializers.DecimalField(
        max_digits=28, decimal_places=PAR_DECIMALS, allow_null=True, default=None
    )


class StockSerializer(serializers.Serializer[Any]):
    """What the tax is computed from, and for lateness the day of filing."""

    share_classes = serializers.ListField(
        child=SharesSerializer(), max_length=MOST_CLASSES, default=list
    )
    issued = serializers.IntegerField(
        min_value=0, max_value=MOST_SHARES, allow_null=True, default=None
    )
    gross_assets = serializers.DecimalField(
        max_digits=18, decimal_places=2, min_value=0, allow_null=True, default=None
    )
    is_nonstock = serializers.BooleanField(default=False)
    is_exempt = serializers.BooleanField(default=False)
    is_large_corporate_filer = serializers.BooleanField(default=False)
    filed_on = serializers.DateField(allow_null=True, default=None)
    tax_year = serializers.IntegerField(allow_null=True, default=None)


class StepSerializer(serializers.Serializer[Any]):
    """One line of a computation."""

    words = serializers.CharField()
    result = serializers.CharField()
    cite = serializers.CharField()


class MethodSerializer(serializers.Serializer[Any]):
    """A method's tax, or the reason why it gives none."""

    title = serializers.CharField()
    tax = serializers.FloatField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    steps = StepSerializer(many=True)


class LateSerializer(serializers.Serializer[Any]):
    """What filing after March 1 adds, and by which reading of the law."""

    due_on = serializers.DateField()
    filed_on = serializers.DateField()
    months = serializers.IntegerField()
    penalty = serializers.FloatField()
    interest = serializers.FloatField()
    interest_on_tax_alone = serializers.FloatField()
    reading = serializers.CharField()


class FranchiseTaxSerializer(serializers.Serializer[Any]):
    """Both methods with their steps, and what is to be paid in US dollars."""

    authorized_shares_method = serializers.FloatField()
    assumed_par_value_method = serializers.FloatField(allow_null=True)
    assumed_par_value_reason = serializers.CharField(allow_blank=True)
    tax = serializers.FloatField()
    report_fee = serializers.FloatField()
    total = serializers.FloatField()
    late = LateSerializer(allow_null=True)
    warnings = serializers.ListField(child=serializers.CharField())
    caveat = serializers.CharField()
    methods = MethodSerializer(many=True)
    steps = StepSerializer(many=True)


class FranchiseTaxViewSet(ApiViewSet):
    """Delaware's franchise tax for shares that need not be on file."""

    permission_classes = [MayRead]
    serializer_class = FranchiseTaxSerializer

    @extend_schema(request=StockSerializer, responses={200: FranchiseTaxSerializer})
    def create(self, request: Request) -> Response:
        """Compute the tax by both methods. Nothing is kept."""
        asked = read_body(StockSerializer, request)
        filed_on, tax_year = asked.pop("filed_on"), asked.pop("tax_year")
        classes = tuple(
            Shares(given["authorized"], given["par_value"]) for given in asked.pop("share_classes")
        )
        sheet = worksheet(Stock(classes=classes, **asked), filed_on=filed_on, tax_year=tax_year)
        return Response(account(sheet))


class EntityViewSet(ReadEntityViewSet):
    """Entities with their officers, addresses and share classes, and their franchise tax."""

    @extend_schema(responses=FranchiseTaxSerializer)
    @action(detail=True, url_path="franchise-tax")
    def franchise_tax(self, request: Request, pk: str) -> Response:
        """The franchise tax of a Delaware corporation, from what is on file."""
        return Response(account(worksheet_of(self.get_object())))
