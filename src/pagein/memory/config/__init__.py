"""Configuration in one file: ``pagein.toml``, or ``[tool.pagein]`` in a ``pyproject.toml``.

    config = load()
    memory = AgentMemory.open("run.db", **config.options())

keys     every key, read from the documented fields of the code that takes it
sources  values from the file and the environment
build    options from values
page     ``docs/configuration.md``, rendered from the keys

Opening a memory reads no file: the application loads its configuration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pagein.errors import ConfigurationError
from pagein.memory.config.build import build_options, build_retry_options, build_summarizer
from pagein.memory.config.keys import KEYS, Key, Value
from pagein.memory.config.sources import ConfiguredValue, read_sources

__all__ = ["KEYS", "Config", "ConfiguredValue", "Key", "Value", "load"]


@dataclass(frozen=True, slots=True)
class Config:
    """The values that were set, each with its source, and the file that was read, if any. Made by ``load``."""

    values: Mapping[str, ConfiguredValue] = field(default_factory=dict)
    file: Path | None = None

    def options(self) -> dict[str, Any]:
        """The options that were set, for ``AgentMemory.open(url, **config.options())``.

        Each call makes a new spend limit. Raises ConfigurationError where the summarizer's maker is unknown, its SDK
        not installed, or its key not in the environment.
        """
        options = build_options(self.values)
        summarizer = build_summarizer(self.values)
        return options if summarizer is None else options | {"summarizer": summarizer}

    def value(self, name: str) -> Any:
        """The value of a key: the one that was set, else its default. Raises ConfigurationError for an unknown key."""
        if name not in KEYS:
            raise ConfigurationError(f"no key {name!r}; pagein config --docs lists all keys")
        return self.values[name].value if name in self.values else KEYS[name].default


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    start: str | os.PathLike[str] | None = None,
) -> Config:
    """Load and check a file, and the environment's ``PAGEIN_...`` variables, which override it.

    Without ``path``, use the nearest file from ``start`` (default: the working folder) upwards: in each folder
    ``pagein.toml``, then ``[tool.pagein]`` in ``pyproject.toml``. Only that file is used; a file is optional. A file
    that was found by search may not say where keys are sent. Raises ConfigurationError with the source, the key, the
    value and the allowed values.
    """
    file, values = read_sources(
        None if path is None else Path(path),
        Path.cwd() if start is None else Path(start),
        os.environ if environ is None else environ,
    )
    build_options(values)
    build_retry_options(values)
    return Config(MappingProxyType(values), file)
