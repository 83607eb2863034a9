"""Rules for the results of tools: which stay whole, which give way to the newest one, which are clipped once read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated

from pagein._common.validation import Constraint, check_fields, is_whole_number
from pagein.errors import ConfigurationError
from pagein.events.identifiers import format_call
from pagein.events.steps import ToolCall

_PICTURE_TOOL = re.compile(r"(?i)screenshot|(?:browser|page|dom|take)_?(?:snapshot|state)")
"""Names of tools whose newest result says all that an older one said, whatever they are called with."""

_LISTING_TOOL = re.compile(r"(?i)(?:list|ls)(?:_?(?:dir|director(?:y|ies)|files|folders?|processes|tabs))?")
_STATE_COMMAND = re.compile(
    r"(?:cd\s+[^|;&<>\s]+\s*&&\s*)?(?:git(?:\s+-C\s+\S+)?\s+(?:status|branch|stash\s+list)|ls|tree|pwd|ps|jobs|df|free|uptime|nvidia-smi"
    r"|squeue|docker\s+(?:compose\s+)?(?:ps|images)|kubectl(?:\s+-\S+(?:\s+[^-\s]\S*)?)*\s+(?:get|top)|helm\s+(?:list|status)|systemctl\s+status"
    r"|gh\s+(?:pr\s+(?:checks|status)|run\s+(?:list|view)))\b[^|;&<>\n]*"
)
"""Names of tools, and commands, whose newest result says all that an older one of the same call said."""

_WAIT = re.compile(r"sleep\s+[\d.]+[smh]?\s*(?:;|&&)\s*")


@dataclass(frozen=True, slots=True)
class Tools:
    """Rules for the results of tools. A tool is named, or a pattern such as ``browser_*`` names several.

    A pattern with a space names commands by their text: ``git status*``. Raises ConfigurationError for a value that is not
    allowed.
    """

    keep: Annotated[tuple[str, ...], "Tools whose results stay whole as long as possible."] = ()
    fold: Annotated[
        tuple[str, ...], "Tools of which only the newest result says what is: older ones become a line."
    ] = ()
    clip: Annotated[
        Mapping[str, int],
        Constraint(kind="table", form="a table of tools and tokens from 1 on"),
        "Tokens that a tool's result has at most once the model has read it.",
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        for name, tokens in self.clip.items():
            if not is_whole_number(tokens) or tokens < 1:
                raise ConfigurationError(f"clip is a table of tools and tokens from 1 on, not {name} = {tokens!r}")

    def keeps(self, call: ToolCall) -> bool:
        """True if the results of this call stay whole."""
        return _matching(self.keep, call) is not None

    def clip_tokens(self, call: ToolCall) -> int | None:
        """Return the tokens that a result of this call has at most once read; None for any number."""
        pattern = _matching(self.clip, call)
        return None if pattern is None else self.clip[pattern]

    def state_of(self, call: ToolCall) -> str:
        """Return the name of the state that a result of this call shows; "" where it shows none.

        Where no rule says so, the usual tools are recognised: screenshots, and listings and ``git status`` called alike.
        """
        pattern = _matching(self.fold, call)
        if pattern is not None:
            return pattern if " " in pattern else call.name
        if self.keeps(call):
            return ""
        if _PICTURE_TOOL.search(call.name):
            return call.name
        command = format_call(call.name, call.arguments).alone.strip()
        waited = _WAIT.match(command)
        if waited and _STATE_COMMAND.fullmatch(command, waited.end()):
            return f"{call.name} {command[waited.end() :]}"
        is_listing = _LISTING_TOOL.fullmatch(call.name) or _STATE_COMMAND.fullmatch(command)
        return f"{call.name} {call.arguments}" if is_listing else ""


def _matching(patterns: Iterable[str], call: ToolCall) -> str | None:
    """Return the first of the patterns that names the call."""
    for pattern in patterns:
        text = format_call(call.name, call.arguments).alone.strip() if " " in pattern else call.name
        if text and fnmatchcase(text, pattern):
            return pattern
    return None


NO_RULES = Tools()
