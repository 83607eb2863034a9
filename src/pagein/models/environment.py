"""Inputs of a model from its environment: SDK packages, API keys, windows, headers; and redaction of keys in texts."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable
from typing import Any

from pagein.errors import ConfigurationError
from pagein.tokens.windows import MODELS

REDACTED = "[key]"
MAX_ERROR_CHARS = 500
"""Characters of a provider's message that an error repeats."""

# Keys by their form; then values after a label such as "api_key".
_KEY_PATTERNS = (
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|nvapi|csk|fw|pplx|r8|ghp|gho|glpat)[-_][A-Za-z0-9_*.-]{6,}"),
    re.compile(r"\bAIza[0-9A-Za-z_-]{10,}"),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]{8,}"),
    re.compile(r"(?i)(?<=\bbearer )[^\s'\",;]{4,}|(?<=\bbasic )[A-Za-z0-9+/=]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]{1,200}:[^/\s@]{1,200}(?=@)"),
)
_LABELLED_KEY = re.compile(
    r"(?i)((?:api[-_ ]?key|authorization|access[-_ ]?token|auth[-_ ]?token|secret|password)"
    r"(?: provided)?['\"]?\s{0,3}[:=]\s{0,3}(?:bearer |basic )?['\"]?)([^\s'\",;&}]{4,})"
)


def require_sdk(package: str, extra: str, what: str) -> None:
    """Check that a package is installed, without importing it. Raises ConfigurationError with the install command."""
    if importlib.util.find_spec(package) is None:
        raise ConfigurationError(f"{what} needs {package}: pip install 'pagein[{extra}]'")


def read_api_key(variable: str, what: str) -> str:
    """Read a key from an environment variable. Raises ConfigurationError if it is not set."""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigurationError(
            f"{what} needs a key: set the environment variable {variable}. Keys are read from there only."
        )
    return key


def resolve_window(name: str, window: int | None) -> int:
    """Return ``window``, or the model's window from the table if None, in tokens. Raises ConfigurationError below 1."""
    if window is None:
        model = MODELS.get(name)
        return model.input or model.window
    if isinstance(window, bool) or window < 1:
        raise ConfigurationError(f"a window is a number of tokens above 0, not {window!r}")
    return window


def count_or_zero(value: Any) -> int:
    """Return a provider's count, or 0 if the value is not a positive integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def header_names(variable: str) -> tuple[str, ...]:
    """Names of the headers in an environment variable that an SDK reads, one ``name: value`` a line."""
    lines = os.environ.get(variable, "").splitlines()
    return tuple(line.partition(":")[0].strip() for line in lines if ":" in line)


def redact_keys(text: str, keys: Iterable[str] = (), max_chars: int = MAX_ERROR_CHARS) -> str:
    """Redact keys from a text, and put it on one line of at most ``max_chars`` characters. ``keys`` are known keys.

    >>> redact_keys("Incorrect API key provided: sk-proj-abcdef123. Authorization: Bearer abc.def")
    'Incorrect API key provided: [key] Authorization: Bearer [key]'
    """
    line = text[: 20 * max_chars].encode("utf-8", "replace").decode()
    for key in keys:
        if len(key) >= 4:
            line = line.replace(key, REDACTED)
    for pattern in _KEY_PATTERNS:
        line = pattern.sub(REDACTED, line)
    line = " ".join(_LABELLED_KEY.sub(rf"\1{REDACTED}", line).split())
    return line if len(line) <= max_chars else line[: max_chars - 3] + "..."
