"""The name of the format, and pagein's notes in the fields of a part: both the parser and the renderer need them."""

from __future__ import annotations

from typing import Any, Final

NAME: Final = "openai-responses"

Row = dict[str, Any]
"""An item or a part, as JSON has it."""

ITEM_KEY = "_item"
"""Note: the fields of the message that begins with this part."""

REASONED_KEY = "_thought"
"""Note: reasoning came before this message or call, and its id is invalid without it."""

NOTE_KEYS = (ITEM_KEY, REASONED_KEY)

SYSTEM_ROLES = ("system", "developer")

TEXT_ANSWERS = ("function_call_output", "custom_tool_call_output")
"""The answers whose output is text or a list of parts."""
