"""Portfolios, who belongs to them, and the tokens of the API."""

from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import models
from knox.models import AbstractAuthToken

from compliance.history import tracked


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


def people_of(portfolios: Collection[int]) -> "models.QuerySet[User]":
    """The active people who may see every one of these portfolios."""
    wanted = set(portfolios)
    members = (
        Membership.objects.filter(portfolio__in=wanted)
        .values("user")
        .annotate(seen=models.Count("portfolio"))
        .filter(seen=len(wanted))
    )
    may_see = models.Q(is_superuser=True) | models.Q(pk__in=members.values("user"))
    return User.objects.filter(may_see, is_active=True).order_by("username")


class ApiToken(AbstractAuthToken):  # type: ignore[misc]
    """A token of the API: only its digest is kept; it can do what its scopes name, no more."""

    name = models.CharField(max_length=100)
    scopes = models.JSONField(
        default=list, help_text='For example ["read", "filings.approve_filing"].'
    )

    def __str__(self) -> str:
        return f"{self.name} ({self.user})"
