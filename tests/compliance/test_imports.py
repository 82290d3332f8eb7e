"""The import of entities: good rows in, bad rows back, nothing twice, nothing by half."""

import csv
import json
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django import DjangoAssertNumQueries

from compliance import ledger
from compliance.errors import DomainError
from compliance.imports.readers import LONGEST_LINE, open_source
from compliance.imports.services import CHUNK, import_entities
from compliance.imports.values import (
    KIND_OF,
    Cell,
    Jurisdictions,
    day_of,
    kind_of,
    month_day_of,
    tax_id_of,
)
from compliance.models import (
    Address,
    Entity,
    LedgerEntry,
    Officer,
    Portfolio,
    Registration,
    RegistrationEvent,
)
from compliance.rules import packs
from tests.factories import EntityFactory, PortfolioFactory

pytestmark = pytest.mark.django_db

HEADER = (
    "external_id,name,type,home_jurisdiction,formed_on,fiscal_year_end,tax_id,jurisdiction,"
    "file_number,registered_on,registered_agent,officer_name,officer_title,street,city,region,"
    "postal_code"
)
ACME = (
    "E-1,Acme Inc.,C-Corp,Delaware,2019-03-14,06-30,123456789,DE,7001,,Harbor Agents LLC,"
    "Dana Reyes,President,12 Harbor Street,Wilmington,DE,19801"
)
SHORT = "external_id,name,type,home_jurisdiction,formed_on"


@pytest.fixture
def portfolio() -> Portfolio:
    return PortfolioFactory(slug="acme")


