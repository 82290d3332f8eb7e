from pathlib import Path

import pytest
from pytest_django import Settings

from compliance.errors import Malformed
from portals import registry
from portals.cards import CardError, read_card
from portals.simulator.contract import ContractSimulator
from portals.simulator.funder import FunderSimulator
from portals.simulator.running import simulator_class

CARD = """
slug = "zz-registry"
title = "Zedland Registry of Companies"
jurisdiction = "ZZ"
adapter = "reference"
base_url = "https://registry.example/api"
timezone = "Europe/London"
verified_on = 2026-11-01
limits = [{ requests = 10, seconds = 1 }]
"""


def write_card(folder: Path, text: str = CARD) -> Path:
    folder.mkdir(parents=True)
    path = folder / "portal.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_small_card_is_enough_and_promises_nothing(tmp_path: Path) -> None:
    card = read_card(write_card(tmp_path / "zz_registry"))

    assert (card.doubt_class, card.max_concurrency, card.session_idle_seconds) == ("E", 1, 0)
    assert card.simulated


@pytest.mark.parametrize(
    ("line", "instead", "field"),
    [
        ('slug = "zz-registry"', 'slug = "ZZ Registry"', "slug"),
        ('title = "Zedland Registry of Companies"', "", "title"),
        ('base_url = "https://registry.example/api"', 'base_url = "registry.example"', "base_url"),
        ('timezone = "Europe/London"', 'timezone = "Zedland/Zed"', "timezone"),
        ("verified_on = 2026-11-01", 'verified_on = "last week"', "verified_on"),
        ("verified_on = 2026-11-01", 'verified_on = 2026-11-01\ncolour = "red"', "colour"),
        ("verified_on = 2026-11-01", 'verified_on = 2026-11-01\ndoubt_class = "F"', "doubt_class"),
        ("limits = [{ requests = 10, seconds = 1 }]", "limits = []", "limits"),
        ("requests = 10", "requests = 0", "limits.0.requests"),
        ("seconds = 1", "per = 1", "limits.0.seconds"),
    ],
)
def test_a_malformed_card_is_refused_in_one_sentence_with_file_and_field(
    tmp_path: Path, line: str, instead: str, field: str
) -> None:
    assert line in CARD
    path = write_card(tmp_path / "zz_registry", CARD.replace(line, instead))

    with pytest.raises(CardError) as caught:
        read_card(path)

    message = str(caught.value)
    assert message.startswith(f"{path}: {field}: ")
    assert "\n" not in message
    assert "portals/adapters/README.md" in message


@pytest.mark.parametrize("content", [b"slug = ", b'slug = "\xff"'], ids=["syntax", "encoding"])
def test_a_card_that_is_no_toml_is_refused_with_its_file(tmp_path: Path, content: bytes) -> None:
    path = write_card(tmp_path / "zz_registry")
    path.write_bytes(content)

    with pytest.raises(CardError, match="not a TOML file") as caught:
        read_card(path)

    assert str(caught.value).startswith(str(path))


def test_two_cards_with_one_slug_are_refused_with_both_files(
    tmp_path: Path, settings: Settings
) -> None:
    first = write_card(tmp_path / "one")
    second = write_card(tmp_path / "two")
    settings.PORTALS_DIR = str(tmp_path)

    with pytest.raises(Malformed) as caught:
        registry.cards()

    assert str(second) in str(caught.value)
    assert str(first.parent) in str(caught.value)


def test_a_malformed_card_among_the_others_is_refused_as_malformed(
    tmp_path: Path, settings: Settings
) -> None:
    path = write_card(tmp_path / "one", CARD.replace('jurisdiction = "ZZ"', ""))
    settings.PORTALS_DIR = str(tmp_path)

    with pytest.raises(Malformed, match="jurisdiction"):
        registry.cards()

    assert path.exists()


def test_a_card_in_the_operators_folder_needs_no_code(tmp_path: Path, settings: Settings) -> None:
    write_card(tmp_path / "zz_registry")
    settings.PORTALS_DIR = str(tmp_path)

    assert simulator_class(registry.card_of("zz-registry")) is ContractSimulator


def test_a_simulator_beside_the_operators_card_is_used(tmp_path: Path, settings: Settings) -> None:
    card = CARD.replace('adapter = "reference"', 'adapter = "zz_quirky"')
    write_card(tmp_path / "zz_quirky", card.replace("zz-registry", "zz-quirky"))
    (tmp_path / "zz_quirky" / "simulator.py").write_text(
        "from portals.simulator.contract import ContractSimulator\n"
        "class Simulator(ContractSimulator):\n    quirk = 'ours'\n"
    )
    settings.PORTALS_DIR = str(tmp_path)

    found = simulator_class(registry.card_of("zz-quirky"))

    assert vars(found)["quirk"] == "ours"


@pytest.mark.parametrize(
    ("slug", "doubt_class", "concurrency", "limits"),
    [
        ("us-de", "C", 1, [(5, 1)]),
        ("us-ca", "B", 4, [(10, 1)]),
        ("us-ny", "A", 4, [(8, 1), (2000, 86400)]),
        ("bright-futures", "B", 4, [(10, 1)]),
    ],
)
def test_our_own_cards_say_what_each_portal_offers(
    slug: str, doubt_class: str, concurrency: int, limits: list[tuple[int, float]]
) -> None:
    card = registry.card_of(slug)

    assert (card.doubt_class, card.max_concurrency) == (doubt_class, concurrency)
    assert [(limit.requests, limit.seconds) for limit in card.limits] == limits


def test_our_own_cards_never_point_at_a_real_portal() -> None:
    ours = [read_card(path) for path in registry.OWN_ADAPTERS.glob("*/portal.toml")]

    assert len(ours) >= 4
    assert all(card.simulated and ".portal.example/" in card.base_url for card in ours)


def test_a_card_alone_makes_a_funder() -> None:
    assert simulator_class(registry.card_of("bright-futures")) is FunderSimulator


def test_in_a_rehearsal_every_portal_answers_under_one_address(settings: Settings) -> None:
    settings.PORTALS_BASE_URL = "http://127.0.0.1:8600/"

    assert registry.card_of("us-de").base_url == "http://127.0.0.1:8600/us-de"
