"""The OpenAPI document is sound, and no route escapes the table of permissions."""

import io

import pytest
from django.core.management import call_command
from django.test import Client

from tests.config.routes import PERMISSION_OF, routes

pytestmark = pytest.mark.django_db


def document() -> str:
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    return out.getvalue()


def test_the_document_is_valid_and_made_without_a_warning() -> None:
    assert "openapi: 3" in document()


def test_every_route_has_a_row_in_the_table_and_every_row_a_route() -> None:
    assert sorted(routes()) == sorted(PERMISSION_OF)


def test_the_document_is_served_and_tells_how_to_authenticate(client: Client) -> None:
    answer = client.get("/api/schema/", headers={"accept": "application/json"}).json()

    assert answer["components"]["securitySchemes"]["token"]["name"] == "Authorization"
    assert {f"/api/v1/{row.split()[1]}/".replace("<", "{").replace(">", "}")
            for row in PERMISSION_OF} == {
        path.replace("{id}", "{pk}").replace("{seq}", "{pk}") for path in answer["paths"]
    }  # fmt: skip


def test_every_operation_tells_the_shape_of_its_problems(client: Client) -> None:
    answer = client.get("/api/schema/", headers={"accept": "application/json"}).json()

    shapes = [
        list(operation["responses"]["default"]["content"])
        for operations in answer["paths"].values()
        for operation in operations.values()
    ]
    assert len(shapes) == len(PERMISSION_OF)
    assert all(shape == ["application/problem+json"] for shape in shapes)


def test_the_docs_page_takes_everything_from_here_and_has_no_inline_script(client: Client) -> None:
    page = client.get("/api/docs/").content.decode()

    assert "/static/drf_spectacular_sidecar/" in page
    assert "http://" not in page
    assert "https://" not in page
    assert page.count("<script") == page.count("<script src=")


def test_the_docs_page_asks_no_server_elsewhere_for_a_verdict(client: Client) -> None:
    script = client.get("/api/docs/?script=").content.decode()

    assert '"validatorUrl": null' in script
