"""Who may do what through the API: denied unless the user and the token's scopes both allow it."""

from typing import TYPE_CHECKING, Any

from rest_framework.permissions import SAFE_METHODS, BasePermission

if TYPE_CHECKING:  # the settings name this module, so it must not import what reads them
    from rest_framework.request import Request
    from rest_framework.views import APIView

READ = "read"


def token_allows(request: "Request", scope: str) -> bool:
    """A browser session has the scopes of its user; a token only those it was given."""
    token = request.auth
    return token is None or scope in getattr(token, "scopes", [])


class Scoped(BasePermission):
    """Reading, for a logged-in user whose token may read. Moves name their own permission."""

    message = "This token or user may not do that. Ask an administrator for the scope “read”."

    def has_permission(self, request: "Request", view: "APIView") -> bool:
        """Safe methods only."""
        known = bool(request.user and request.user.is_authenticated)
        return known and request.method in SAFE_METHODS and token_allows(request, READ)


def requires(permission: str) -> type[BasePermission]:
    """A permission class for one move: the user holds it, and the token names it as a scope."""

    class Requires(BasePermission):
        message = f"This needs the permission and, with a token, the scope “{permission}”."

        def has_permission(self, request: "Request", view: "APIView") -> bool:
            user: Any = request.user
            known = bool(user and user.is_authenticated)
            return known and user.has_perm(permission) and token_allows(request, permission)

    return Requires
