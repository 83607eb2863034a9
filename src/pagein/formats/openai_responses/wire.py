"""Items of OpenAI's Responses API, a flat list, also used by other servers and the OpenAI Agents SDK.

Source: the API reference and the item types of the official SDK (``openai.types.responses``). The model's
consecutive items (reasoning, messages, calls) are one step. Items of unknown types, and all reasoning, are kept unread
and returned equal.

The API refuses a call or message with a server's id without the reasoning that it came with. So the id is removed when
the reasoning is no longer in the view; the API accepts such items without an id. An item that must have one
(``rules.ID_PREFIXES``) gets an id made from its content.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.tool_call_encoding import wire_id
from pagein.formats import parsing, rendering
from pagein.formats.base import Item, WireFormat
from pagein.formats.openai_responses import rules
from pagein.formats.openai_responses.parse import parse_items
from pagein.formats.openai_responses.render import render_items
from pagein.formats.openai_responses.rules import NAME, Row


@dataclass(frozen=True, slots=True)
class OpenAIResponses(WireFormat):
    """Items of the Responses API. See ``Format`` for the methods."""

    name = NAME

    def parse(self, request: Any) -> tuple[Item, ...]:
        """Parse a list of items, one item, or a request with ``input``. Raises FormatError with the path of the fault."""
        return parse_items(parsing.strict_request_rows(request))

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Render the items, under ``messages``; one more message only appends. Empty instructions are omitted."""
        rows = render_items(rendering.with_wire_ids(messages, _wire_id))
        return {"messages": rendering.replace_surrogates(rows)}

    def problems(self, request: Any) -> tuple[str, ...]:
        """Return every rule of the Responses API that the items break. Never raises."""
        try:
            rows = parsing.strict_request_rows(request)
        except FormatError as error:
            return (str(error),)
        return rules.problems(rows)

    def keywords(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request with ``input`` in place of ``messages``."""
        return {"input": request["messages"], **{key: value for key, value in request.items() if key != "messages"}}

    def render_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool as a flat ``function``."""
        return {"type": "function", **definition}

    def count_signs(self, request: Any, rows: Iterable[Any]) -> float:
        """Count the items and parts of the Responses API; a request with ``input`` is certain."""
        if isinstance(request, Mapping) and "input" in request and "messages" not in request:
            return math.inf
        return sum(_sign_count(row) for row in rows if isinstance(row, dict))


_SIGN_PARTS = ("input_text", "output_text", "input_image", "input_file")


def _sign_count(row: Row) -> int:
    kind = row.get("type")
    # A call or an output is an item that is no message.
    is_item = isinstance(kind, str) and "role" not in row and ("content" not in row or kind == "reasoning")
    return is_item + sum(kind in _SIGN_PARTS for kind in parsing.part_types(row))


def _wire_id(call_id: str) -> str:
    """Return the id if the API accepts it (1 to 64 characters of any text), else a rewritten one."""
    is_valid = 0 < len(call_id) <= rules.ID_MAX_CHARS and parsing.is_utf8(call_id)
    return call_id if is_valid else wire_id(call_id, rules.ID_MAX_CHARS)
