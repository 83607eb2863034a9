"""Reading of requests to Bedrock: boto3's keyword arguments, a list of messages, one message, or a whole response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagein.errors import FormatError
from pagein.formats.parsing import to_plain_json, type_name


def read_request(request: Any) -> tuple[Any, list[Any]]:
    """Return the request's ``system``, None where there is none, and its messages. Raises FormatError."""
    system: Any = None
    if isinstance(request, Mapping):
        if "messages" in request:
            system = to_plain_json(request.get("system"), "system", encode_bytes=True)
            request = request["messages"]
        elif {"role", "output"} & request.keys():
            request = [request]
        else:
            raise FormatError("the request has no messages", path="messages")
    if not isinstance(request, (list, tuple)):
        raise FormatError(f"expected a list of messages, not {type_name(request)}", path="messages")
    rows: list[Any] = to_plain_json(request, "messages", encode_bytes=True)
    return system, [_response_message(row) for row in rows]


def _response_message(row: Any) -> Any:
    """Return the message where the row is a whole response, with the usage that it reports."""
    match row:
        case {"output": {"message": dict(message)}}:
            return {**message, **({"usage": row["usage"]} if "usage" in row else {})}
        case _:
            return row
