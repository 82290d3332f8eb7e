from datetime import date, datetime
from pathlib import Path

import pytest
from pytest_django import Settings

from compliance.errors import Malformed
from portals import registry
from portals.cards import CardError, Closure, WeeklyClosure, read_card
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
    assert message.startswith(f"{path}:")
    assert f": {field}: " in message
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


@pytest.mark.parametrize(
    ("added", "line", "told"),
    [
        ('colour = "red"', 10, "colour: Extra inputs are not permitted. Remove colour"),
        ('open_hours = [{ days = "mon", from = "22:00", to = "04:00" }]', 10, "two entries"),
        (
            'closures = [\n  { days = "sun", from = "02:00", to = "06:00", reason = "backup" },\n'
            '  { from = 2026-12-24, to = 2026-12-26T08:00:00, reason = "Christmas" },\n]',
            12,
            "closures.1.from: write the hour too",
        ),
        (
            "closures = [{ from = 2027-01-02T00:00:00, to = 2027-01-01T00:00:00, "
            'reason = "wrong" }]',
            10,
            "swap them",
        ),
        ('[[closures]]\ndays = "sun"\nfrom = "02:00"\nto = "06:00"', 10, "Add a line for reason"),
        (
            '[[closures]]\ndays = "sun"\nfrom = "02:00"\nto = "06:00"\nreason = "backup"\n'
            '[[closures]]\ndays = "sun"\nfrom = "25:00"\nto = "06:00"\nreason = "backup"',
            17,
            "closures.1.from",
        ),
        (
            'seasons = [{ from = "01-15", to = 2027-03-01, '
            "limits = [{ requests = 2, seconds = 1 }] }]",
            10,
            "both as dates, or both yearly",
        ),
        (
            'seasons = [{ from = "13-15", to = "01-03", '
            "limits = [{ requests = 2, seconds = 1 }] }]",
            10,
            "seasons.0.from",
        ),
        (
            'seasons = [{ from = "01-15", to = "03-01", '
            "limits = [{ requests = 90, seconds = 3600 }] }]",
            10,
            "declare one for it there too",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_line_and_its_remedy(
    tmp_path: Path, added: str, line: int, told: str
) -> None:
    path = write_card(tmp_path / "zz_registry", CARD + added + "\n")

    with pytest.raises(CardError) as caught:
        read_card(path)

    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert told in str(caught.value)


def test_two_limits_of_one_window_are_refused_on_their_line(tmp_path: Path) -> None:
    two = "limits = [{ requests = 9, seconds = 1 }, { requests = 10, seconds = 1 }]"
    path = write_card(
        tmp_path / "zz_registry", CARD.replace("limits = [{ requests = 10, seconds = 1 }]", two)
    )

    with pytest.raises(CardError, match=":9: limits: two limits for 1 s; keep the lower one"):
        read_card(path)


def test_closures_and_seasons_are_read_as_what_they_are(tmp_path: Path) -> None:
    added = """
closures = [
  { days = "sun", from = "02:00", to = "24:00", reason = "backup" },
  { from = 2026-12-24T18:00:00, to = 2026-12-26T08:00:00, reason = "Christmas" },
]
seasons = [
  { from = "12-15", to = "03-01", limits = [{ requests = 2, seconds = 1 }], max_concurrency = 1 },
  { from = 2027-04-01, to = 2027-04-15, limits = [{ requests = 20, seconds = 1 }] },
]
"""
    card = read_card(write_card(tmp_path / "zz_registry", CARD + added))

    weekly, once = card.closures
    assert isinstance(weekly, WeeklyClosure)
    assert isinstance(once, Closure)
    assert once.begins == datetime(2026, 12, 24, 18)  # noqa: DTZ001 - on the portal's own clock
    assert [season.begins for season in card.seasons] == ["12-15", date(2027, 4, 1)]
    assert [season.max_concurrency for season in card.seasons] == [1, None]


def test_an_adapter_beside_the_operators_card_is_used(tmp_path: Path, settings: Settings) -> None:
    card = CARD.replace('adapter = "reference"', 'adapter = "zz_own_code"')
    write_card(tmp_path / "zz_own_code", card.replace("zz-registry", "zz-own-code"))
    (tmp_path / "zz_own_code" / "adapter.py").write_text(
        "from portals.adapters.reference.adapter import Adapter as Reference\n"
        "class Adapter(Reference):\n    motto = 'the operator wrote it'\n"
    )
    settings.PORTALS_DIR = str(tmp_path)

    module = registry.module_of(registry.card_of("zz-own-code"), "adapter")

    assert module is not None
    assert Path(str(module.__file__)).parent == tmp_path / "zz_own_code"
    assert module.Adapter.motto == "the operator wrote it"
