"""Idempotency keys: derived from what is to be done, so that they are the same after a restore."""

import base64
import hashlib
import hmac
import json
import secrets

from portals.models import InstallationKey


def installation_secret() -> bytes:
    """The secret of this installation, made on first use and kept with the data."""
    key, _ = InstallationKey.objects.get_or_create(
        pk=1, defaults={"secret": secrets.token_bytes(32)}
    )
    return bytes(key.secret)


def derive_key(secret: bytes, *parts: str | int) -> str:
    """One key for one thing to be done, and another for every other."""
    message = b"goodstanding-intent/v1" + json.dumps(parts, ensure_ascii=False).encode()
    digest = hmac.new(secret, message, hashlib.sha256).digest()
    return base64.b32encode(digest[:20]).decode().lower()
