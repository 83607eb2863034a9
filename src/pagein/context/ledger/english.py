"""The patterns of English in ``english.txt``: what orders, limits, decisions, aims, promises, preferences, values and revisions look like.

``english.FORBID`` is the section ``[FORBID]`` of the file. It is compiled when it is first used: all of them take a tenth of a second. Each
pattern is linear in the sentence, which has at most ``own_words.SENTENCE_MAX_CHARS`` characters.
"""

from __future__ import annotations

import re

from pagein.context.ledger.pattern_file import PatternFile
from pagein.context.salience.lines import has_part

PATTERNS = PatternFile("english.txt")

OLD_NEW = (
    (("not ",), "NOT_OLD_BUT_NEW"),
    (("instead of", "rather than", "in place of", "and not", "replace"), "NEW_INSTEAD_OF_OLD"),
    ((", not ",), "NEW_NOT_OLD"),
    (("from ",), "FROM_OLD_TO_NEW"),
    (("over",), "NEW_OVER_OLD"),
    (("replace ",), "REPLACE_OLD_WITH_NEW"),
    (("scratch", "forget", "ditch", "drop", "scrap", "bin", "skip", "no more"), "NO_OLD_BUT_NEW"),
    (("forget", "ditch", "drop", "scrap", "no more"), "NEW_SO_NO_OLD"),
)
"""The patterns of a new value in the place of an old one, each with words of which one is in every match, in lower case."""


def __getattr__(name: str) -> re.Pattern[str]:
    """Return the pattern of a section."""
    if name not in PATTERNS.sections:
        raise AttributeError(f"english.txt has no section [{name}]")
    pattern = globals()[name] = PATTERNS.pattern(name)
    return pattern


def find_old_and_new(masked: str) -> tuple[str, tuple[int, int]] | None:
    """Find what a sentence replaces, and where what stands in its place is."""
    for parts, name in OLD_NEW:
        if has_part(masked, parts) and (match := PATTERNS.pattern(name).search(masked)) is not None:
            return match["old"].strip(), match.span("new")
    if (match := PATTERNS.pattern("GONE").search(masked)) is not None:
        form = next(form for form in ("", "_too", "_three") if match[f"old{form}"])
        return match[f"old{form}"].strip(), match.span(f"new{form}")
    return None
