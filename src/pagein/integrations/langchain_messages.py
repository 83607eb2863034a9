"""From the rows of the format ``langchain`` to LangChain's own messages, and which releases of theirs are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from pagein.errors import ConfigurationError

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

RELEASES = {
    "langchain": ((1, 2), (2, 0)),
    "langgraph": ((1, 1), (2, 0)),
    "langgraph-checkpoint": ((3, 0), (5, 0)),
    "langchain-core": ((1, 0), (2, 0)),
}
"""The releases ``[first, last)`` that are known; the tests run with the first and the newest of them."""


def to_langchain(rows: Iterable[Mapping[str, Any]]) -> list[BaseMessage]:
    """What ``to_messages(format="langchain")`` gives, as LangChain's messages. Raises ConfigurationError without it."""
    checked_version("langchain-core")
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
        kind = kinds.get(row["type"], messages.ChatMessage)
        made.append(kind(**{key: value for key, value in row.items() if key != "type"}))
    return made


def checked_version(package: str) -> None:
    """Returns where the installed release is one that is known. Raises ConfigurationError with both versions."""
    first, last = RELEASES[package]
    try:
        found = version(package)
    except PackageNotFoundError:
        extra = "langgraph" if package.startswith("langgraph") else "langchain"
        raise ConfigurationError(f"{package} is not installed: pip install 'pagein[{extra}]'") from None
    numbers = tuple(int(each) for each in found.split(".")[:2] if each.isdigit())
    if not first <= numbers < last:
        known = " up to ".join(".".join(map(str, each)) for each in (first, last))
        raise ConfigurationError(f"{package} {found} is installed; pagein knows {known}, that not included")
