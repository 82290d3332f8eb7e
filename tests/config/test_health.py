"""Liveness asks nothing; readiness says what fails."""

from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import ConnectionHandler
from django.test import Client

from config import health


def test_a_live_process_says_so_without_asking_the_database(client: Client) -> None:
    answer = client.get("/livez")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_a_ready_process_says_what_it_checked(client: Client) -> None:
    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json()["checks"] == {"database": "ok", "migrations": "ok"}


@pytest.mark.django_db
def test_a_missing_migration_makes_it_not_ready(client: Client) -> None:
    newest = MigrationLoader(connection).graph.leaf_nodes("grants")[0]
    MigrationRecorder(connection).record_unapplied(*newest)

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == "ok"
    assert "Run manage.py migrate" in answer.json()["checks"]["migrations"]


@pytest.mark.django_db
def test_a_database_that_does_not_answer_is_named_without_its_address(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "no-folder" / "db")}
    monkeypatch.setattr(health, "connection", ConnectionHandler({"default": gone})["default"])

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["checks"]["database"].startswith("The database does not answer")
    assert "no-folder" not in answer.content.decode()


def test_only_safe_methods_ask_for_health(client: Client) -> None:
    assert client.post("/livez").status_code == 405
    assert client.post("/readyz").status_code == 405
