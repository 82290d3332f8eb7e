import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from portals import registry
from portals.cards import Card, Limit
from portals.simulator.running import Running, running
from portals.simulator.weather import FAIR, KINDS, PRESETS, BadWeather, Exposure, Weather

REFERENCE = Card.model_validate(
    {
        "slug": "zz-registry",
        "title": "Zedland Registry of Companies",
        "jurisdiction": "ZZ",
        "adapter": "reference",
        "base_url": "https://registry.example/api",
        "timezone": "Europe/London",
        "verified_on": "2026-11-01",
        "doubt_class": "C",
        "max_concurrency": 4,
        "limits": [{"requests": 1000, "seconds": 1}],
    }
)


def unhurried(slug: str, **changes: object) -> Card:
    """One of our own cards with limits that a test does not meet by accident."""
    limits = (Limit(requests=1000, seconds=1),)
    return registry.cards()[slug].model_copy(update={"limits": limits, **changes})


CARDS = {
    "zz-registry": REFERENCE,
    "zz-hasty": REFERENCE.model_copy(
        update={"slug": "zz-hasty", "limits": (Limit(requests=3, seconds=1),)}
    ),
    "zz-serial": REFERENCE.model_copy(update={"slug": "zz-serial", "max_concurrency": 1}),
    "zz-blind": REFERENCE.model_copy(update={"slug": "zz-blind", "lookup": False}),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    ours = {slug: unhurried(slug) for slug in ("us-de", "us-ca", "us-ny", "bright-futures")}
    with running({**CARDS, **ours}) as at_work:
        yield at_work


@pytest.fixture
def simulator(server: Running) -> Running:
    server.reset()
    return server


@pytest.fixture
def client(simulator: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=simulator.base_url, timeout=5, trust_env=False) as opened:
        yield opened


def filing(entity_number: str = "1234567", **changes: Any) -> bytes:
    content = {
        "form": "annual-report",
        "entity_number": entity_number,
        "entity_name": "Acme Widgets, Inc.",
        "jurisdiction": "ZZ",
        "period": "2026",
        "fields": {"officer": "A. Person"},
        "fee_cents": 5000,
    }
    return json.dumps({**content, **changes}).encode()


def submit(
    client: httpx.Client,
    slug: str = "zz-registry",
    *,
    key: str = "key-1",
    body: bytes = b"",
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    return client.post(
        f"/{slug}/submit",
        content=body or filing(),
        headers={"X-Idempotency-Key": key, **(headers or {})},
    )


def log_in(client: httpx.Client, slug: str) -> dict[str, str]:
    """Open a session; the headers that a POST then needs."""
    answer = client.post(f"/{slug}/session", json={"user": "clerk", "secret": "rehearsal"})
    assert answer.status_code == 201
    return {"X-CSRF-Token": answer.json()["csrf_token"]}


# --- The contract -----------------------------------------------------------------------------


def test_an_accepted_filing_is_in_the_answer_the_look_up_and_the_oracle(
    simulator: Running, client: httpx.Client
) -> None:
    answer = submit(client).json()

    found = client.get("/zz-registry/submissions/key-1").json()
    listed = client.get("/zz-registry/entities/1234567/filings?form=annual-report&period=2026")
    held = simulator.oracle("zz-registry")["acceptances"]
    assert answer["status"] == "accepted"
    assert (answer["entity_number"], answer["period"]) == ("1234567", "2026")
    assert found["payload_sha256"] == hashlib.sha256(filing()).hexdigest()
    assert found["confirmation_number"] == answer["confirmation_number"]
    assert [line["confirmation_number"] for line in listed.json()["filings"]] == [
        answer["confirmation_number"]
    ]
    assert [(one["key"], one["confirmation_number"]) for one in held] == [
        ("key-1", answer["confirmation_number"])
    ]


def test_a_portal_that_offers_nothing_files_twice_and_the_oracle_counts_it(
    simulator: Running, client: httpx.Client
) -> None:
    submit(client, key="key-1")
    submit(client, key="key-2")
    submit(client, key="key-2", body=filing("7654321"))

    assert simulator.oracle("zz-registry")["duplicates"] == 2


@pytest.mark.parametrize(
    "body", [filing("REJ1"), filing(fields={"simulate": "reject"})], ids=["number", "field"]
)
def test_a_rejection_can_be_asked_for_and_is_remembered(
    simulator: Running, client: httpx.Client, body: bytes
) -> None:
    answer = submit(client, body=body)

    found = client.get("/zz-registry/submissions/key-1").json()
    assert answer.status_code == 422
    assert answer.json()["errors"]
    assert (found["status"], found["errors"]) == ("rejected", answer.json()["errors"])
    assert simulator.oracle("zz-registry")["acceptances"] == []


def test_a_filing_corrected_after_a_rejection_is_found_as_accepted(client: httpx.Client) -> None:
    submit(client, body=filing(fields={"simulate": "reject"}))
    submit(client, body=filing())

    assert client.get("/zz-registry/submissions/key-1").json()["status"] == "accepted"


@pytest.mark.parametrize(
    ("body", "field"),
    [(b"{", "body"), (b"[]", "body"), (filing(period=""), "period"), (filing(form=7), "form")],
)
def test_a_body_that_names_no_duty_is_refused_by_field(
    client: httpx.Client, body: bytes, field: str
) -> None:
    answer = submit(client, body=body)

    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_submission_without_a_key_is_refused(client: httpx.Client) -> None:
    assert submit(client, key="").status_code == 400


def test_what_was_filed_by_hand_shows_before_the_first_send(
    simulator: Running, client: httpx.Client
) -> None:
    listed = client.get("/zz-registry/entities/HAND7/filings?form=annual-tax&period=2025").json()
    submit(client, body=filing("HAND7"))

    assert [(line["form"], line["period"]) for line in listed["filings"]] == [
        ("annual-tax", "2025")
    ]
    assert simulator.oracle("zz-registry")["duplicates"] == 1


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("1234567", "Good Standing"),
        ("DEL1", "Delinquent"),
        ("ODD1", "Exempt \N{EN DASH} see remarks"),
    ],
)
def test_the_registry_speaks_in_its_own_words(
    client: httpx.Client, number: str, words: str
) -> None:
    assert client.get(f"/zz-registry/entities/{number}/status").json()["status"] == words


