"""What a model needs from outside: an SDK that is installed, and a key from the environment. Neither is kept."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from pagein.errors import ConfigurationError
from pagein.tokens.windows import MODELS


def require(package: str, extra: str, what: str) -> None:
    """Returns when the package is installed, without importing it. Raises ConfigurationError with the command."""
    if importlib.util.find_spec(package) is None:
        raise ConfigurationError(f"{what} needs the {package} SDK: pip install 'pagein[{extra}]'")


def key_of(variable: str, what: str) -> str:
    """The key in that environment variable, read anew each time. Raises ConfigurationError naming the variable."""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigurationError(
            f"{what} needs a key: set the environment variable {variable}. Keys are read from there only."
        )
    return key


def window_of(name: str, window: int | None) -> int:
    """Tokens of a model's window: as the caller says, else as the table says. Raises ConfigurationError below 1."""
    if window is None:
        known = MODELS.get(name)
        return known.input or known.window
    if isinstance(window, bool) or window < 1:
        raise ConfigurationError(f"a window is a number of tokens above 0, not {window!r}")
    return window


def whole(value: Any) -> int:
    """A count as a provider reported it: 0 for whatever is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def own_headers(variable: str) -> tuple[str, ...]:
    """Names of the headers that an SDK adds from an environment variable, one ``name: value`` a line."""
    lines = os.environ.get(variable, "").splitlines()
    return tuple(line.partition(":")[0].strip() for line in lines if ":" in line)
