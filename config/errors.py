"""Errors as RFC 9457 answers: what is wrong, where, and what to do."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response
from rest_framework.views import exception_handler

from compliance.errors import DomainError, Malformed, NotAllowed, NotFound
from compliance.parsers import TooLarge

MEDIA_TYPE = "application/problem+json"
STATUS_OF: dict[type[DomainError], HTTPStatus] = {
    NotFound: HTTPStatus.NOT_FOUND,
    NotAllowed: HTTPStatus.CONFLICT,
    Malformed: HTTPStatus.BAD_REQUEST,
}
ON_OUR_SIDE = "Something went wrong on our side, and nothing was changed. It was logged."


def body_of(
    status: int, *, code: str, detail: str, problems: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """A problem in the shape of RFC 9457, with a stable code beside the words."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
        "problems": problems or [],
    }


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """What the API answers to an error; None for one that nobody foresaw, which is logged."""
    if isinstance(error, DomainError):
        return _refusal(error)
    if isinstance(error, RequestDataTooBig):  # Django's own bound, met before our parser's
        error = TooLarge()
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, ValidationError):
        place = "parameter" if context["request"].method in SAFE_METHODS else "pointer"
        response.data = body_of(
            response.status_code,
            code="invalid",
            detail="The request has values that cannot be taken. Each problem says where.",
            problems=list(_flat(error.detail, place, "")),
        )
    else:
        detail = response.data["detail"]
        response.data = body_of(response.status_code, code=detail.code, detail=str(detail))
    response.content_type = MEDIA_TYPE
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's own 400: a host we do not serve, or a request that cannot be read."""
    if not _is_api(request):
        return defaults.bad_request(request, exception)
    return _page(HTTPStatus.BAD_REQUEST, "malformed", "The request cannot be read.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's own 403."""
    if not _is_api(request):
        return defaults.permission_denied(request, exception)
    return _page(HTTPStatus.FORBIDDEN, "permission_denied", "This is not allowed.")


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """No route has this address."""
    if not _is_api(request):
        return defaults.page_not_found(request, exception)
    return _page(HTTPStatus.NOT_FOUND, "not_found", "There is nothing here. See /api/docs/.")


def server_error(request: HttpRequest) -> HttpResponse:
    """An error that nobody foresaw. What it was stands in the log, not in the answer."""
    if not _is_api(request):
        return defaults.server_error(request)
    return _page(HTTPStatus.INTERNAL_SERVER_ERROR, "error", ON_OUR_SIDE)


def _refusal(error: DomainError) -> Response:
    status = next(
        (status for kind, status in STATUS_OF.items() if isinstance(error, kind)),
        HTTPStatus.CONFLICT,
    )
    problems = [{"detail": told} for told in error.problems]
    body = body_of(status, code=error.code, detail=str(error), problems=problems)
    return Response(body, status=status, content_type=MEDIA_TYPE)


def _flat(detail: Any, place: str, where: str) -> Iterator[dict[str, str]]:
    """Each message of DRF's nested errors, with where it belongs."""
    match detail:
        case ErrorDetail():
            yield {"detail": str(detail), place: where or ("#" if place == "pointer" else "")}
        case list():
            for item in detail:
                yield from _flat(item, place, where)
        case dict():
            for name, item in detail.items():
                yield from _flat(item, place, _below(where, str(name), place))


def _below(where: str, name: str, place: str) -> str:
    """The next step of a JSON pointer (RFC 6901), or the name of a query parameter."""
    if name in ("non_field_errors", "__all__"):
        return where
    if place == "parameter":
        return name
    return f"{where or '#'}/{name.replace('~', '~0').replace('/', '~1')}"


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _page(status: HTTPStatus, code: str, detail: str) -> JsonResponse:
    return JsonResponse(
        body_of(status, code=code, detail=detail), status=status, content_type=MEDIA_TYPE
    )