def test_an_entity_that_is_gone_is_not_listed(client: httpx.Client) -> None:
    assert client.get("/zz-registry/entities/GONE1/status").status_code == 404


def test_the_truth_about_an_entity_can_be_set(simulator: Running, client: httpx.Client) -> None:
    simulator.set_truth("zz-registry", {"1": {"status": "Void", "entity_name": "One"}})
    client.post("/_truth/zz-registry", json={"2": {"status": "Forfeited"}})

    one = client.get("/zz-registry/entities/1/status").json()
    two = client.get("/zz-registry/entities/2/status").json()
    assert (one["status"], one["entity_name"]) == ("Void", "One")
    assert two["status"] == "Forfeited"


def test_a_portal_without_a_look_up_says_so_instead_of_never_seen(client: httpx.Client) -> None:
    submit(client, "zz-blind")

    assert client.get("/zz-blind/submissions/key-1").status_code == 405


def test_health_answers_head(client: httpx.Client) -> None:
    assert client.head("/zz-registry/health").status_code == 200


# --- Weather ----------------------------------------------------------------------------------


def test_dropped_before_means_that_nothing_was_done(
    simulator: Running, client: httpx.Client
) -> None:
    simulator.script("zz-registry", "drop_before")
    with pytest.raises(httpx.TransportError):
        submit(client)

    assert client.get("/zz-registry/submissions/key-1").status_code == 404
    assert simulator.oracle("zz-registry")["acceptances"] == []


def test_dropped_after_means_that_it_was_accepted(
    simulator: Running, client: httpx.Client
) -> None:
    simulator.script("zz-registry", "drop_after")
    with pytest.raises(httpx.TransportError):
        submit(client)

    assert client.get("/zz-registry/submissions/key-1").json()["status"] == "accepted"
    assert simulator.oracle("zz-registry")["faults"] == {"drop_after": 1}


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("5xx_before", 500),
        ("429", 429),
        ("503", 503),
        ("closed", 503),
        ("403_reset", 403),
        ("captcha", 403),
        ("login_page", 200),
        ("session_expiry", 401),
        ("duplicate", 409),
    ],
)
def test_a_refusal_does_nothing(
    simulator: Running, client: httpx.Client, fault: str, status: int
) -> None:
    simulator.script("zz-registry", fault, "ok")

    assert submit(client).status_code == status
    assert simulator.oracle("zz-registry")["acceptances"] == []
    assert submit(client).status_code == 200


