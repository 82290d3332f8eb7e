"""The schema of a pack, and the sentences that a wrong one gives."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import override_settings

from compliance.errors import Malformed, NotFound
from compliance.rules import Duty, pack_folders, pack_of, packs, read_cases, read_pack

PACK = """
jurisdiction = "US-ZZ"
title = "Zedland"
agency = "Zedland Secretary of State"
verified_on = 2026-11-18
"""
DUTY = """
[[duty]]
id = "annual-report"
title = "Annual report"
applies_to = ["llc"]
frequency = "annual"
due = "fixed:03-01"
cite = "Zedland Code § 12"
url = "https://law.example/zz/12"
source = "Zedland Code § 12"
confidence = "high"
"""
CASES = """
[[case]]
name = "It is due in March"
duty = "annual-report"
kind = "llc"
formed = 2020-01-01
from = 2026-01-01
through = 2026-12-31
expect = [{ due = 2026-03-01 }]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "us-zz"
    made.mkdir()
    (made / "cases.toml").write_text(CASES, encoding="utf-8")
    return made


def write(folder: Path, text: str = PACK + DUTY) -> Path:
    (folder / "pack.toml").write_text(text, encoding="utf-8")
    return folder


def duty(**values: object) -> Duty:
    plain = {
        "id": "annual-report", "title": "Annual report", "applies_to": ["llc"],
        "frequency": "annual", "due": "fixed:03-01", "cite": "§ 12", "source": "§ 12",
        "url": "https://law.example/zz/12", "confidence": "high",
    }  # fmt: skip
    return Duty.model_validate({**plain, **values})


def test_a_pack_is_read_with_the_digest_of_its_bytes(folder: Path) -> None:
    pack = read_pack(write(folder))

    assert pack.jurisdiction == "US-ZZ"
    assert pack.currency == "USD"
    assert len(pack.sha256) == 64


def test_a_pack_that_changes_on_disk_is_read_again(folder: Path) -> None:
    before = read_pack(write(folder))

    after = read_pack(write(folder, PACK.replace('Zedland"', 'Zetland"', 1) + DUTY))

    assert (before.title, after.title) == ("Zedland", "Zetland")
    assert before.sha256 != after.sha256


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PACK.replace("11-18", "02-30") + DUTY, "Invalid date"),
        (PACK + DUTY.replace("03-01", "02-30"), "duty 1 (annual-report), due: “fixed:02-30”"),
        (PACK + DUTY.replace('"fixed:03-01"', "5"), "due: 5 is not a rule"),
        (PACK + DUTY.replace('["llc"]', '["club"]'), "applies_to: “club” is no kind"),
        (PACK + DUTY + "surprise = 1\n", "surprise: Extra inputs are not permitted"),
        (PACK + DUTY.replace('cite = "Zedland Code § 12"', ""), "cite: Field required"),
        (PACK + DUTY.replace('"high"', '"certain"'), "confidence: "),
        (PACK + DUTY.replace('source = "Z', 'source = "General knowledge, Z'), "high confidence"),
        (PACK + DUTY.replace('"https://law.example/zz/12"', '""'), "high confidence needs a url"),
        (PACK + DUTY.replace('"https://law.example/zz/12"', '"law.example"'), "url: "),
        (PACK + DUTY.replace('"annual"', '"once"'), "“once” needs a due rule of event"),
        (PACK + DUTY.replace('"annual"', '"none"'), "frequency “none” has no due rule"),
        (PACK + DUTY + 'parity = "odd"\n', "parity is for a duty that does not come every year"),
        (PACK + DUTY + 'parity = "blue"\n', "parity: “blue” is no parity"),
        (PACK + DUTY + 'calendar = "US-ZZ"\n', "calendar: we know no holidays of “US-ZZ”"),
        (PACK + DUTY + 'first = "soon"\n', "first: “soon” is not a way for a duty to begin"),
        (PACK + DUTY + 'opens = "soon"\n', "opens: “soon” is not an opening rule"),
        (PACK + DUTY + "from = 2026-01-02\nuntil = 2026-01-01\n", "“until” is before “from”"),
        (PACK + DUTY + 'fee = [{ amount = "9.999", cite = "x" }]\n', "fee.0.amount: "),
        (PACK + DUTY + 'fee = [{ amount = "nine", cite = "x" }]\n', "fee.0.amount: "),
        (PACK + DUTY + DUTY, "two duties “annual-report” bind the same kind"),
        (PACK, "duty: Field required"),
        (PACK + "duty = 3\n", "duty: "),
        (PACK + "duty = [3]\n", "duty 1: "),
        (PACK.replace("US-ZZ", "US-YY") + DUTY, "Name the folder “us-yy”"),
        (PACK.replace("US-ZZ", "Zedland") + DUTY, "jurisdiction: "),
        ("= nonsense", "not a TOML file"),
    ],
)
def test_a_wrong_pack_gives_one_sentence_with_file_and_field(
    folder: Path, text: str, told: str
) -> None:
    with pytest.raises(Malformed) as caught:
        read_pack(write(folder, text))

    sentence = str(caught.value)
    assert sentence.startswith(str(folder / "pack.toml"))
    assert told in sentence
    assert "\n" not in sentence


