"""A text field that is encrypted at rest and fails closed."""

from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models

from compliance.errors import DomainError


class Undecryptable(DomainError):
    """A stored secret that none of our keys opens."""

    code = "undecryptable"


@lru_cache(maxsize=1)
def cipher() -> MultiFernet:
    """The keys in force: the first encrypts, all decrypt."""
    keys = list(settings.FIELD_KEYS)
    if not keys:
        path = settings.FIELD_KEY_FILE
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(Fernet.generate_key())
        keys = [path.read_text().strip()]
    return MultiFernet([Fernet(key) for key in keys])


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """Text that only a holder of FIELD_KEYS can read; wrong keys raise, never show ciphertext."""

    def get_prep_value(self, value: Any) -> Any:
        """Encrypt on the way in; empty stays empty."""
        return cipher().encrypt(str(value).encode()).decode() if value else ""

    def from_db_value(self, value: str | None, *_: object) -> str:
        """Decrypt on the way out."""
        if not value:
            return ""
        try:
            return cipher().decrypt(value.encode()).decode()
        except InvalidToken as error:
            raise Undecryptable(
                f"{self.model._meta.label}.{self.name} was encrypted with a key that is not in "
                "FIELD_KEYS. Add the older key at the end of FIELD_KEYS."
            ) from error
