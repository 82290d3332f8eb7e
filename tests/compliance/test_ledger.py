import json
import unicodedata
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections, transaction
from hypothesis import given
from hypothesis import strategies as st

from compliance import ledger
from compliance.errors import DomainError, Malformed
from compliance.ledger import canonical
from compliance.models import LedgerEntry, LedgerHead
from tests.conftest import triggers_off

values = st.recursive(
    st.none() | st.booleans() | st.integers(-ledger.LARGEST, ledger.LARGEST)
    | st.text().map(lambda text: unicodedata.normalize("NFC", text)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner),
    max_leaves=8,
)  # fmt: skip


def append(count: int = 3) -> None:
    """So many entries, in one transaction each."""
    for number in range(count):
        with ledger.recording():
            ledger.record(type="test.done", subject=f"thing:{number}", actor="dana", count=number)


def record_and_fail(type: str) -> None:
    """Something goes on the record, and then goes wrong."""
    with ledger.recording():
        ledger.record(type=type, subject="thing:1", actor="dana")
        raise ZeroDivisionError


@pytest.mark.django_db
def test_an_untouched_chain_verifies() -> None:
    append(5)

    verdict = ledger.verify()

    assert verdict.broken is None
    assert verdict.entries == 5
    assert LedgerHead.objects.get().digest == verdict.head


@pytest.mark.django_db
def test_entries_of_one_transaction_follow_each_other() -> None:
    with ledger.recording():
        for name in ("first", "second"):
            ledger.record(type=f"test.{name}", subject="thing:1", actor="dana")

    entries = list(LedgerEntry.objects.order_by("seq"))
    assert [entry.type for entry in entries] == ["test.first", "test.second"]
    assert entries[1].prev == entries[0].digest


@pytest.mark.django_db
def test_what_failed_is_not_on_the_record() -> None:
    with pytest.raises(ZeroDivisionError):
        record_and_fail("test.done")

    assert not LedgerEntry.objects.exists()


@pytest.mark.django_db
def test_an_inner_failure_that_was_caught_takes_only_its_own_entries_along() -> None:
    with ledger.recording():
        ledger.record(type="test.outer", subject="thing:1", actor="dana")
        with pytest.raises(ZeroDivisionError):
            record_and_fail("test.inner")

    assert list(LedgerEntry.objects.values_list("type", flat=True)) == ["test.outer"]


def test_nothing_is_recorded_outside_of_a_transaction() -> None:
    with pytest.raises(DomainError, match=r"outside of ledger\.recording"):
        ledger.record(type="test.done", subject="thing:1", actor="dana")


@pytest.mark.django_db
@pytest.mark.parametrize("statement", ["UPDATE {} SET type = 'forged'", "DELETE FROM {}"])
def test_the_database_refuses_to_change_an_entry(statement: str) -> None:
    append()

    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format("compliance_ledgerentry"))

    assert ledger.verify().broken is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", b'{"v":1}'),
        ("digest", "0" * 64),
        ("prev", "0" * 64),
        ("type", "forged"),
        ("actor", "mallory"),
        ("subject", "thing:99"),
        ("portfolio_id", 7),
        ("at", datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("seq", [1, 2, 3])
def test_a_forged_column_is_found_at_its_place(column: str, value: Any, seq: int) -> None:
    append()

    with transaction.atomic(), triggers_off(connection):
        LedgerEntry.objects.filter(seq=seq).update(**{column: value})

    broken = ledger.verify().broken
    assert broken is not None
    assert broken.seq == seq


@pytest.mark.django_db
@pytest.mark.parametrize(("gone", "found_at"), [(1, 1), (2, 2), (3, 3)])
def test_a_removed_entry_is_found(gone: int, found_at: int) -> None:
    append()

    with transaction.atomic(), triggers_off(connection):
        LedgerEntry.objects.filter(seq=gone).delete()

    broken = ledger.verify().broken
    assert broken is not None
    assert broken.seq == found_at


@given(values)
def test_canonical_bytes_are_read_back_as_they_were(value: Any) -> None:
    written = canonical({"value": value})

    assert canonical(json.loads(written)) == written


@pytest.mark.parametrize(
    "value", [1.5, 2**53, "e\u0301", {"é": 1}, {1: 2}, object(), float("nan")]
)
def test_ambiguous_values_are_refused(value: Any) -> None:
    with pytest.raises(Malformed, match="A ledger entry cannot hold"):
        canonical({"value": value})


@pytest.mark.django_db
def test_a_persons_decomposed_words_are_composed_before_they_are_recorded() -> None:
    with ledger.recording():
        ledger.record(type="test.done", subject="thing:1", actor="dana", reason="cafe\u0301")

    assert json.loads(bytes(LedgerEntry.objects.get().body))["data"]["reason"] == "café"


@pytest.mark.django_db(transaction=True)
def test_writers_at_the_same_time_leave_no_gap_and_no_fork() -> None:
    def work() -> None:
        append(10)
        connections.close_all()

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    verdict = ledger.verify()
    assert verdict.broken is None
    assert verdict.entries == 40


@pytest.mark.django_db
def test_verify_ledger_says_how_much_it_verified(capsys: pytest.CaptureFixture[str]) -> None:
    append()

    call_command("verify_ledger")

    assert "3 entries verified" in capsys.readouterr().out


@pytest.mark.django_db
def test_verify_ledger_never_calls_an_empty_ledger_good() -> None:
    with pytest.raises(CommandError, match="nothing was verified") as refused:
        call_command("verify_ledger")

    assert refused.value.returncode == 3


@pytest.mark.django_db
def test_verify_ledger_names_the_first_bad_entry() -> None:
    append()
    with transaction.atomic(), triggers_off(connection):
        LedgerEntry.objects.filter(seq=2).update(actor="mallory")

    with pytest.raises(CommandError, match="entry 2") as refused:
        call_command("verify_ledger")

    assert refused.value.returncode == 1


@pytest.mark.django_db
def test_verify_ledger_finds_a_cut_tail_by_a_digest_kept_elsewhere() -> None:
    append()
    kept = LedgerEntry.objects.get(seq=3).digest
    with transaction.atomic(), triggers_off(connection):
        LedgerEntry.objects.filter(seq=3).delete()
        before = LedgerEntry.objects.get(seq=2)
        LedgerHead.objects.update(size=2, digest=before.digest)

    with pytest.raises(CommandError, match="is missing"):
        call_command("verify_ledger", "--holds", f"3:{kept}")