def test_the_time_to_come_back_is_given_in_seconds_or_as_a_moment(
    simulator: Running, client: httpx.Client
) -> None:
    absolute = {"seconds": 5, "absolute": True}
    simulator.script(
        "zz-registry",
        {"fault": "429", "seconds": 5},
        {"fault": "429", **absolute},
        {"fault": "403_reset", "seconds": 5},
        {"fault": "403_reset", **absolute},
    )
    began = time.time()
    retries = [submit(client).headers["Retry-After"] for _ in range(2)]
    resets = [submit(client).headers["X-RateLimit-Reset"] for _ in range(2)]

    assert retries[0] == resets[0] == "5"
    assert parsedate_to_datetime(retries[1]).timestamp() >= began + 5
    assert began + 5 <= int(resets[1]) <= began + 15


def test_a_server_error_after_the_work_leaves_an_acceptance(
    simulator: Running, client: httpx.Client
) -> None:
    simulator.script("zz-registry", {"fault": "5xx_after", "status": 504})

    assert submit(client).status_code == 504
    assert len(simulator.oracle("zz-registry")["acceptances"]) == 1


def test_an_answer_is_cut_inside_or_on_the_wire(simulator: Running, client: httpx.Client) -> None:
    simulator.script("zz-registry", "truncated", {"fault": "truncated", "wire": True})

    inside = submit(client, key="key-1")
    with pytest.raises(httpx.RemoteProtocolError, match="complete message body"):
        submit(client, key="key-2", body=filing("2"))

    with pytest.raises(json.JSONDecodeError):
        inside.json()
    assert inside.status_code == 200
    assert len(simulator.oracle("zz-registry")["acceptances"]) == 2


@pytest.mark.parametrize("first", [False, True])
def test_who_gives_up_on_a_slow_answer_has_nothing_under_way_any_more(
    simulator: Running, client: httpx.Client, first: bool
) -> None:
    simulator.script("zz-serial", {"fault": "delay", "seconds": 0.4, "first": first})
    with pytest.raises(httpx.ReadTimeout):
        client.post(
            "/zz-serial/submit",
            content=filing(),
            headers={"X-Idempotency-Key": "key-1"},
            timeout=0.1,
        )
    early = client.get("/zz-serial/submissions/key-1").status_code
    time.sleep(0.5)

    report = simulator.oracle("zz-serial")
    assert early == (404 if first else 200)
    assert client.get("/zz-serial/submissions/key-1").status_code == 200
    assert report["violations"] == {"limits": 0, "concurrency": 0}


def test_a_receipt_is_decided_after_some_looks(simulator: Running, client: httpx.Client) -> None:
    simulator.script("zz-registry", {"fault": "202_later", "looks": 2})
    answer = submit(client)

    looks = [client.get("/zz-registry/submissions/key-1").json() for _ in range(3)]
    assert answer.status_code == 202
    assert answer.json()["receipt_number"]
    assert [look["status"] for look in looks] == ["received", "received", "accepted"]
    assert looks[0]["confirmation_number"] is None


def test_a_receipt_may_be_decided_against_us(simulator: Running, client: httpx.Client) -> None:
    simulator.script("zz-registry", {"fault": "202_later", "looks": 0, "rejects": True})
    submit(client)

    assert client.get("/zz-registry/submissions/key-1").json()["status"] == "rejected"
    assert simulator.oracle("zz-registry")["acceptances"] == []


def test_mangled_fields_show_in_the_look_up_only(simulator: Running, client: httpx.Client) -> None:
    simulator.script("zz-registry", "mangled")
    answer = submit(client)

    found = client.get("/zz-registry/submissions/key-1").json()
    assert answer.json()["status"] == "accepted"
    assert found["payload_sha256"] != hashlib.sha256(filing()).hexdigest()


def test_an_answer_may_name_another_entity(simulator: Running, client: httpx.Client) -> None:
    simulator.script("zz-registry", "other_entity")

    assert submit(client).json()["entity_number"] != "1234567"


