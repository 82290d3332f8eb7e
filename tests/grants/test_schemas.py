"""What funders ask for: every case comes out as written, and a bad file says what is wrong."""

from pathlib import Path

import pytest

from compliance.errors import Malformed, NotFound
from grants.checks_payload import problems_in
from grants.schemas import (
    Case,
    Unit,
    funders,
    length_of,
    read_cases,
    schema_of,
    schemas_of,
)
from portals import registry

CASES = [(slug, case) for slug in funders() for case in read_cases(slug)]
# A scan that finds nothing would pass; raise these as funders are added.
LEAST_FUNDERS, LEAST_CASES = 1, 25

WHOLE = """
funder = "zed-trust"
title = "Zed Trust"
version = 1
verified_on = 2026-11-01
source = "made up"
[[field]]
name = "title"
label = "Title"
max_length = 10
[attachments]
types = ["application/pdf"]
max_count = 1
"""


def name_of(value: object) -> str:
    return value.name if isinstance(value, Case) else str(value)


def folder(
    root: Path, text: str, *, slug: str = "zed-trust", file: str = "schema_v1.toml"
) -> None:
    (root / slug).mkdir(exist_ok=True)
    (root / slug / file).write_text(text, encoding="utf-8")


def test_the_funders_and_their_cases_are_found() -> None:
    assert len(funders()) >= LEAST_FUNDERS
    assert len(CASES) >= LEAST_CASES


@pytest.mark.parametrize(("slug", "case"), CASES, ids=name_of)
def test_a_case_comes_out_as_written(slug: str, case: Case) -> None:
    schema = schema_of(slug, case.version)

    found = problems_in(schema, case.answers, case.attachments)

    assert [(problem.flag, problem.at) for problem in found] == [
        (expected.flag, expected.at) for expected in case.expect
    ]
    assert all(problem.sentence.endswith(".") for problem in found)


@pytest.mark.parametrize("slug", funders())
def test_every_version_has_a_case_without_a_problem(slug: str) -> None:
    clean = {case.version for case in read_cases(slug) if not case.expect}

    assert clean == set(schemas_of(slug))


@pytest.mark.parametrize("slug", funders())
def test_every_field_is_got_wrong_in_some_case(slug: str) -> None:
    names = {rule.name for schema in schemas_of(slug).values() for rule in schema.field}

    got_wrong = {expected.at for case in read_cases(slug) for expected in case.expect}
    assert names - got_wrong == set()


@pytest.mark.parametrize("slug", funders())
def test_case_names_are_told_apart(slug: str) -> None:
    names = [case.name for case in read_cases(slug)]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("slug", funders())
def test_a_funder_has_a_portal_of_its_name(slug: str) -> None:
    assert slug in registry.cards()


@pytest.mark.parametrize(
    ("unit", "length"),
    [("characters", 7), ("characters_without_spaces", 5), ("words", 2), ("bytes", 8)],
)
def test_a_length_is_counted_as_the_funder_counts(unit: Unit, length: int) -> None:
    assert length_of("né\n the", unit) == length


def test_the_versions_of_a_funder_stand_beside_each_other(tmp_path: Path) -> None:
    folder(tmp_path, WHOLE)
    folder(tmp_path, WHOLE.replace("version = 1", "version = 2"), file="schema_v2.toml")

    assert list(schemas_of("zed-trust", root=tmp_path)) == [1, 2]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('label = "Title"', 'lable = "Title"', "field 1 (title), label: Field required"),
        ("max_length = 10", "max_lenght = 10", "field 1 (title), max_lenght: Extra inputs"),
        ("max_length = 10", 'counted_in = "letters"', "field 1 (title), counted_in: Input should"),
        ("max_length = 10", 'kind = "choice"', "field 1 (title): a choice names its choices"),
        ("max_length = 10", 'kind = "date"\nmax_length = 1', "max_length means nothing"),
        ("max_length = 10", "minimum = 1", "minimum means nothing for kind text"),
        ("[attachments]", '[[field]]\nname = "title"\nlabel = "T"\n[attachments]', "there twice"),
        ("max_count = 1", 'max_count = 0\nrequired = ["a"]', "attachments: more files are"),
        ('types = ["application/pdf"]', "types = []", "attachments: types names no type"),
        ('funder = "zed-trust"', 'funder = "zad-trust"', "funder: “zad-trust” is in the folder"),
        ("version = 1", "version = 3", "version: the file says 3"),
        ("version = 1", "version =", "not a TOML file"),
        ("verified_on = 2026-11-01", "", "verified_on: Field required"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_field(
    tmp_path: Path, before: str, after: str, told: str
) -> None:
    folder(tmp_path, WHOLE.replace(before, after))

    with pytest.raises(Malformed) as raised:
        schemas_of("zed-trust", root=tmp_path)

    assert told in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "zed-trust" / "schema_v1.toml"))


def test_a_corrected_file_is_read_again(tmp_path: Path) -> None:
    folder(tmp_path, WHOLE)
    before = schema_of("zed-trust", 1, root=tmp_path).title
    folder(tmp_path, WHOLE.replace("Zed Trust", "Zed Foundation"))

    assert (before, schema_of("zed-trust", 1, root=tmp_path).title) == (
        "Zed Trust",
        "Zed Foundation",
    )


@pytest.mark.parametrize("slug", ["nobody", "../funders/bright-futures", ""])
def test_an_unknown_funder_is_told_with_those_we_know(slug: str) -> None:
    with pytest.raises(NotFound, match=r"Known are: .*bright-futures"):
        schema_of(slug, 1)


def test_an_unknown_version_is_told_with_those_we_know() -> None:
    with pytest.raises(NotFound, match=r"no schema version 9. Known are: 1\."):
        schema_of("bright-futures", 9)


def test_a_funder_without_cases_is_told(tmp_path: Path) -> None:
    folder(tmp_path, WHOLE)

    with pytest.raises(Malformed, match=r"cases\.toml: cannot be read"):
        read_cases("zed-trust", root=tmp_path)
