"""Rows of the format ``langchain`` as LangChain's own messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pagein.integrations._versions import require_release

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


def to_langchain(rows: Iterable[Mapping[str, Any]]) -> list[BaseMessage]:
    """Convert rows of ``to_messages("langchain")`` to LangChain's messages. Raises ConfigurationError without LangChain."""
    require_release("langchain-core")
    return as_messages(rows)


def as_messages(rows: Iterable[Mapping[str, Any]]) -> list[BaseMessage]:
    """Convert rows without a check of the release, which costs milliseconds."""
    from langchain_core import messages  # noqa: PLC0415 - an extra, and slow to import

    kinds = {
        "human": messages.HumanMessage,
        "ai": messages.AIMessage,
        "system": messages.SystemMessage,
        "tool": messages.ToolMessage,
        "function": messages.FunctionMessage,
    }
    converted: list[BaseMessage] = []
    for row in rows:
        kind = kinds.get(row["type"]) or (
            messages.ChatMessage if "role" in row else _custom_class(row["type"], messages.BaseMessage)
        )
        converted.append((kind or messages.HumanMessage)(**{key: row[key] for key in row if key != "type"}))
    return converted


def _custom_class(name: str, base: type[BaseMessage]) -> type[BaseMessage] | None:
    """A user's own class for messages of this kind; None where it is not loaded, as in another process."""
    for kind in base.__subclasses__():
        field = kind.model_fields.get("type")
        is_match = field is not None and field.default == name
        match = kind if is_match else _custom_class(name, kind)
        if match is not None:
            return match
    return None