def test_a_look_up_is_stale_for_a_while(simulator: Running, client: httpx.Client) -> None:
    simulator.script("zz-registry", {"fault": "stale_lookup", "seconds": 0.3})
    submit(client)

    early = client.get("/zz-registry/submissions/key-1").status_code
    listed_early = client.get("/zz-registry/entities/1234567/filings").json()["filings"]
    time.sleep(0.35)
    assert (early, listed_early) == (404, [])
    assert client.get("/zz-registry/submissions/key-1").status_code == 200


def test_staleness_goes_with_a_scripted_fault(simulator: Running, client: httpx.Client) -> None:
    simulator.weather("zz-registry", stale_lookup=1.0)
    simulator.script("zz-registry", "5xx_after")
    submit(client)

    assert client.get("/zz-registry/submissions/key-1").status_code == 404
    assert simulator.oracle("zz-registry")["faults"] == {"5xx_after": 1, "stale_lookup": 1}


def test_a_script_may_name_the_route_it_is_for(simulator: Running, client: httpx.Client) -> None:
    simulator.script(
        "zz-registry",
        {"fault": "stale_lookup", "route": "find"},
        {"fault": "503", "route": "status"},
    )
    sent = submit(client).status_code

    looks = [client.get("/zz-registry/submissions/key-1").status_code for _ in range(2)]
    assert sent == 200
    assert looks == [404, 200]
    assert client.get("/zz-registry/entities/1/status").status_code == 503


def test_the_weather_can_be_set_and_read_over_the_wire(client: httpx.Client) -> None:
    client.post("/_weather/zz-registry", json={"probabilities": {"429": 1}, "script": ["503"]})

    told = client.get("/_weather/zz-registry").json()
    answers = [submit(client).status_code for _ in range(2)]
    assert told == {
        "preset": "custom",
        "probabilities": {"429": 1},
        "script": [{"fault": "503"}],
    }
    assert answers == [503, 429]


def test_a_preset_can_be_set_for_every_portal(client: httpx.Client) -> None:
    client.post("/_weather", json={"preset": "hostile"})

    told = client.get("/_weather").json()
    assert {weather["preset"] for weather in told.values()} == {"hostile"}
    assert "session_expiry" in told["us-ny"]["probabilities"]
    assert "session_expiry" not in told["us-ca"]["probabilities"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"preset": "mild"}, "mild"),
        ({"script": ["rain"]}, "rain"),
        ({"script": [{"fault": "429", "route": "nowhere"}]}, "route"),
        ({"probabilities": {"rain": 0.1}}, "rain"),
        ({"probabilities": {"429": 2}}, "between 0 and 1"),
        ({"probabilities": {"429": 0.6, "503": 0.6}}, "more than 1"),
        ({"wind": 3}, "preset"),
        ([], "object"),
    ],
)
def test_weather_that_cannot_be_is_refused_in_a_sentence(
    client: httpx.Client, change: object, word: str
) -> None:
    answer = client.post("/_weather/zz-registry", json=change)

    assert answer.status_code == 400
    assert word in answer.json()["error"]


def test_the_same_seed_gives_the_same_faults() -> None:
    def faults(seed: int) -> list[str]:
        weather = Weather(REFERENCE, preset="hostile", seed=seed)
        drawn = [weather.next("submit", Exposure.DECISIVE) for _ in range(200)]
        return [fault.fault for fault in drawn]

    assert faults(1) == faults(1)
    assert faults(1) != faults(2)


def test_hostile_weather_brings_every_kind_to_three_of_ten_submissions() -> None:
    card = REFERENCE.model_copy(update={"session_idle_seconds": 9, "lookup_lag_seconds": 1})
    weather = Weather(card, preset="hostile", seed=5)
    drawn = [weather.next("submit", Exposure.DECISIVE) for _ in range(20_000)]

    assert {fault.fault for fault in drawn} | {"stale_lookup"} == set(KINDS)
    assert 0.28 < sum(fault is not FAIR for fault in drawn) / len(drawn) < 0.34
    assert 0.25 < sum(weather.staleness() > 0 for _ in range(2000)) / 2000 < 0.35


def test_a_log_in_is_spared_what_only_a_submission_meets() -> None:
    weather = Weather(REFERENCE, preset="calm")
    weather.use_probabilities({"drop_after": 0.5, "captcha": 0.5})

    assert all(weather.next("session", Exposure.DOOR) is FAIR for _ in range(50))


