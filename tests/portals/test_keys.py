import pytest
from django.db import DatabaseError, transaction
from pytest_django import Settings

from portals.keys import derive_key, installation_secret
from portals.models import InstallationKey

pytestmark = pytest.mark.django_db


def test_the_same_thing_to_do_has_the_same_key_for_ever(settings: Settings) -> None:
    before = derive_key(
        installation_secret(), "filing.submit", 1, "us-de", "annual-report", 7, "2026", 1
    )
    settings.SECRET_KEY = "another one"

    after = derive_key(
        installation_secret(), "filing.submit", 1, "us-de", "annual-report", 7, "2026", 1
    )

    assert before == after
    assert len(before) == 32


@pytest.mark.parametrize("other", [(2, "us-de", "2026", 1), (1, "us-ca", "2026", 1),
                                   (1, "us-de", "2027", 1), (1, "us-de", "2026", 2)])  # fmt: skip
def test_anything_else_to_do_has_another_key(other: tuple[int | str, ...]) -> None:
    secret = b"secret"

    assert derive_key(secret, 1, "us-de", "2026", 1) != derive_key(secret, *other)


def test_parts_cannot_run_into_each_other() -> None:
    assert derive_key(b"s", "ab", "c") != derive_key(b"s", "a", "bc")


def test_the_installations_secret_cannot_be_changed() -> None:
    installation_secret()

    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        InstallationKey.objects.update(secret=b"forged")
