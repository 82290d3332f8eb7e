"""What holds for every route of the API: who gets in, what they see, how it refuses."""

import hashlib
import json
import re
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from rest_framework.exceptions import Throttled
from rest_framework.test import APIClient

from compliance import ledger
from compliance.errors import DomainError, Malformed, NotAllowed, NotFound
from compliance.models import Portfolio
from config.errors import problem
from tests.config.routes import PERMISSION_OF, READ, SHARED
from tests.config.world import client_of, filing_in, member, one_of_everything
from tests.factories import DeadlineFactory, EntityFactory, PortfolioFactory, UserFactory

pytestmark = pytest.mark.django_db

SCOPES = sorted(set(PERMISSION_OF.values()))
MOVES = [scope for scope in SCOPES if scope != READ]
LISTS = [row for row in PERMISSION_OF if row.startswith("GET") and "<" not in row]
ROWS = [row for row in PERMISSION_OF if "<" in row]
OWNED = [row for row in ROWS if not row.split()[1].startswith(SHARED)]
# Bodies that every move takes, so that a refusal is about who asks and not about what.
BODY = {
    "reason": "because", "number": "1", "answers": {"a": "b"}, "management": "dormant",
    "owner": None, "backup": None,
}  # fmt: skip
PROBLEM = "application/problem+json"


@pytest.fixture
def ours() -> Portfolio:
    portfolio: Portfolio = PortfolioFactory()
    return portfolio


@pytest.fixture
def user(ours: Portfolio) -> User:
    """A member of our portfolio who may do everything there."""
    return member(ours, *MOVES)


@pytest.fixture
def client(user: User) -> APIClient:
    """That member, with a token that may do everything."""
    return client_of(user, *SCOPES)


def call(client: APIClient, row: str, ids: dict[str, Any]) -> Any:
    method, path = row.split()
    known = str(ids[path.split("/")[0]])
    path = path.replace("<pk>", known).replace("<slug>", known)
    return client.generic(method, f"/api/v1/{path}/", json.dumps(BODY), "application/json")


# --- Who gets in --------------------------------------------------------------------------------


def test_a_stranger_gets_nowhere(ours: Portfolio) -> None:
    ids = one_of_everything(ours)

    answers = {row: call(APIClient(), row, ids) for row in PERMISSION_OF}

    assert {row: a.status_code for row, a in answers.items()} == dict.fromkeys(answers, 401)
    assert {a.headers["Content-Type"] for a in answers.values()} == {PROBLEM}


def test_a_token_with_every_other_scope_is_refused(user: User, ours: Portfolio) -> None:
    ids = one_of_everything(ours)

    answers: dict[str, int] = {}
    for row, needed in PERMISSION_OF.items():
        client = client_of(user, *(scope for scope in SCOPES if scope != needed))
        answers[row] = call(client, row, ids).status_code

    assert answers == dict.fromkeys(answers, 403)


def test_a_user_with_every_other_permission_is_refused(ours: Portfolio) -> None:
    ids = one_of_everything(ours)

    answers: dict[str, int] = {}
    for needed in MOVES:
        client = client_of(member(ours, *(scope for scope in MOVES if scope != needed)), *SCOPES)
        moves = [row for row, permission in PERMISSION_OF.items() if permission == needed]
        answers |= {row: call(client, row, ids).status_code for row in moves}

    assert answers == dict.fromkeys(answers, 403)


def test_a_member_reads_one_of_everything(client: APIClient, ours: Portfolio) -> None:
    ids = one_of_everything(ours)

    answers = {row: call(client, row, ids) for row in PERMISSION_OF if row.startswith("GET")}

    assert {row: a.status_code for row, a in answers.items()} == dict.fromkeys(answers, 200)
    assert all(answers[row].json()["count"] >= 1 for row in LISTS)


def test_a_method_that_nobody_wrote_is_answered_as_such(client: APIClient) -> None:
    for method in ("post", "put", "patch", "delete", "options"):
        answer = getattr(client, method)("/api/v1/entities/")

        assert (method, answer.status_code) == (method, 405)
        assert answer.json()["code"] == "method_not_allowed"


