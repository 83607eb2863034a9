"""Provider-neutral messages of a request.

``context.view`` builds messages, ``tokens`` counts them, ``formats`` renders them. The count of a message is an upper
bound of its cost in every format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pagein.events.steps import Content, Opaque, ToolCall

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request. A ``tool`` message answers the call ``call_id``; call ids are unique in a request.

    ``as_system`` is the system message that a notice stands for, for providers that take one in mid-conversation.
    """

    role: Role
    content: Content | None
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    is_error: bool = False
    extra: Opaque | None = None
    as_system: Message | None = None
