"""Who calls the API: a token in the Authorization header, read with care."""

import re
from typing import TYPE_CHECKING

from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

if TYPE_CHECKING:  # the settings name this module, so it must not import what reads them
    from django.contrib.auth.models import User

    from compliance.models import ApiToken

LOOKS_LIKE_A_TOKEN = re.compile(rb"[0-9A-Za-z_]{1,100}")


class TokenAuthentication(KnoxTokenAuthentication):  # type: ignore[misc]
    """knox's own, but bytes that cannot be a token are refused instead of failing to decode."""

    def authenticate_credentials(self, token: bytes) -> "tuple[User, ApiToken]":
        """The token's user, or a refusal that does not tell what was wrong with it."""
        if not LOOKS_LIKE_A_TOKEN.fullmatch(token):
            raise AuthenticationFailed("Invalid token.")
        found: tuple[User, ApiToken] = super().authenticate_credentials(token)
        return found
