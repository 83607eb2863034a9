"""The texts that facts are extracted from, and the candidates found in them."""

from __future__ import annotations

from dataclasses import dataclass

from pagein.events.entries import Source

RETRACTION = "retraction"
"""Category of a candidate that the user takes back: it is no fact, and the fact that says the same leaves."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """A text with its source; ``speaker`` is ``user``, ``answer`` or ``tool``; ``rewritten`` if it is a message's new wording."""

    speaker: str
    text: str
    source: Source
    rewritten: bool = False


@dataclass(frozen=True, slots=True)
class FactCandidate:
    """A possible fact with its source; ``corrects`` if it corrects an earlier one, or says that something changed.

    ``rewritten`` if it is of a message's new wording.
    """

    content: str
    category: str
    confidence: float
    source: Source
    corrects: bool = False
    rewritten: bool = False
