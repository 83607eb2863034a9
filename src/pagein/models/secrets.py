"""No key in any text: what a provider or an exception says is scrubbed before it becomes ours."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "[key]"
MOST = 500
"""Characters of a foreign text that an error of ours repeats."""

# By shape: the known makers' keys, then whatever stands behind a word that announces one.
_SHAPES = (
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|nvapi|csk|fw|pplx|r8|ghp|gho|glpat)[-_][A-Za-z0-9_*.-]{6,}"),
    re.compile(r"\bAIza[0-9A-Za-z_-]{10,}"),
    re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]{8,}"),
    re.compile(r"(?i)(?<=\bbearer )[^\s'\",;]{4,}|(?<=\bbasic )[A-Za-z0-9+/=]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]{1,200}:[^/\s@]{1,200}(?=@)"),
)
_ANNOUNCED = re.compile(
    r"(?i)((?:api[-_ ]?key|authorization|access[-_ ]?token|auth[-_ ]?token|secret|password)"
    r"(?: provided)?['\"]?\s{0,3}[:=]\s{0,3}(?:bearer |basic )?['\"]?)([^\s'\",;&}]{4,})"
)


def scrubbed(text: str, known: Iterable[str] = (), most: int = MOST) -> str:
    """The text without keys, on one line, of at most ``most`` characters. ``known`` keys go wherever they stand.

    >>> scrubbed("Incorrect API key provided: sk-proj-abcdef123. Authorization: Bearer abc.def")
    'Incorrect API key provided: [key] Authorization: Bearer [key]'
    """
    line = text[: 20 * most].encode("utf-8", "replace").decode()
    for key in known:
        if len(key) >= 4:
            line = line.replace(key, HIDDEN)
    for shape in _SHAPES:
        line = shape.sub(HIDDEN, line)
    line = " ".join(_ANNOUNCED.sub(rf"\1{HIDDEN}", line).split())
    return line if len(line) <= most else line[: most - 3] + "..."
