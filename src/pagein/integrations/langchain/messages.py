"""From the rows of the format ``langchain`` to LangChain's own messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pagein.integrations._versions import checked_release

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


def to_langchain(rows: Iterable[Mapping[str, Any]]) -> list[BaseMessage]:
    """What ``to_messages(format="langchain")`` gives, as LangChain's messages. Raises ConfigurationError without it."""
    checked_release("langchain-core")
    return as_messages(rows)


def as_messages(rows: Iterable[Mapping[str, Any]]) -> list[BaseMessage]:
    """As ``to_langchain``, for whoever knows that LangChain is there: to ask for its release costs milliseconds."""
    from langchain_core import messages  # noqa: PLC0415 - an extra, and slow to import

    kinds = {
        "human": messages.HumanMessage,
        "ai": messages.AIMessage,
        "system": messages.SystemMessage,
        "tool": messages.ToolMessage,
        "function": messages.FunctionMessage,
    }
    made: list[BaseMessage] = []
    for row in rows:
        kind = kinds.get(row["type"]) or (
            messages.ChatMessage if "role" in row else _own(row["type"], messages.BaseMessage)
        )
        made.append((kind or messages.HumanMessage)(**{key: row[key] for key in row if key != "type"}))
    return made


def _own(name: str, base: type[BaseMessage]) -> type[BaseMessage] | None:
    """The class that somebody made for messages of this kind; None where it is not loaded, as in another process."""
    for kind in base.__subclasses__():
        field = kind.model_fields.get("type")
        found = kind if field is not None and field.default == name else _own(name, kind)
        if found is not None:
            return found
    return None
