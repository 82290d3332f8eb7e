"""Every case of every pack, and what holds for all of them."""

from pathlib import Path

import pytest

from compliance.deadlines import case_failure, duties_without_case
from compliance.rules import KINDS, OWN_PACKS, Case, Pack, read_cases, read_pack

FOLDERS = sorted(path.parent for path in OWN_PACKS.glob("*/pack.toml"))
CASES = [(folder, case) for folder in FOLDERS for case in read_cases(folder)]
# A scan that finds nothing would pass; raise these as packs are added.
LEAST_PACKS, LEAST_CASES = 52, 500


def name_of(value: object) -> str:
    match value:
        case Path():
            return value.name
        case Case():
            return value.name
    return str(value)


def test_the_packs_and_their_cases_are_found() -> None:
    assert len(FOLDERS) >= LEAST_PACKS
    assert len(CASES) >= LEAST_CASES
    assert {"us-ca", "us-de", "us-ny"} <= {folder.name for folder in FOLDERS}


@pytest.mark.parametrize(("folder", "case"), CASES, ids=name_of)
def test_a_case_comes_out_as_written(folder: Path, case: Case) -> None:
    assert case_failure(read_pack(folder), case) == ""


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_every_duty_has_a_case(folder: Path) -> None:
    missing = duties_without_case(read_pack(folder), read_cases(folder))

    assert [(duty.id, duty.applies_to) for duty in missing] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
@pytest.mark.parametrize("kind", ["corporation", "llc"])
def test_each_family_has_at_least_three_cases(folder: Path, kind: str) -> None:
    assert len([case for case in read_cases(folder) if case.kind == kind]) >= 3


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_case_names_are_told_apart(folder: Path) -> None:
    names = [case.name for case in read_cases(folder)]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("code", ["us-ca", "us-de", "us-ny"])
def test_the_first_three_states_speak_of_every_kind(code: str) -> None:
    pack: Pack = read_pack(OWN_PACKS / code)

    spoken_of = {target for duty in pack.duty for target in duty.targets}

    assert spoken_of == {f"{home}-{kind}" for home in ("domestic", "foreign") for kind in KINDS}


@pytest.mark.parametrize(
    ("code", "forms"),
    [
        ("us-de", {"annual-report", "annual-tax"}),
        ("us-ca", {"statement-of-information"}),
        ("us-ny", {"biennial-statement"}),
    ],
)
def test_a_portal_is_named_with_its_form_and_only_then(code: str, forms: set[str]) -> None:
    pack = read_pack(OWN_PACKS / code)

    assert {(duty.portal, duty.form) for duty in pack.duty} - {("", "")} == {
        (code, form) for form in forms
    }