def test_an_unknown_preset_is_refused_before_anything_starts() -> None:
    with pytest.raises(BadWeather, match=", ".join(PRESETS)):
        Weather(REFERENCE, preset="mild")


# --- The oracle -------------------------------------------------------------------------------


def test_one_more_than_the_limit_in_any_window_is_a_violation(
    simulator: Running, client: httpx.Client
) -> None:
    for _ in range(3):
        client.head("/zz-hasty/health")
    within = simulator.oracle("zz-hasty")["violations"]["limits"]
    client.head("/zz-hasty/health")
    beyond = simulator.oracle("zz-hasty")["violations"]["limits"]
    time.sleep(1.05)
    client.head("/zz-hasty/health")

    assert (within, beyond) == (0, 1)
    assert simulator.oracle("zz-hasty")["violations"]["limits"] == 1


def test_two_under_way_at_a_serial_portal_are_a_violation(
    simulator: Running, client: httpx.Client
) -> None:
    simulator.script("zz-serial", {"fault": "delay", "seconds": 0.3})
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(submit, client, "zz-serial")
        while simulator.oracle("zz-serial", brief=True)["arrivals"] == 0:
            time.sleep(0.01)
        client.head("/zz-serial/health")
        slow.result()
    client.head("/zz-serial/health")

    assert simulator.oracle("zz-serial")["violations"] == {"limits": 0, "concurrency": 1}


def test_the_oracle_counts_what_is_under_a_portal_and_nothing_else(
    simulator: Running, client: httpx.Client
) -> None:
    submit(client)
    client.get("/zz-registry/nowhere")

    whole = client.get("/_oracle/zz-registry").json()
    brief = client.get("/_oracle").json()["zz-registry"]
    assert [(one["method"], one["path"]) for one in whole["arrivals"]] == [
        ("POST", "/zz-registry/submit"),
        ("GET", "/zz-registry/nowhere"),
    ]
    assert whole["arrivals"][0]["at"] < whole["arrivals"][1]["at"] < time.monotonic()
    assert (brief["arrivals"], brief["acceptances"], brief["requests"]) == (2, 1, 2)
    assert client.get("/_oracle/zz-registry?brief=1").json() == brief


def test_a_portal_nobody_knows_is_not_found(client: httpx.Client) -> None:
    answer = client.get("/_oracle/us-xx")

    assert answer.status_code == 404
    assert "us-de" in answer.json()["error"]


def test_a_reset_forgets_everything(simulator: Running, client: httpx.Client) -> None:
    simulator.set_truth("zz-registry", {"1": {"status": "Void"}})
    simulator.script("zz-registry", "ok", "503")
    submit(client)

    client.post("/_reset")

    assert simulator.oracle("zz-registry", brief=True)["requests"] == 0
    assert client.get("/zz-registry/submissions/key-1").status_code == 404
    assert client.get("/zz-registry/entities/1/status").json()["status"] == "Good Standing"
    assert submit(client).status_code == 200


