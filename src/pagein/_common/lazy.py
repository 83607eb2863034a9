"""Names of a room that load where they are used: importing pagein loads what every turn needs, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_attributes(room: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """What a room has as its ``__getattr__``: each of the names is found in its module, which loads when it is asked for.

    ``homes`` says where each name is, as ``{"CheckpointInfo": "pagein.memory.checkpoints.state"}``.
    """

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return find
