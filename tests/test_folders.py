"""Every jurisdiction, portal and funder is a folder, and every folder is complete."""

from pathlib import Path

import pytest

from compliance import rules
from grants import schemas
from portals import registry
from portals.contract import mapped_words
from portals.simulator.portal import PortalSimulator
from portals.simulator.running import simulator_class

ROOT = Path(__file__).parent.parent
PACKS = sorted(path.parent for path in ROOT.glob("compliance/packs/*/pack.toml"))
CARDS = sorted(registry.cards())
STANDINGS = {"active", "delinquent", "suspended", "dissolved", "not_listed", "pending_review"}


def test_there_is_something_to_check() -> None:
    assert len(PACKS) >= 3
    assert len(CARDS) >= 4


@pytest.mark.parametrize("folder", PACKS, ids=lambda path: path.name)
def test_a_pack_has_worked_examples(folder: Path) -> None:
    assert rules.read_cases(folder)


@pytest.mark.parametrize("slug", CARDS)
def test_a_card_has_an_adapter_and_a_simulator(slug: str) -> None:
    card = registry.card_of(slug)

    adapter = registry.module_of(card, "adapter")

    assert adapter is not None
    for promise in ("submit", "find", "filed_elsewhere", "standing"):
        assert callable(getattr(adapter.Adapter, promise))
    assert issubclass(simulator_class(card), PortalSimulator)


@pytest.mark.parametrize("slug", CARDS)
def test_a_card_names_forms_that_exist(slug: str) -> None:
    card = registry.card_of(slug)

    for form in card.forms:
        assert registry.form_of(card, form).model_fields is not None


def test_every_portal_and_form_that_a_pack_names_exists() -> None:
    named = 0
    for pack in rules.packs().values():
        for duty in pack.duty:
            if duty.portal:
                registry.form_of(registry.card_of(duty.portal), duty.form)
                named += 1
    assert named >= 10


def test_words_of_registries_mean_one_standing_each() -> None:
    tables = sorted(ROOT.glob("portals/adapters/*/standing.toml"))

    assert tables
    for table in tables:
        assert set(mapped_words(table).values()) <= STANDINGS


def test_every_funder_has_a_schema_with_cases() -> None:
    folders = sorted(path.parent for path in ROOT.glob("grants/funders/*/schema_v1.toml"))

    assert folders
    for folder in folders:
        assert schemas.schema_of(folder.name, 1)
        assert (folder / "cases.toml").exists()