# --- Another portfolio's rows do not exist ------------------------------------------------------


def test_another_portfolios_row_is_answered_like_one_that_never_was(client: APIClient) -> None:
    theirs = one_of_everything(PortfolioFactory())
    nowhere = {name: "no-such" if isinstance(at, str) else 10**9 for name, at in theirs.items()}

    found = {row: call(client, row, theirs) for row in OWNED}
    missed = {row: call(client, row, nowhere) for row in OWNED}

    assert {row: a.status_code for row, a in found.items()} == dict.fromkeys(OWNED, 404)
    assert {row: a.json() for row, a in found.items()} == {
        row: a.json() for row, a in missed.items()
    }


def test_no_list_shows_another_portfolios_rows(client: APIClient) -> None:
    one_of_everything(PortfolioFactory())

    counts = {
        row: client.get(f"/api/v1/{row.split()[1]}/").json()["count"]
        for row in LISTS
        if not row.endswith(SHARED)
    }

    assert counts == dict.fromkeys(counts, 0) | {"GET portfolios": 1}  # the caller's own


def test_a_filter_by_id_does_not_tell_whether_the_row_exists(client: APIClient) -> None:
    theirs = DeadlineFactory()

    found = client.get("/api/v1/filings/", {"deadline": theirs.pk})
    missed = client.get("/api/v1/filings/", {"deadline": 10**9})

    assert found.status_code == 200
    assert found.json() == missed.json()


def test_entries_of_no_portfolio_are_for_superusers(client: APIClient) -> None:
    with ledger.recording():
        ledger.record(type="test", subject="test:1", actor="test")

    assert client.get("/api/v1/ledger/").json()["count"] == 0
    above = client_of(UserFactory(is_superuser=True), READ)
    assert above.get("/api/v1/ledger/").json()["count"] == 1


# --- What is shown ------------------------------------------------------------------------------


def test_no_answer_holds_a_secret(client: APIClient, ours: Portfolio) -> None:
    ids = one_of_everything(ours)

    told = "".join(
        call(client, row, ids).content.decode() for row in PERMISSION_OF if row.startswith("GET")
    )

    assert "Dana Reyes" in told  # we did look
    for secret in ("98-7654321", "tax_id", "secret", "idempotency_key", "egress_proxy", "gst_"):
        assert secret not in told


def test_a_ledger_entry_can_be_checked_from_its_answer(client: APIClient, ours: Portfolio) -> None:
    ids = one_of_everything(ours)

    entry = client.get(f"/api/v1/ledger/{ids['ledger']}/").json()

    covered = bytes.fromhex(entry["prev"]) + entry["body"].encode()
    assert hashlib.sha256(covered).hexdigest() == entry["digest"]


def test_an_entity_comes_with_its_officers_and_addresses(
    client: APIClient, ours: Portfolio
) -> None:
    entity = EntityFactory(portfolio=ours)

    answer = client.get(f"/api/v1/entities/{entity.pk}/").json()

    assert [officer["name"] for officer in answer["officers"]] == ["Dana Reyes"]
    assert [address["city"] for address in answer["addresses"]] == ["Wilmington"]
    assert answer["share_classes"] == []
    assert answer["portfolio"] == ours.slug


@pytest.mark.parametrize("row", LISTS)
def test_a_longer_list_takes_no_more_queries(row: str, client: APIClient, ours: Portfolio) -> None:
    path = f"/api/v1/{row.split()[1]}/"
    one_of_everything(ours)
    with CaptureQueriesContext(connection) as few:
        client.get(path)
    one_of_everything(ours)
    one_of_everything(ours)
    with CaptureQueriesContext(connection) as many:
        client.get(path)

    assert len(many) <= len(few)


def test_lists_are_filtered_by_status_jurisdiction_and_due_date(
    client: APIClient, ours: Portfolio
) -> None:
    early = DeadlineFactory(registration__entity__portfolio=ours, due_on="2026-03-01")
    late = DeadlineFactory(
        registration__entity__portfolio=ours, registration__jurisdiction="US-CA",
        due_on="2027-03-01",
    )  # fmt: skip

    def ids(**query: Any) -> list[int]:
        return [row["id"] for row in client.get("/api/v1/deadlines/", query).json()["results"]]

    assert ids() == [early.pk, late.pk]
    assert ids(jurisdiction="US-CA") == [late.pk]
    assert ids(due_until="2026-12-31") == [early.pk]
    assert ids(due_from="2026-12-31") == [late.pk]
    assert ids(status=["owed", "met"]) == [early.pk, late.pk]
    assert ids(status="met") == []
    assert ids(portfolio="another") == []