@pytest.fixture
def clerk() -> User:
    return User.objects.create_user("clerk")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def save(*lines: str, name: str = "rows.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return save


def run(path: Path, *options: str) -> tuple[dict[str, Any], str]:
    """The command's summary and what it said of bad rows."""
    out, err = StringIO(), StringIO()
    try:
        call_command("import_entities", str(path), "--json", *options, stdout=out, stderr=err)
    except CommandError:
        if not out.getvalue():  # it ends so after a summary too, if rows were refused
            raise
    return json.loads(out.getvalue().splitlines()[-1]), err.getvalue()


def refusal(path: Path) -> str:
    with pytest.raises(CommandError) as caught:
        call_command("import_entities", str(path), stdout=StringIO(), stderr=StringIO())
    return str(caught.value)


def workbook(path: Path, *rows: list[Any]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


# --- What a row becomes -------------------------------------------------------------------------


def test_a_row_becomes_an_entity_with_all_that_belongs_to_it(
    portfolio: Portfolio, clerk: User, write: Callable[..., Path]
) -> None:
    counts, said = run(write(HEADER, ACME), "--by", "clerk")

    entity = Entity.objects.get()
    registration = entity.registrations.get()
    assert (counts["created"], counts["refused"], said) == (1, 0, "")
    assert (entity.portfolio, entity.external_id, entity.name) == (portfolio, "E-1", "Acme Inc.")
    assert (entity.kind, entity.home_jurisdiction) == ("corporation", "US-DE")
    assert (entity.fiscal_year_end_month, entity.fiscal_year_end_day) == (6, 30)
    assert entity.tax_id == "12-3456789"
    assert (registration.jurisdiction, registration.file_number) == ("US-DE", "7001")
    assert (registration.registered_on, registration.is_foreign) == (date(2019, 3, 14), False)
    assert registration.registered_agent == "Harbor Agents LLC"
    assert str(entity.officers.get()) == "Dana Reyes, President"
    assert str(entity.addresses.get()) == "12 Harbor Street, Wilmington, DE, 19801"


def test_every_row_written_has_its_history_and_the_entity_its_ledger_entry(
    portfolio: Portfolio, clerk: User, write: Callable[..., Path]
) -> None:
    run(write(HEADER, ACME), "--by", "clerk")

    entity = Entity.objects.get()
    told = json.loads(bytes(LedgerEntry.objects.get().body))
    for model in (Entity, Registration, Officer, Address):
        assert model.objects.get().history.get().history_user == clerk
    assert (told["type"], told["subject"]) == ("entity.imported", f"entity:{entity.pk}")
    assert (told["actor"], told["portfolio"]) == ("clerk", portfolio.pk)
    assert (told["data"]["line"], told["data"]["created"]) == (2, True)
    assert len(told["data"]["row_sha256"]) == 64
    assert "Acme" not in json.dumps(told)  # a digest, never the values
    assert ledger.verify().broken is None


def test_the_same_file_again_changes_nothing_and_says_so(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    nameless = ",Birch LLC,LLC,CA,2020-01-31,,,,,,,,,,,,"
    by_number = ",Cedar LP,LP,NY,2018-05-20,,,NY,88,,,,,,,,"
    path = write(HEADER, ACME, nameless, by_number)
    run(path)
    before = LedgerEntry.objects.count()
    out = StringIO()

    call_command("import_entities", str(path), stdout=out)

    assert out.getvalue().startswith("Nothing has changed. 3 rows read: 0 created, 0 changed, 3 ")
    assert (Entity.objects.count(), LedgerEntry.objects.count()) == (3, before)
    assert Entity.history.count() == 3


def test_a_changed_row_changes_only_what_it_says(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    run(write(HEADER, ACME))

    counts, _ = run(
        write(
            "external_id,name,tax_id,jurisdiction,file_number,registered_agent,street,city",
            "E-1,Acme Corp.,98-7654321,DE,7001,New Agents LLC,1 Main Street,Dover",
        )
    )

    entity = Entity.objects.get()
    told = json.loads(bytes(LedgerEntry.objects.get(seq=2).body))["data"]
    assert (counts["created"], counts["changed"]) == (0, 1)
    assert (entity.name, entity.tax_id, entity.kind) == ("Acme Corp.", "98-7654321", "corporation")
    assert entity.registrations.get().registered_agent == "New Agents LLC"
    assert str(entity.addresses.get()) == "1 Main Street, Dover"
    assert told["changed"] == ["name", "tax_id", "registration.US-DE.registered_agent", "address"]
    assert entity.history.count() == 2


def test_an_entity_without_an_external_id_is_known_by_its_file_number(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    run(write(HEADER, ACME))

    counts, _ = run(write("name,jurisdiction,file_number", "Acme Holdings Inc.,DE,7001"))

    assert counts["changed"] == 1
    assert Entity.objects.get().name == "Acme Holdings Inc."


def test_two_rows_of_one_entity_are_two_registrations(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    abroad = "E-1,,,,,,,CA,C55,2021-02-01,,,,,,,"

    counts, _ = run(write(HEADER, ACME, abroad))

    places = Registration.objects.values_list("jurisdiction", "is_foreign")
    assert (counts["created"], counts["changed"]) == (1, 1)
    assert list(places) == [("US-CA", True), ("US-DE", False)]


def test_another_portfolio_keeps_its_own_entity_of_the_same_id(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    EntityFactory(portfolio=PortfolioFactory(slug="other"), external_id="E-1", name="Theirs")

    counts, _ = run(write(HEADER, ACME), "--portfolio", "acme")

    assert counts["created"] == 1
    assert Entity.objects.filter(name="Theirs").exists()


# --- What is refused ----------------------------------------------------------------------------


def test_bad_rows_never_stop_the_good_ones(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    path = write(
        SHORT,
        "1,Good,LLC,DE,2020-02-29",
        "2,Bad,LLC,DE,2021-02-29",
        "3,Worse,Guild,Atlantis,03/04/2019",
        "4,Fine,LLC,us-de,3/14/2019",
    )

    counts, said = run(path)

    assert (counts["created"], counts["refused"], counts["problems"]) == (2, 2, 4)
    assert said.splitlines()[0] == (
        "Line 3: formed_on: “2021-02-29” is a day that does not exist. Correct it, as YYYY-MM-DD."
    )
    assert "Line 4: type: “Guild” is no kind of entity that we know." in said
    assert "Line 4: home_jurisdiction: There is no pack for “Atlantis”." in said
    assert "2019-03-04 or 2019-04-03" in said


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("1,A\x07cme,LLC,DE,2020-01-01,,", "name: It has a control character"),
        ("1,Ac\u200bme,LLC,DE,2020-01-01,,", "(U+200B)"),
        ("1,A\x00cme,LLC,DE,2020-01-01,,", "name: it has a NUL byte"),
        (f"1,{'x' * 301},LLC,DE,2020-01-01,,", "301 characters; the most is 300"),
        ("1,Acme,LLC,DE,2020-01-01", "It has 5 cells, and the header has 7"),
        ("1,,LLC,DE,2020-01-01,,", "A new entity needs name"),
        ("1,Acme,LLC,US,2020-01-01,,", "An entity is formed in a state"),
        ("1,Acme,LLC,DE,0202-01-01,,", "is before 1700"),
        ("1,Acme,LLC,DE,2020-01-01,DE,", "file_number: it is empty"),
        ("1,Acme,LLC,DE,2020-01-01,,77", "jurisdiction: it is empty"),
        ("1,Acme,LLC,DE,2020-01-01,CA,77", "registered_on: it is empty"),
        ('1,"Ac"me,LLC,DE,2020-01-01,,', "It is not CSV"),
    ],
)
def test_a_bad_row_is_told_with_its_line(
    portfolio: Portfolio, write: Callable[..., Path], row: str, sentence: str
) -> None:
    counts, said = run(
        write(f"{SHORT},jurisdiction,file_number", "9,Good,LLC,DE,2020-01-01,,", row)
    )

    assert (counts["created"], counts["refused"]) == (1, 1)
    assert said.startswith("Line 3: ")
    assert sentence in said


def test_a_line_that_is_not_utf8_is_named_and_goes_back_in_its_own_bytes(
    portfolio: Portfolio, tmp_path: Path
) -> None:
    path, errors = tmp_path / "rows.csv", tmp_path / "errors.csv"
    bad = b"2,Caf\xe9,LLC,DE,2020-01-01"
    path.write_bytes(SHORT.encode() + b"\n1,Good,LLC,DE,2020-01-01\n" + bad + b"\n")

    counts, said = run(path, "--errors", str(errors))

    assert counts["created"] == 1
    assert "Line 3: name: it is not UTF-8." in said
    assert bad in errors.read_bytes()


def test_a_byte_order_mark_is_no_part_of_the_header(portfolio: Portfolio, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{SHORT}\n1,Café,LLC,DE,2020-01-01\n", encoding="utf-8-sig")

    counts, _ = run(path)

    assert (counts["created"], counts["unknown_columns"]) == (1, [])
    assert Entity.objects.get().external_id == "1"


def test_a_file_in_utf16_is_refused_whole(portfolio: Portfolio, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(SHORT, encoding="utf-16")

    assert "UTF-16. Save it as UTF-8" in refusal(path)


def test_a_cell_of_ten_megabytes_is_refused_and_the_next_row_is_read(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    huge = "x" * (10 * 1024 * 1024)

    counts, said = run(write(SHORT, f"1,{huge},LLC,DE,2020-01-01", "2,Good,LLC,DE,2020-01-01"))

    assert (counts["created"], counts["refused"]) == (1, 1)
    assert "Line 2: name: it has 10,485,760 characters" in said


def test_a_line_without_end_ends_the_reading_but_not_what_came_before(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    path = write(SHORT, "1,Good,LLC,DE,2020-01-01", "x" * (LONGEST_LINE + 1))

    counts, said = run(path)

    assert counts["created"] == 1
    assert "Line 3: The line is longer than 32 MB" in said


def test_a_quotation_mark_that_never_closes_is_told_where_it_opens(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    path = write(SHORT, '1,"Open,LLC,DE,2020-01-01', "2,Next,LLC,DE,2020-01-01")

    counts, said = run(path)

    assert (counts["created"], counts["refused"]) == (0, 1)
    assert said.startswith("Line 2: A quotation mark opens a cell here that never closes.")


def test_rows_of_one_file_that_contradict_each_other_are_refused(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    path = write(SHORT, "1,First,LLC,DE,2020-01-01", "1,Second,LLC,DE,2020-01-01")

    counts, said = run(path)

    assert (counts["created"], counts["refused"]) == (1, 1)
    assert "Line 3: name: an earlier row of this file says otherwise of “First”." in said


def test_rows_that_contradict_each_other_are_found_however_far_apart(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    rows = [f"{number},Entity {number},LLC,DE,2020-01-01" for number in range(CHUNK + 1)]

    counts, said = run(write(SHORT, *rows, "0,Other,LLC,DE,2020-01-01"))

    assert (counts["created"], counts["refused"]) == (CHUNK + 1, 1)
    assert f"Line {CHUNK + 3}: name: an earlier row" in said


def test_a_second_number_in_one_place_would_file_twice_and_is_refused(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    run(write(HEADER, ACME))

    _, said = run(write("external_id,jurisdiction,file_number", "E-1,DE,7002"))

    assert "“Acme Inc.” is in US-DE under 7001. Correct the number" in said
    assert Registration.objects.count() == 1


def test_a_file_number_of_another_entity_is_refused(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    run(write(HEADER, ACME))

    _, said = run(write(HEADER, ACME.replace("E-1", "E-2")))

    assert "7001 in US-DE belongs to “Acme Inc.”, which has another external_id." in said
    assert Entity.objects.count() == 1


def test_nothing_is_registered_before_it_was_formed(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    run(write(HEADER, ACME))

    _, said = run(
        write("external_id,jurisdiction,file_number,registered_on", "E-1,CA,5,2019-03-13")
    )

    assert "registered_on: 2019-03-13 is before the entity was formed, on 2019-03-14." in said
    assert Registration.objects.count() == 1


def test_a_home_is_not_moved_by_a_file(portfolio: Portfolio, write: Callable[..., Path]) -> None:
    run(write(HEADER, ACME))

    _, said = run(write(SHORT, "E-1,Acme Inc.,Corp,NV,2019-03-14"))

    assert "home_jurisdiction: it is US-DE until now." in said
    assert Entity.objects.get().home_jurisdiction == "US-DE"


def test_a_row_that_the_database_refuses_leaves_the_rest_of_its_chunk(
    portfolio: Portfolio, clerk: User, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A field that the database checks more strictly than the reader does.
    monkeypatch.setitem(KIND_OF, "guild", "guild")
    path = write(SHORT, "1,Good,LLC,DE,2020-01-01", "2,Bad,Guild,DE,2020-01-01")

    counts, said = run(path)

    assert (counts["created"], counts["refused"]) == (1, 1)
    assert "Line 3: The database refuses it: " in said
    assert "an_entity_is_of_a_known_kind" in said
    assert LedgerEntry.objects.count() == 1
    assert ledger.verify().broken is None


# --- All, nothing, and the way back -------------------------------------------------------------


@pytest.mark.parametrize("option", ["--dry-run", "--all-or-nothing"])
def test_nothing_is_kept_of_a_rehearsal_or_of_a_file_that_must_be_whole(
    portfolio: Portfolio, write: Callable[..., Path], option: str
) -> None:
    path = write(SHORT, "1,Good,LLC,DE,2020-01-01", "2,Bad,Guild,DE,2020-01-01")

    counts, said = run(path, option)

    assert (counts["created"], counts["refused"], counts["kept"]) == (1, 1, False)
    assert "Line 3" in said
    assert not Entity.objects.exists()
    assert not LedgerEntry.objects.exists()


def test_a_file_that_must_be_whole_and_is_good_is_kept(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    counts, _ = run(write(HEADER, ACME), "--all-or-nothing")

    assert counts["kept"]
    assert Entity.objects.count() == LedgerEntry.objects.count() == 1


def test_refused_rows_come_back_safe_and_go_in_again_once_corrected(
    portfolio: Portfolio, write: Callable[..., Path], tmp_path: Path
) -> None:
    errors = tmp_path / "errors.csv"
    run(
        write(SHORT, "1,Good,LLC,DE,2020-01-01", '2,"=HYPERLINK(""x"")",Guild,DE,2020-01-01'),
        "--errors",
        str(errors),
    )

    back = errors.read_text(encoding="utf-8-sig")
    header, row = csv.reader(StringIO(back))
    assert header == [*SHORT.split(","), "errors"]
    assert row[:3] == ["2", '\'=HYPERLINK("x")', "Guild"]
    assert "Line 3. type: “Guild” is no kind" in back
    counts, said = run(write(*back.replace("Guild", "LLC").splitlines(), name="again.csv"))
    assert (counts["created"], counts["unknown_columns"], said) == (1, [], "")
    assert Entity.objects.get(external_id="2").name == '=HYPERLINK("x")'


def test_the_file_itself_is_never_overwritten(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    path = write(HEADER, ACME)

    with pytest.raises(CommandError, match="would overwrite the file itself"):
        call_command("import_entities", str(path), "--errors", str(path))


def test_unknown_columns_are_told_once_and_are_not_fatal(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    rows = ["1,A,LLC,DE,2020-01-01,red", "2,B,LLC,DE,2020-01-01,blue"]

    counts, said = run(write(f"{SHORT},Colour", *rows))

    assert counts["created"] == 2
    assert said == "Not known and left out: Colour.\n"


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (SHORT.replace(",", ";"), "Separate the columns by commas"),
        (f"{SHORT},Name", "the column “name” is there twice"),
        ("", "names no column that we know"),
    ],
)
def test_a_header_that_cannot_be_used_is_refused(
    portfolio: Portfolio, write: Callable[..., Path], header: str, sentence: str
) -> None:
    assert sentence in refusal(write(header, "1,A,LLC,DE,2020-01-01"))


def test_the_portfolio_must_be_clear(portfolio: Portfolio, write: Callable[..., Path]) -> None:
    PortfolioFactory(slug="other")

    assert "Name the portfolio. Use --portfolio with one of these: acme, other." in refusal(
        write(HEADER, ACME)
    )


def test_what_a_file_says_is_shown_on_a_terminal_and_never_obeyed(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    row = {"type": "\x1b[2JGuild", "\ud800": "a name that cannot be written"}

    _, said = run(write(json.dumps(row), name="rows.ndjson"))

    assert said.splitlines() == [
        "Line 1: type: “\\x1b[2JGuild” is no kind of entity that we know. "
        "Write one of corporation, llc, nonprofit, lp.",
        "Not known and left out: \\ud800.",
    ]


# --- NDJSON -------------------------------------------------------------------------------------


def test_ndjson_is_read_line_by_line_and_given_back_in_kind(
    portfolio: Portfolio, write: Callable[..., Path], tmp_path: Path
) -> None:
    good = {"external_id": 7, "name": "Acme", "type": "501(c)(3)", "home_jurisdiction": "ca"}
    errors = tmp_path / "errors.ndjson"
    path = write(
        json.dumps({**good, "formed_on": "2020-01-01", "colour": None}),
        "{broken",
        "[1]",
        '{"name": "A", "name": "B"}',
        json.dumps({**good, "name": ["Acme"]}),
        '{"name": "\\ud800"}',
        "[" * 100_000,
        '{"name": "A", "Name": "B"}',
        name="rows.ndjson",
    )

    counts, said = run(path, "--errors", str(errors))

    entity = Entity.objects.get()
    back = [json.loads(line) for line in errors.read_text().splitlines()]
    assert (entity.external_id, entity.kind) == ("7", "nonprofit")
    assert (counts["created"], counts["refused"]) == (1, 7)
    assert counts["unknown_columns"] == ["colour"]
    assert "Line 2: It is not JSON" in said
    assert "Line 3: It is no JSON object." in said
    assert "Line 4: It names a key twice." in said
    assert "Line 5: name: it is neither text nor a number." in said
    assert "Line 8: name: it is there twice, as “Name” too." in said
    assert back[0]["raw"] == "{broken"
    assert back[3]["name"] == ["Acme"]
    assert back[3]["errors"][0] == "Line 5."


# --- Excel --------------------------------------------------------------------------------------


def test_a_workbook_is_read_with_its_dates_and_numbers(
    portfolio: Portfolio, tmp_path: Path
) -> None:
    path = workbook(
        tmp_path / "rows.xlsx",
        [*SHORT.split(","), "fiscal_year_end", "jurisdiction", "file_number"],
        [1.0, "Acme", "L.L.C.", "DE", datetime(2020, 1, 31), datetime(2026, 6, 30), "DE", 7001],  # noqa: DTZ001 - Excel's have no zone
        [None] * 8,
        [2, "Birch", "LLC", "DE", 43861, None, None, None],
        [3, "#REF!", "LLC", "DE", "2020-01-31", None, None, 12345678901234567],
    )

    counts, said = run(path)

    entity = Entity.objects.get()
    assert (entity.external_id, entity.kind) == ("1", "llc")
    assert (entity.formed_on, entity.fiscal_year_end_month) == (date(2020, 1, 31), 6)
    assert entity.registrations.get().file_number == "7001"
    assert counts["refused"] == 2
    assert "Line 4: formed_on: “43861” is not a date." in said
    assert "Line 5: name: the cell holds Excel's error #REF!." in said
    assert "Line 5: file_number: Excel has rounded this number." in said


def test_refused_rows_of_a_workbook_come_back_as_csv(portfolio: Portfolio, tmp_path: Path) -> None:
    errors = tmp_path / "errors.csv"
    path = workbook(
        tmp_path / "rows.xlsx", SHORT.split(","), [1, "-1+2", "Guild", "DE", "2020-01-31"]
    )

    run(path, "--errors", str(errors))

    rows = list(csv.reader(StringIO(errors.read_text(encoding="utf-8-sig"))))
    assert rows[1][:5] == ["1", "'-1+2", "Guild", "DE", "2020-01-31"]


def test_a_zip_bomb_is_refused_before_it_is_opened(portfolio: Portfolio, tmp_path: Path) -> None:
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 20_000_000)

    assert "more than 200 times its own size. Save it as CSV." in refusal(path)


def test_a_workbook_with_macros_is_refused_whatever_it_is_called(
    portfolio: Portfolio, tmp_path: Path
) -> None:
    path = workbook(tmp_path / "rows.xlsx", SHORT.split(","))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/vbaProject.bin", b"macro")
    named = tmp_path / "rows.xlsm"
    named.write_bytes(path.read_bytes())

    assert "holds macros" in refusal(path)
    assert "may hold macros. Save it as .xlsx or CSV." in refusal(named)


def test_a_workbook_with_a_password_is_refused(portfolio: Portfolio, tmp_path: Path) -> None:
    path = tmp_path / "rows.xlsx"
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 512)

    assert "is encrypted, or of the older format .xls. Remove its password" in refusal(path)


def test_a_broken_workbook_is_refused_in_a_sentence(portfolio: Portfolio, tmp_path: Path) -> None:
    no_zip, no_book = tmp_path / "one.xlsx", tmp_path / "two.xlsx"
    no_zip.write_bytes(b"PK\x03\x04 not really")
    with zipfile.ZipFile(no_book, "w") as archive:
        archive.writestr("hello.txt", "hello")

    assert "is not a workbook that we can read" in refusal(no_zip)
    assert "is not a workbook that we can read" in refusal(no_book)


def test_a_sheet_that_breaks_in_the_middle_keeps_what_came_before(
    portfolio: Portfolio, tmp_path: Path
) -> None:
    whole = workbook(
        tmp_path / "whole.xlsx",
        SHORT.split(","),
        [1, "Acme", "LLC", "DE", "2020-01-31"],
        [2, "Birch", "LLC", "DE", "2020-01-31"],
    )
    path = tmp_path / "broken.xlsx"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(path, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            if member == "xl/worksheets/sheet1.xml":
                content = content.replace(b'<row r="3"', b"<row <")
            new.writestr(member, content)

    counts, said = run(path)

    assert (counts["created"], counts["refused"]) == (1, 1)
    assert "Line 3: The sheet is broken here, and reading ends." in said


@pytest.mark.parametrize("name", ["rows.pdf", "rows.xls"])
def test_other_files_are_refused(
    portfolio: Portfolio, write: Callable[..., Path], name: str
) -> None:
    assert "Save it as .csv, .xlsx or .ndjson." in refusal(write(HEADER, name=name))


# --- Speed --------------------------------------------------------------------------------------


def test_a_chunk_takes_far_fewer_statements_than_it_has_rows(
    portfolio: Portfolio,
    clerk: User,
    write: Callable[..., Path],
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    rows = [
        f"E-{n},Acme {n} Inc.,Corp,DE,2019-03-14,,,DE,{n},,,Dana,President,1 Main,Dover,,"
        for n in range(CHUNK)
    ]

    with open_source(write(HEADER, *rows)) as source, django_assert_max_num_queries(CHUNK // 5):
        counts = import_entities(source, portfolio=portfolio, by=clerk)

    assert counts.created == CHUNK
    assert Entity.history.count() == CHUNK


# --- Values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Inc", "corporation"),
        ("C-Corp", "corporation"),
        ("S Corp", "corporation"),
        ("L.L.C.", "llc"),
        ("Limited Liability Company", "llc"),
        ("501(c)(3)", "nonprofit"),
        ("non-profit", "nonprofit"),
        ("LLLP", "lp"),
    ],
)
def test_a_kind_goes_by_many_names(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize("text", ["LLP", "Trust", "public benefit corporation", "—"])
def test_a_kind_that_differs_by_state_or_is_none_of_ours_is_not_guessed(text: str) -> None:
    with pytest.raises(DomainError, match="no kind of entity"):
        kind_of(text)


@pytest.mark.parametrize("text", ["DE", "Delaware", "us-de", "US-DE", "delaware"])
def test_a_jurisdiction_goes_by_code_and_by_name(text: str) -> None:
    assert Jurisdictions(packs()).find(text) == "US-DE"


def test_a_short_code_of_two_places_is_refused() -> None:
    known = packs()

    with pytest.raises(DomainError, match="“DE” could be DE or US-DE"):
        Jurisdictions({**known, "DE": known["US-NY"]}).find("DE")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2020-02-29", date(2020, 2, 29)),
        ("2020-02-29T00:00:00", date(2020, 2, 29)),
        ("3/14/2019", date(2019, 3, 14)),
        ("3/3/2019", date(2019, 3, 3)),
    ],
)
def test_a_date_is_iso_or_american(text: str, day: date) -> None:
    assert day_of(text) == day


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("03/04/2019", "could be month/day or day/month"),
        ("14/3/2019", "has no month 14"),
        ("3/14/19", "no year of four digits"),
        ("2/30/2020", "does not exist"),
        ("20200101", "is not a date"),
        ("\u0662\u0660\u0662\u0660-01-01", "is not a date"),  # digits, but not ours
        ("2020-W01-1", "is not a date"),
    ],
)
def test_a_date_that_is_not_clear_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(DomainError, match=sentence):
        day_of(text)


def test_a_fiscal_year_ends_on_a_day_however_it_is_written() -> None:
    written: list[Cell] = ["06-30", "6/30", "2026-06-30", date(2026, 6, 30), "6/30/2026"]

    assert {month_day_of(cell) for cell in written} == {(6, 30)}


def test_a_tax_id_that_lost_its_zero_is_refused() -> None:
    assert tax_id_of("012345678") == "01-2345678"
    with pytest.raises(DomainError, match="It has 8 digits, and an EIN has nine"):
        tax_id_of("12345678")


FACTS = f"{SHORT},jurisdiction,file_number,traits,events"
TRAITED = "E-1,Acme Inc.,corp,US-DE,2019-03-14,US-DE,7001"


def test_traits_and_events_come_with_a_registration(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    path = write(
        FACTS,
        f"{TRAITED},de-franchise-tax-5000,last_filing=2025-02-27; last_filing=2026-02-27",
    )

    summary, _ = run(path)
    again, _ = run(path)

    registration = Registration.objects.get()
    assert (summary["created"], again["unchanged"]) == (1, 1)
    assert registration.traits == ["de-franchise-tax-5000"]
    days = [str(event.happened_on) for event in registration.events.all()]
    assert days == ["2026-02-27", "2025-02-27"]
    assert RegistrationEvent.history.count() == 2


def test_a_later_file_changes_traits_and_adds_events_and_empty_cells_say_nothing(
    portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    run(write(FACTS, f"{TRAITED},de-franchise-tax-5000,last_filing=2025-02-27"))

    silent, _ = run(write(FACTS, f"{TRAITED},,"))
    later, _ = run(write(FACTS, f"{TRAITED},,last_filing=2025-02-27;registry_notice=2026-02-27"))

    registration = Registration.objects.get()
    assert (silent["unchanged"], later["changed"]) == (1, 1)
    assert registration.traits == ["de-franchise-tax-5000"]
    assert {event.name for event in registration.events.all()} == {
        "last_filing",
        "registry_notice",
    }
    newest = json.loads(bytes(LedgerEntry.objects.latest("seq").body))
    assert newest["data"]["changed"] == ["registration.US-DE.events"]


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ("rich,", "traits: “rich” decides no duty there. Known are: de-franchise-tax-5000 (Its"),
        (",party=2026-01-01", "events: “party=2026-01-01” is no event"),
        (",last_filing", "Write it as NAME=YYYY-MM-DD"),
        (",last_filing=2018-01-01", "events: 2018-01-01 is before the entity was formed"),
        (",last_filing=2999-01-01", "events: 2999-01-01 is yet to come"),
    ],
)
def test_a_trait_or_an_event_that_cannot_be_is_refused(
    cells: str, why: str, portfolio: Portfolio, write: Callable[..., Path]
) -> None:
    summary, said = run(write(FACTS, f"{TRAITED},{cells}"))

    assert summary["refused"] == 1
    assert why in said
    assert not Registration.objects.exists()
