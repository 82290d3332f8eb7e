"""Making tokens of the API: shown once, kept as a digest, limited to the scopes they name."""

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import Permission, User

from compliance import ledger
from compliance.errors import Malformed, NotAllowed, NotFound
from compliance.models import ApiToken
from compliance.permissions import READ


def create_token(user: User, *, name: str, scopes: Iterable[str], days: int) -> str:
    """A new token of this user. The answer is the only time that anybody sees it."""
    wanted = sorted(set(scopes))
    if not name.strip() or not wanted:
        raise Malformed("A token needs a name and at least one scope, for example “read”.")
    if days < 1:
        raise Malformed("A token is valid for at least one day.")
    for scope in wanted:
        _refuse_useless(user, scope)
    with ledger.recording():
        row, token = ApiToken.objects.create(
            user, expiry=timedelta(days=days), name=name.strip(), scopes=wanted
        )
        ledger.record(
            type="token.created",
            subject=f"user:{user.pk}",
            actor="create_token",
            digest=row.digest,
            name=row.name,
            scopes=wanted,
            expires=row.expiry.date().isoformat(),
        )
    return str(token)


def _refuse_useless(user: User, scope: str) -> None:
    """A scope that does not exist, or that would never be granted, is a mistake."""
    if scope == READ:
        return
    app, _, codename = scope.partition(".")
    if not Permission.objects.filter(content_type__app_label=app, codename=codename).exists():
        raise NotFound(f"There is no scope “{scope}”. Write “read”, or app.codename.")
    if not user.has_perm(scope):
        raise NotAllowed(
            f"{user.username} does not hold the permission “{scope}”, so the scope would do "
            "nothing. Give the user the permission first."
        )
