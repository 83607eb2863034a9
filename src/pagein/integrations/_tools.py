"""What a model in somebody else's loop may do with its memory: which tools of ``pagein.memory.tools`` it is offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pagein.errors import ConfigurationError
from pagein.memory.options import Options
from pagein.memory.tools import TOOLS

Chosen = bool | Sequence[str]
"""Which tools a model is offered: True for all that there is something to do with, False for none, or their names."""

Definition = Mapping[str, Any]
"""A tool as ``pagein.memory.tools`` writes it down: its name, its description, and its parameters as a JSON schema."""

_LASTING = ("remember", "update")
_KEPT_AS_FACTS = ("note", *_LASTING)


def offered(chosen: Chosen, options: Options) -> tuple[Definition, ...]:
    """The tools a model is offered, in one order, each to be run by ``memory.call_tool``.

    True leaves out those for lasting facts where the options name nobody whose facts they would be, and notes too with
    ``facts=False``. Raises ConfigurationError for a name that is no tool of ours.
    """
    known = [each["name"] for each in TOOLS]
    if isinstance(chosen, bool):
        wanted = [name for name in known if chosen and name not in _pointless(options)]
    else:
        wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    if strange := [name for name in wanted if name not in known]:
        raise ConfigurationError(f"no tool {strange[0]!r}; there are {', '.join(known)}")
    return tuple(each for each in TOOLS if each["name"] in wanted)


def _pointless(options: Options) -> tuple[str, ...]:
    facts = options.get("facts")
    if facts is False:
        return _KEPT_AS_FACTS
    is_somebodys = any(options.get(name) for name in ("user", "project", "task"))
    return () if facts or is_somebodys else _LASTING