def test_the_portals_are_those_that_have_a_card(client: APIClient) -> None:
    answer = client.get("/api/v1/portals/", {"jurisdiction": "US-DE"}).json()

    assert [row["slug"] for row in answer["results"]] == ["us-de"]
    assert answer["results"][0]["is_enabled"] is True
    assert answer["results"][0]["lane"] is None


def test_answers_are_what_the_openapi_document_says(client: APIClient, ours: Portfolio) -> None:
    ids = one_of_everything(ours)
    document = client.get("/api/schema/", HTTP_ACCEPT="application/json").json()

    wrong: dict[str, Any] = {}
    for path, operations in document["paths"].items():
        if "get" in operations:
            known = str(ids[path.split("/")[3]])
            answer = client.get(re.sub("{[a-z]+}", known, path)).json()
            shape = operations["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            validator = Draft202012Validator({**shape, "components": document["components"]})
            wrong |= {
                f"{path} {fault.json_path}": fault for fault in validator.iter_errors(answer)
            }

    assert wrong == {}


def test_an_address_works_with_and_without_its_last_slash(client: APIClient) -> None:
    assert client.get("/api/v1/entities").status_code == 200
    assert client.post("/api/v1/filings", {}, format="json").status_code == 400


# --- How it refuses -----------------------------------------------------------------------------


def test_a_value_that_cannot_be_taken_is_named_with_where_it_stands(
    client: APIClient, ours: Portfolio
) -> None:
    answer = client.post("/api/v1/filings/", {"deadline": "soon"}, format="json")

    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == PROBLEM
    assert answer.json() == {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "code": "invalid",
        "detail": "The request has values that cannot be taken. Each problem says where.",
        "problems": [{"detail": "A valid integer is required.", "pointer": "#/deadline"}],
    }


def test_a_filter_that_cannot_be_read_is_named_by_its_parameter(client: APIClient) -> None:
    answer = client.get("/api/v1/deadlines/", {"due_until": "tomorrow"})

    assert answer.status_code == 400
    assert answer.json()["problems"] == [
        {"detail": "Enter a valid date.", "parameter": "due_until"}
    ]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFound("No."), 404),
        (NotAllowed("No."), 409),
        (Malformed("No."), 400),
        (DomainError("No."), 409),
    ],
)
def test_our_own_errors_have_their_status(error: DomainError, status: int) -> None:
    answer = problem(error, {})

    assert answer is not None
    assert (answer.status_code, answer.data["detail"], answer.data["code"]) == (
        status, "No.", error.code,
    )  # fmt: skip


def test_whoever_asks_too_often_is_told_how_long_to_wait() -> None:
    answer = problem(Throttled(wait=12), {})

    assert answer is not None
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "12")
    assert answer.data["code"] == "throttled"


def test_an_error_that_nobody_foresaw_is_not_hidden() -> None:
    assert problem(KeyError("surprise"), {}) is None


def test_an_address_without_a_route_is_a_problem_under_api_and_a_page_elsewhere(
    client: APIClient,
) -> None:
    assert client.get("/api/v1/nothing/").json()["code"] == "not_found"
    assert client.get("/nothing/").headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_djangos_own_errors_are_problems_under_api(status: int) -> None:
    handler = get_resolver().resolve_error_handler(status)
    error = () if status == 500 else (ValueError("surprise"),)

    inside = handler(RequestFactory().get("/api/v1/entities/"), *error)
    outside = handler(RequestFactory().get("/elsewhere/"), *error)

    assert (inside.status_code, inside.headers["Content-Type"]) == (status, PROBLEM)
    assert b"surprise" not in inside.content
    assert outside.status_code == status
    assert outside.headers["Content-Type"].startswith("text/html")


