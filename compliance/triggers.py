"""Database triggers that keep written rows as they are, for use in migrations."""

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def write_once(table: str) -> migrations.RunPython:
    """Refuse UPDATE, DELETE and TRUNCATE on a table, whoever asks."""
    return _guard(table, f"{table}_write_once", f"{table} is append-only", "", truncate=True)


def final_is_final(table: str, column: str, final: tuple[str, ...]) -> migrations.RunPython:
    """Refuse to move a row out of a final state."""
    states = ", ".join(f"'{state}'" for state in final)
    when = f"OLD.{column} IN ({states}) AND NEW.{column} <> OLD.{column}"
    return _guard(table, f"{table}_final_is_final", f"{table}: final is final", when)


def _guard(
    table: str, name: str, message: str, when: str, *, truncate: bool = False
) -> migrations.RunPython:
    def forwards(apps: Any, editor: BaseDatabaseSchemaEditor) -> None:
        make = _postgres if editor.connection.vendor == "postgresql" else _sqlite
        for statement in make(table, name, message, when, truncate=truncate):
            editor.execute(statement)

    def backwards(apps: Any, editor: BaseDatabaseSchemaEditor) -> None:
        if editor.connection.vendor == "postgresql":
            editor.execute(f"DROP FUNCTION IF EXISTS {name}() CASCADE")
        else:
            for event in ("update", "delete"):
                editor.execute(f"DROP TRIGGER IF EXISTS {name}_{event}")

    return migrations.RunPython(forwards, backwards)


def _postgres(table: str, name: str, message: str, when: str, *, truncate: bool) -> list[str]:
    condition = f"WHEN ({when})" if when else ""
    events = "UPDATE" if when else "UPDATE OR DELETE"
    statements = [
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{message}'; END $$",
        f"CREATE TRIGGER {name} BEFORE {events} ON {table} "
        f"FOR EACH ROW {condition} EXECUTE FUNCTION {name}()",
    ]
    if truncate:
        statements.append(
            f"CREATE TRIGGER {name}_truncate BEFORE TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
        )
    return statements


def _sqlite(table: str, name: str, message: str, when: str, *, truncate: bool) -> list[str]:
    condition = f"WHEN {when}" if when else ""
    events = ("update",) if when else ("update", "delete")
    return [
        f"CREATE TRIGGER {name}_{event} BEFORE {event} ON {table} {condition} "
        f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        for event in events
    ]
