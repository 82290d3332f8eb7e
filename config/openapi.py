"""What the OpenAPI document says of every operation beside what its code says."""

from typing import Any

from config.errors import MEDIA_TYPE

PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457: what is wrong, where, and what to do.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable; decide by this, not by the words."},
        "detail": {"type": "string"},
        "problems": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "detail": {"type": "string"},
                    "pointer": {"type": "string", "description": "JSON pointer into the body."},
                    "parameter": {"type": "string", "description": "A query parameter."},
                },
                "required": ["detail"],
            },
        },
    },
    "required": ["type", "title", "status", "code", "detail", "problems"],
}


def speak_31(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """DRF describes the links of a page as OpenAPI 3.0 did; 3.1 knows no “nullable”."""
    for schema in result["components"]["schemas"].values():
        for described in schema.get("properties", {}).values():
            if described.pop("nullable", False):
                described["type"] = [described["type"], "null"]
    return result


def describe_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Every operation may answer with a problem."""
    result["components"]["schemas"]["Problem"] = PROBLEM
    answer = {
        "description": "Refused or failed: 400, 401, 403, 404, 405, 409, 413 or 5xx.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = answer
    return result
