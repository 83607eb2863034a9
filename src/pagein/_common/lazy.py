"""Names of a room that load where they are used: importing pagein loads what every turn needs, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(room: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """What a room has as its ``__getattr__``: each of the names is found in its module, which loads when it is asked for.

    ``homes`` says where each name is, as ``{"Mark": "pagein.memory.checkpoints.state"}``.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return find


def is_of(value: object, module: str, kind: str) -> bool:
    """Whether a value is of a class whose module may not have loaded: whoever holds one has loaded it.

    >>> is_of(1, "fractions", "Fraction")
    False
    """
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, kind))
