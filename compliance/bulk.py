"""Many rows at once, past the ORM: it spends more on preparing a row than the database on it."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, models

# SQLite refuses a statement with more values than it was built for.
MOST_KEYS = 900


def read_by_index() -> None:
    """Read large tables by their indexes until this transaction ends.

    PostgreSQL's statistics lag behind a table that grows while we work through it; it would read
    the whole of it again for each chunk.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")


def reserve_keys(model: type[models.Model], count: int) -> list[int]:
    """Keys that no other row has or will get; called inside the transaction that uses them."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)",
                [model._meta.db_table, _key(model).column, count],
            )
            return [key for (key,) in cursor.fetchall()]
        # The transaction holds the only write lock, so the counter stays where it is.
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [model._meta.db_table])
        found = cursor.fetchone()
        last = found[0] if found else 0
        return list(range(last + 1, last + count + 1))


def insert_rows(
    model: type[models.Model], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write rows whose values stand in the order of the named fields, foreign keys as keys."""
    known = {field.name: field for field in model._meta.concrete_fields}
    fields = [known[name] for name in names]
    columns = ", ".join(_quoted(field.column) for field in fields)
    table = _quoted(model._meta.db_table)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            return
        places = ", ".join(["%s"] * len(fields))
        prepared = [
            [
                field.get_db_prep_save(value, connection)
                for field, value in zip(fields, row, strict=True)
            ]
            for row in rows
        ]
        sql = f"INSERT INTO {table} ({columns}) VALUES ({places})"  # noqa: S608 - our own names
        cursor.executemany(sql, prepared)


def copy_rows(
    source: type[models.Model],
    target: type[models.Model],
    columns: Sequence[str],
    added: dict[str, Any],
    keys: Sequence[int],
) -> None:
    """Copy columns of rows into another table inside the database, with the same added values."""
    names = ", ".join(_quoted(column) for column in [*columns, *added])
    taken = ", ".join([*(_quoted(column) for column in columns), *["%s"] * len(added)])
    with connection.cursor() as cursor:
        for start in range(0, len(keys), MOST_KEYS):
            part = keys[start : start + MOST_KEYS]
            places = ", ".join(["%s"] * len(part))
            cursor.execute(
                f"INSERT INTO {_quoted(target._meta.db_table)} ({names}) "  # noqa: S608 - our names
                f"SELECT {taken} FROM {_quoted(source._meta.db_table)} "
                f"WHERE {_quoted(_key(source).column)} IN ({places})",
                [*added.values(), *part],
            )


def _key(model: type[models.Model]) -> "models.Field[Any, Any]":
    key = model._meta.pk
    assert key is not None  # noqa: S101 - every model has one
    return key


def _quoted(name: str | None) -> str:
    return connection.ops.quote_name(name or "")
