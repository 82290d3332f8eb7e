from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from pytest_django import Settings

from compliance.encryption import Undecryptable, cipher
from compliance.models import Entity
from portals.models import Credential
from tests.factories import CredentialFactory, EntityFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_keys(settings: Settings) -> Iterator[None]:
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
    cipher.cache_clear()
    yield
    cipher.cache_clear()


def stored(table: str, column: str) -> str:
    """What lies in the database, as a thief would read it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM {table}")  # noqa: S608 - names from this test
        value: str = cursor.fetchone()[0]
    return value


def test_a_tax_id_is_stored_encrypted_and_read_in_clear() -> None:
    entity = EntityFactory(tax_id="88-1234567")

    assert "1234567" not in stored("compliance_entity", "tax_id")
    assert Entity.objects.get(pk=entity.pk).tax_id == "88-1234567"


def test_history_keeps_no_secret() -> None:
    entity = EntityFactory(tax_id="88-1234567")
    credential = CredentialFactory()

    assert not hasattr(entity.history.latest(), "tax_id")
    assert not hasattr(credential.history.latest(), "secret")


def test_an_older_key_still_opens_what_it_closed(settings: Settings) -> None:
    credential = CredentialFactory(secret="rehearsal")

    settings.FIELD_KEYS = [Fernet.generate_key().decode(), *settings.FIELD_KEYS]
    cipher.cache_clear()

    assert Credential.objects.get(pk=credential.pk).secret == "rehearsal"


def test_a_wrong_key_raises_and_shows_nothing(settings: Settings) -> None:
    entity = EntityFactory(tax_id="88-1234567")
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
    cipher.cache_clear()

    with pytest.raises(Undecryptable, match="Add the older key at the end of FIELD_KEYS"):
        Entity.objects.get(pk=entity.pk)


def test_an_empty_tax_id_stays_empty() -> None:
    EntityFactory(tax_id="")

    assert stored("compliance_entity", "tax_id") == ""
