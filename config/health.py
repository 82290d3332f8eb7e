"""Whether this process lives, and whether it can do its work."""

from collections.abc import Callable

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe


class NotReady(Exception):
    """Something that must hold does not; the message says what to do."""


@require_safe
@never_cache
def livez(request: HttpRequest) -> JsonResponse:
    """The process answers. It asks nothing else, so that a slow database restarts nobody."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 if requests can be served; else 503, and which check fails."""
    told = {name: _outcome(check) for name, check in CHECKS.items()}
    is_ready = set(told.values()) == {"ok"}
    body = {"status": "ok" if is_ready else "not ready", "checks": told}
    return JsonResponse(body, status=200 if is_ready else 503)


def _outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except NotReady as error:
        return str(error)
    except Error:
        # Its message may hold an address or a user; whoever may see those has the log.
        return "The database does not answer. Check that it runs and that DATABASE_URL is right."
    return "ok"


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _migrations() -> None:
    executor = MigrationExecutor(connection)
    if missing := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise NotReady(f"{len(missing)} migrations are not applied. Run manage.py migrate.")


CHECKS: dict[str, Callable[[], None]] = {"database": _database, "migrations": _migrations}
