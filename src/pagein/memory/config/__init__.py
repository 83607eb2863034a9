"""Everything that can be set, in one file: ``pagein.toml``, or ``[tool.pagein]`` in a ``pyproject.toml``.

    config = load()
    memory = AgentMemory.open("run.db", **config.options())

rules     what each key may be and what it is for
keys      the keys, their types and defaults read from the code that takes them
reading   the file, and the environment over it
building  from values to options
page      the page of the documentation, written from the keys

Opening a memory reads no file: a configuration is loaded by whoever wants one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pagein.errors import ConfigurationError
from pagein.memory.config.build import options_of, patience_of, summarizer_of
from pagein.memory.config.keys import KEYS, Key, Value
from pagein.memory.config.sources import Found, found_in

__all__ = ["KEYS", "Config", "Found", "Key", "Value", "load"]


@dataclass(frozen=True, slots=True)
class Config:
    """What was set, each value with where it was; whatever was not set is the default of the code that takes it.

    ``file`` is the one that was read, if any. Made by ``load``, which checked it.
    """

    values: Mapping[str, Found] = field(default_factory=dict)
    file: Path | None = None

    def options(self) -> dict[str, Any]:
        """What to open a memory with: ``AgentMemory.open(url, **config.options())``; only what was set.

        A spend limit is an account of its own at each call. Raises ConfigurationError for a summarizer that cannot be
        made: no such maker, its SDK not installed, its key not in the environment.
        """
        options = options_of(self.values)
        summarizer = summarizer_of(self.values)
        return options if summarizer is None else options | {"summarizer": summarizer}

    def value(self, name: str) -> Any:
        """What holds for a key: what was set, else its default. Raises ConfigurationError for a key there is not."""
        if name not in KEYS:
            raise ConfigurationError(f"no key {name!r}; pagein config --docs lists them all")
        found = self.values.get(name)
        return KEYS[name].default if found is None else found.value


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    start: str | os.PathLike[str] | None = None,
) -> Config:
    """The configuration of a file, the environment's ``PAGEIN_...`` over it; all of it checked, or nothing given.

    Without a ``path`` the nearest from ``start`` upwards, by default from where we are: in each folder ``pagein.toml``,
    then ``[tool.pagein]``; one file holds, they are never mixed; no file is no error. A file that was only found may
    not say where keys are sent. Raises ConfigurationError with the source, the key, the value and what it may be.
    """
    file, values = found_in(
        None if path is None else Path(path),
        Path.cwd() if start is None else Path(start),
        os.environ if environ is None else environ,
    )
    options_of(values)
    patience_of(values)
    return Config(MappingProxyType(values), file)
