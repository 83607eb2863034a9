"""Attributes of a package that load when they are first used: importing pagein loads only what every turn needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from pagein.errors import ConfigurationError


def lazy_attributes(package: str, modules: Mapping[str, str], extra: str = "") -> Callable[[str], object]:
    """Make a package's ``__getattr__``, which imports the module of a name when the name is first used.

    ``modules`` has the module of each name, as ``{"CheckpointInfo": "pagein.memory.checkpoints.state"}``. A name that needs
    an ``extra`` raises ConfigurationError where it is not installed.
    """

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(modules[name]), name)
        except ModuleNotFoundError as error:
            if not extra:
                raise
            raise ConfigurationError(f"{package}.{name} needs {error.name}: pip install 'pagein[{extra}]'") from None
        setattr(sys.modules[package], name, value)  # the next use finds it there
        return value

    return find