# --- Hostile input ------------------------------------------------------------------------------


def body_with(answers: str) -> str:
    return '{"answers": ' + answers + "}"


HOSTILE: dict[str, tuple[Any, int]] = {
    "ten megabytes": (body_with('"' + "a" * 10_000_000 + '"'), 413),
    "ten thousand levels": (body_with("[" * 10_000 + "]" * 10_000), 400),
    "a hundred levels": (body_with('{"a":' * 100 + "1" + "}" * 100), 400),
    "a null character": (body_with(r'{"a": "\u0000"}'), 400),
    "a null character in a name": (body_with(r'{"\u0000": "a"}'), 400),
    "half a character": (body_with(r'{"a": "\ud800"}'), 400),
    "not a number": (body_with('{"a": NaN}'), 400),
    "a number without end": (body_with('{"a": 1e999}'), 400),
    "a number of ten thousand digits": (body_with('{"a": ' + "9" * 10_000 + "}"), 400),
    "no UTF-8": (b'{"answers": "\xff"}', 400),
    "no JSON": ("answers=1", 400),
    "no object": ("[]", 400),
    "answers that are a list": (body_with("[]"), 400),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_is_refused_at_once(name: str, client: APIClient, ours: Portfolio) -> None:
    body, status = HOSTILE[name]
    filing = filing_in(ours)
    path = f"/api/v1/filings/{filing.pk}/"

    started = time.monotonic()
    answer = client.generic("PATCH", path, body, content_type="application/json")
    took = time.monotonic() - started

    assert (answer.status_code, answer.headers["Content-Type"]) == (status, PROBLEM)
    assert took < 1
    before = filing.answers
    filing.refresh_from_db()
    assert filing.answers == before


@pytest.mark.parametrize(
    "path",
    [
        "filings/?limit=1000000000000000000&offset=1000000000000000000",
        "filings/?limit=-1&offset=-1",
        "events/?offset=99999999999999999999999999",
    ],
)
def test_a_page_beyond_all_pages_is_empty_or_short(path: str, client: APIClient) -> None:
    assert client.get(f"/api/v1/{path}").status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("filings/99999999999999999999999999/", 404),
        ("filings/0/", 404),
        ("filings/abc/", 404),
        ("filings/%00/", 404),
        ("portfolios/%00/", 404),
        ("ledger/99999999999999999999999999/", 404),
        ("filings/?deadline=99999999999999999999999999", 400),
        ("filings/?deadline=1.5", 400),
        ("filings/?deadline=-1", 400),
        ("filings/?deadline=NaN", 400),
        ("filings/?portal=%00", 400),
        ("filings/?status=nonsense", 400),
        ("filings/?due_from=99999-01-01", 400),
        ("grant-submissions/?closes_from=0001-01-01&closes_until=9999-12-31", 200),
        ("events/?after=9223372036854775807", 200),
    ],
)
def test_a_strange_address_is_answered_and_breaks_nothing(
    path: str, status: int, client: APIClient
) -> None:
    assert client.get(f"/api/v1/{path}").status_code == status


STRANGE = [
    "",
    "\x00",
    "-1",
    "1e309",
    "NaN",
    "\u0663",
    "9" * 30,
    "0001-01-01",
    "9999-12-31",
    "%'\";",
]


def test_no_parameter_of_the_document_can_break_a_list(client: APIClient) -> None:
    document = client.get("/api/schema/", HTTP_ACCEPT="application/json").json()
    asked = [
        (path, parameter["name"], value)
        for path, operations in document["paths"].items()
        for parameter in operations.get("get", {}).get("parameters", [])
        if parameter["in"] == "query"
        for value in STRANGE
    ]

    answers = {(path, name, value): client.get(path, {name: value}) for path, name, value in asked}

    assert len(answers) > 500
    assert {what: a.status_code for what, a in answers.items() if a.status_code >= 500} == {}


def test_only_json_is_taken(client: APIClient, ours: Portfolio) -> None:
    path = f"/api/v1/filings/{filing_in(ours).pk}/withdraw/"

    answer = client.post(path, "<reason/>", content_type="application/xml")

    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