def test_a_folder_without_a_pack_says_which_file_is_missing(folder: Path) -> None:
    with pytest.raises(Malformed, match=r"pack\.toml: cannot be read: No such file"):
        read_pack(folder)


def test_bytes_that_are_not_text_are_refused(folder: Path) -> None:
    (folder / "pack.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(Malformed, match="not a TOML file"):
        read_pack(folder)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("2020-01-01", "2021-02-29", "Invalid date"),
        ('kind = "llc"', 'kind = "club"', "case 1 (It is due in March), kind: "),
        ('kind = "llc"', 'kind = "llc"\nforeign = true', "needs “registered”"),
        ('kind = "llc"', 'kind = "llc"\nfiscal_year_end = "06-31"', "is not a day of the year"),
        ("expect = [{ due = 2026-03-01 }]", "", "expect: Field required"),
    ],
)
def test_a_wrong_case_gives_a_sentence(folder: Path, old: str, new: str, told: str) -> None:
    (folder / "cases.toml").write_text(CASES.replace(old, new), encoding="utf-8")

    with pytest.raises(Malformed) as caught:
        read_cases(folder)

    assert told in str(caught.value)


def test_the_operators_packs_stand_beside_ours(folder: Path) -> None:
    write(folder)

    with override_settings(PACKS_DIR=str(folder.parent)):
        assert {"US-DE", "US-ZZ"} <= set(packs())
        assert pack_of("US-ZZ").title == "Zedland"
    assert "US-ZZ" not in packs()


def test_a_jurisdiction_has_one_pack(folder: Path) -> None:
    write(folder).rename(folder.parent / "us-de")

    with (
        override_settings(PACKS_DIR=str(folder.parent)),
        pytest.raises(Malformed, match="US-DE already has the pack"),
    ):
        pack_folders()


def test_a_packs_dir_that_is_no_folder_is_named(tmp_path: Path) -> None:
    with (
        override_settings(PACKS_DIR=str(tmp_path / "gone")),
        pytest.raises(Malformed, match=r"PACKS_DIR: .* is not a folder"),
    ):
        pack_folders()


def test_a_jurisdiction_without_a_pack_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"no pack for “XX”. Known are: .*US-DE"):
        pack_of("XX")


def test_the_fee_is_the_one_for_the_due_date() -> None:
    changed = duty(
        fee=[
            {"from": date(2027, 6, 1), "amount": "400.00", "cite": "HB 400"},
            {"from": date(2014, 1, 1), "amount": "300.00", "cite": "before"},
        ]
    )

    assert changed.fee_on(date(2027, 6, 1)) == Decimal("400.00")
    assert changed.fee_on(date(2027, 5, 31)) == Decimal("300.00")
    assert changed.fee_on(date(2013, 12, 31)) is None


def test_fees_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="put the newest fee first"):
        duty(
            fee=[
                {"amount": "300.00", "cite": "before"},
                {"from": date(2027, 6, 1), "amount": "400.00", "cite": "HB 400"},
            ]
        )


def test_law_that_follows_other_law_may_share_its_id() -> None:
    old = duty(until=date(2026, 9, 30))
    new = duty(**{"from": date(2026, 10, 1), "due": "anniversary_month_end"})

    assert not old.overlaps(new)
    assert old.overlaps(duty(until=date(2020, 1, 1)))
    assert old.governs(date(2026, 9, 30))
    assert not old.governs(date(2026, 10, 1))


def test_a_kind_alone_means_at_home_and_abroad() -> None:
    assert duty(applies_to=["llc", "domestic-lp"]).targets == {
        "domestic-llc",
        "foreign-llc",
        "domestic-lp",
    }