def test_acceptances_outlive_the_process_even_after_a_cut_line(tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    for round_ in (1, 2):
        with running(CARDS, state=state) as at_work, httpx.Client(trust_env=False) as client:
            client.base_url = httpx.URL(at_work.base_url)
            submit(client, key=f"key-{round_}", body=filing(str(round_)))
        with state.open("a") as file:
            file.write('{"slug": "zz-reg')

    with running(CARDS, state=state) as at_work, httpx.Client(trust_env=False) as client:
        client.base_url = httpx.URL(at_work.base_url)
        found = client.get("/zz-registry/submissions/key-1").json()
        submit(client, key="key-1", body=filing("1"))
        report = at_work.oracle("zz-registry")

    assert found["status"] == "accepted"
    assert [one["key"] for one in report["acceptances"]] == ["key-1", "key-2", "key-1"]
    assert len({one["confirmation_number"] for one in report["acceptances"]}) == 3
    assert report["duplicates"] == 1


# --- Delaware ---------------------------------------------------------------------------------


def test_delaware_ends_the_older_session_when_a_new_one_opens(
    simulator: Running, client: httpx.Client
) -> None:
    with httpx.Client(base_url=simulator.base_url, trust_env=False) as older:
        stale = log_in(older, "us-de")
        fresh = log_in(client, "us-de")

        assert submit(older, "us-de", headers=stale).status_code == 401
        assert submit(client, "us-de", headers=fresh).status_code == 200
    assert len(simulator.oracle("us-de")["acceptances"]) == 1


def test_delaware_blocks_who_exceeds_its_limit() -> None:
    card = registry.cards()["us-de"]
    with running({"us-de": card}) as at_work, httpx.Client(trust_env=False) as client:
        began = time.time()
        answers = [client.head(f"{at_work.base_url}/us-de/health") for _ in range(6)]

        assert [answer.status_code for answer in answers] == [200] * 5 + [403]
        assert began < int(answers[5].headers["X-RateLimit-Reset"]) <= time.time() + 2
        assert at_work.oracle("us-de")["violations"]["limits"] == 1


def test_delaware_blocks_a_second_request_while_one_is_under_way(
    simulator: Running, client: httpx.Client
) -> None:
    headers = log_in(client, "us-de")
    simulator.script("us-de", {"fault": "delay", "seconds": 0.3})
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(submit, client, "us-de", headers=headers)
        while simulator.oracle("us-de", brief=True)["arrivals"] == 1:
            time.sleep(0.01)
        second = client.get("/us-de/entities/1/status")

    assert second.status_code == 403
    assert "X-RateLimit-Reset" in second.headers
    assert slow.result().status_code == 200


# --- California -------------------------------------------------------------------------------


def test_california_refuses_a_duplicate_whatever_its_key(
    simulator: Running, client: httpx.Client
) -> None:
    submit(client, "us-ca", key="key-1")
    again = submit(client, "us-ca", key="key-2")
    next_year = submit(client, "us-ca", key="key-3", body=filing(period="2027"))

    assert (again.status_code, again.json()) == (409, {"status": "duplicate"})
    assert next_year.status_code == 200
    assert client.get("/us-ca/submissions/key-2").status_code == 404
    assert simulator.oracle("us-ca")["duplicates"] == 0


def test_california_refuses_what_was_filed_by_hand(client: httpx.Client) -> None:
    assert submit(client, "us-ca", body=filing("HAND1")).status_code == 409


def test_california_forgets_a_duplicate_after_its_window() -> None:
    card = unhurried("us-ca", duplicate_window_hours=0.2 / 3600)
    with running({"us-ca": card}) as at_work, httpx.Client(trust_env=False) as client:
        client.base_url = httpx.URL(at_work.base_url)
        submit(client, "us-ca", key="key-1")
        time.sleep(0.25)

        assert submit(client, "us-ca", key="key-2").status_code == 200
        assert at_work.oracle("us-ca")["duplicates"] == 1


@pytest.mark.parametrize("text", [" Acme", "Acme ", "Acme  Inc", "Ac\tme", "Ac\u0085me", "A\x00"])
def test_california_names_the_text_that_is_not_clean(client: httpx.Client, text: str) -> None:
    answer = submit(client, "us-ca", body=filing(fields={"officers": [{"name": text}]}))

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["fields.officers.0.name"]


def test_california_takes_clean_text_of_any_script(client: httpx.Client) -> None:
    body = filing(entity_name="Łódź & Señor 株式会社")

    assert submit(client, "us-ca", body=body).status_code == 200


def test_california_rejects_a_body_that_is_not_utf_8(client: httpx.Client) -> None:
    body = filing(entity_name="Seqor").replace(b"Seqor", "Señor".encode("latin-1"))
    answer = submit(client, "us-ca", body=body)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "body"


# --- New York ---------------------------------------------------------------------------------


def test_new_york_gives_the_same_answer_to_the_same_key_and_bytes(
    simulator: Running, client: httpx.Client
) -> None:
    headers = log_in(client, "us-ny")
    first = submit(client, "us-ny", headers=headers)
    again = submit(client, "us-ny", headers=headers)

    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert len(simulator.oracle("us-ny")["acceptances"]) == 1


def test_new_york_repeats_a_receipt_and_a_rejection_too(
    simulator: Running, client: httpx.Client
) -> None:
    headers = log_in(client, "us-ny")
    simulator.script("us-ny", "202_later")
    receipts = [submit(client, "us-ny", key="a", headers=headers) for _ in range(2)]
    rejections = [
        submit(client, "us-ny", key="b", body=filing("REJ"), headers=headers) for _ in range(2)
    ]

    assert [answer.status_code for answer in receipts + rejections] == [202, 202, 422, 422]
    assert receipts[0].json() == receipts[1].json()


def test_new_york_refuses_other_bytes_under_a_key(
    simulator: Running, client: httpx.Client
) -> None:
    headers = log_in(client, "us-ny")
    submit(client, "us-ny", headers=headers)
    other = submit(client, "us-ny", body=filing("7654321"), headers=headers)

    assert other.status_code == 422
    assert other.json()["errors"][0]["field"] == "X-Idempotency-Key"
    assert len(simulator.oracle("us-ny")["acceptances"]) == 1


def test_new_york_forgets_a_key_after_its_retention() -> None:
    card = unhurried("us-ny", key_retention_hours=0.2 / 3600)
    with running({"us-ny": card}) as at_work, httpx.Client(trust_env=False) as client:
        client.base_url = httpx.URL(at_work.base_url)
        headers = log_in(client, "us-ny")
        submit(client, "us-ny", headers=headers)
        time.sleep(0.25)
        submit(client, "us-ny", headers=headers)

        assert at_work.oracle("us-ny")["duplicates"] == 1


def test_new_york_asks_for_the_csrf_token(simulator: Running, client: httpx.Client) -> None:
    log_in(client, "us-ny")

    assert submit(client, "us-ny").status_code == 401
    assert submit(client, "us-ny", headers={"X-CSRF-Token": "made up"}).status_code == 401
    assert simulator.oracle("us-ny")["acceptances"] == []


def test_new_york_ends_a_session_that_idles() -> None:
    card = unhurried("us-ny", session_idle_seconds=1)
    with running({"us-ny": card}) as at_work, httpx.Client(trust_env=False) as client:
        client.base_url = httpx.URL(at_work.base_url)
        headers = log_in(client, "us-ny")
        early = submit(client, "us-ny", headers=headers).status_code
        time.sleep(1.1)

        assert early == 200
        assert submit(client, "us-ny", headers=headers).status_code == 401


def test_an_expired_session_stays_expired_until_a_new_log_in(
    simulator: Running, client: httpx.Client
) -> None:
    headers = log_in(client, "us-ny")
    simulator.script("us-ny", "session_expiry")
    answers = [submit(client, "us-ny", headers=headers).status_code for _ in range(2)]

    assert answers == [401, 401]
    assert submit(client, "us-ny", headers=log_in(client, "us-ny")).status_code == 200


@pytest.mark.parametrize("given", [{"user": "", "secret": "rehearsal"}, {"user": "a"}, [], "x"])
def test_a_log_in_needs_a_user_and_the_password(client: httpx.Client, given: object) -> None:
    assert client.post("/us-ny/session", json=given).status_code == 401


@pytest.mark.parametrize(("length", "same"), [(4096, True), (4097, False)])
def test_new_york_cuts_long_text_without_a_word(
    client: httpx.Client, length: int, same: bool
) -> None:
    body = filing(fields={"purpose": "x" * length})
    answer = submit(client, "us-ny", body=body, headers=log_in(client, "us-ny"))

    found = client.get("/us-ny/submissions/key-1").json()
    assert answer.status_code == 200
    assert (found["payload_sha256"] == hashlib.sha256(body).hexdigest()) is same


# --- A funder ---------------------------------------------------------------------------------

FUNDER = "/bright-futures/v2/submissions"
BEARER = {"Authorization": "Bearer rehearsal"}


def create(client: httpx.Client, key: str = "key-1", **content: object) -> httpx.Response:
    body = {"applicant": "A1", "opportunity": "BF-1", "answers": {"title": "Books"}, **content}
    headers = {**BEARER, "Idempotency-Key": f'"{key}"'}
    return client.post(FUNDER, json=body, headers=headers)


def finalize(client: httpx.Client, number: str) -> httpx.Response:
    return client.post(f"{FUNDER}/{number}/finalize", headers=BEARER)


def look(client: httpx.Client, key: str = "key-1") -> dict[str, Any]:
    answer = client.get(FUNDER, params={"key": key}, headers=BEARER)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_an_application_is_created_once_and_submitted_by_finalize(
    simulator: Running, client: httpx.Client
) -> None:
    first, again = create(client), create(client)
    before = simulator.oracle("bright-futures")["acceptances"]
    number = first.json()["id"]
    submitted = finalize(client, number)

    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert before == []
    assert submitted.status_code == 202
    assert [look(client)["status"] for _ in range(2)] == ["validating", "accepted"]
    assert look(client)["tracking_number"]
    assert client.get(f"{FUNDER}/{number}", headers=BEARER).json() == look(client)


def test_a_look_up_tells_created_from_finalized(simulator: Running, client: httpx.Client) -> None:
    simulator.script("bright-futures", "drop_before", "drop_after")
    number = create(client).json()["id"]
    with pytest.raises(httpx.TransportError):
        finalize(client, number)
    created = look(client)
    with pytest.raises(httpx.TransportError):
        finalize(client, number)

    finalized = look(client)
    assert (created["status"], created["tracking_number"]) == ("received", None)
    assert finalized["status"] == "validating"
    assert finalized["tracking_number"]


def test_nothing_is_submitted_twice(simulator: Running, client: httpx.Client) -> None:
    number = create(client).json()["id"]
    first = finalize(client, number)

    again = finalize(client, number)
    assert (again.status_code, again.json()) == (202, first.json())
    assert create(client).status_code == 409
    assert len(simulator.oracle("bright-futures")["acceptances"]) == 1


def test_the_same_application_under_two_keys_is_a_duplicate(
    simulator: Running, client: httpx.Client
) -> None:
    for key in ("key-1", "key-2"):
        finalize(client, create(client, key).json()["id"])

    assert simulator.oracle("bright-futures")["duplicates"] == 1


def test_a_key_stands_for_one_content(client: httpx.Client) -> None:
    create(client)

    assert create(client, answers={"title": "Boats"}).status_code == 422


def test_an_attachment_arrives_whole_or_not_at_all(client: httpx.Client) -> None:
    number = create(client).json()["id"]
    content = os.urandom(2_000_000)
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    path = f"{FUNDER}/{number}/attachments/Budget%20final.pdf"
    headers = {**BEARER, "Digest": f"sha-256={digest}", "Content-Type": "application/pdf"}

    first = client.put(path, content=content, headers=headers)
    again = client.put(path, content=content, headers=headers)
    broken = client.put(path, content=content[:-1], headers=headers)
    assert first.json() == {"name": "Budget final.pdf"}
    assert (first.status_code, again.status_code, broken.status_code) == (201, 200, 422)


def test_an_application_is_decided_later(simulator: Running, client: httpx.Client) -> None:
    simulator.script("bright-futures", {"fault": "202_later", "looks": 2})
    finalize(client, create(client).json()["id"])

    assert [look(client)["status"] for _ in range(4)] == [
        "validating",
        "validating",
        "validated",
        "accepted",
    ]


def test_an_application_may_be_rejected_at_once_or_later(
    simulator: Running, client: httpx.Client
) -> None:
    at_once = create(client, "key-1", fields={"simulate": "reject"})
    finalize(client, create(client, "key-2", fields={"simulate": "reject_later"}).json()["id"])
    look(client, "key-2")

    later = look(client, "key-2")
    assert at_once.status_code == 422
    assert at_once.json()["errors"]
    assert later["status"] == "rejected"
    assert later["errors"]
    assert simulator.oracle("bright-futures")["acceptances"] == []


def test_a_funder_knows_its_key(client: httpx.Client) -> None:
    wrong = {"Authorization": "Bearer guess"}

    assert client.get(FUNDER, params={"key": "k"}, headers=wrong).status_code == 401
    assert client.get(FUNDER, params={"key": "k"}, headers=BEARER).status_code == 404


# --- The command ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_the_command_prints_its_address_serves_every_card_and_stops_when_told(
    tmp_path: Path, end: signal.Signals
) -> None:
    command = [sys.executable, "manage.py", "simulate_portals", "--port", "0"]
    environment = {**os.environ, "DEBUG": "1", "DATA_DIR": str(tmp_path)}
    with subprocess.Popen(
        [*command, "--weather", "season", "--state", str(tmp_path / "state")],
        cwd=settings.BASE_DIR,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        told = httpx.get(f"{address}/_weather", trust_env=False).json()
        process.send_signal(end)
        _, complaints = process.communicate(timeout=20)

    assert set(told) >= {"us-de", "us-ca", "us-ny", "bright-futures"}
    assert told["us-de"]["preset"] == "season"
    assert (process.returncode, complaints) == (0, "")
