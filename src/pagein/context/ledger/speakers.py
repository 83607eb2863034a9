"""Speakers of a chat of several: the labels that an application writes before each message of the user. Pure."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from typing import Any

MIN_LABELLED, LABELLED_SHARE, NAMES_SHARE = 6, 0.8, 0.5
"""Labelled messages of the user from which a run is a chat of several, their share of all, and that of different labels among
them: in a list of settings each line has another one."""

MAX_SPEAKERS = 200
"""Labels that are counted."""

_LABEL = re.compile(
    r"\s*(?!(?i:tasks?|notes?|todo|questions?|answers?|observations?|errors?|warnings?|info|context|input|output|results?|steps?|goals?|bugs?|fix|feat|issues?|updates?|reminder|rules?|important|PS)\b)"
    r"([^\W\d_][^\n:\uff1a!?\u3002]{0,60})[:\uff1a]\s*(?=\S)"
)
"""Something short before a colon that is no kind of message: "Dr. Ames: "."""


class Speakers:
    """Counts the labels of the user's messages. The same messages in the same order give the same answers."""

    def __init__(self) -> None:
        self._messages = 0
        self._labels: Counter[int] = Counter()
        """How often each label was used, by its checksum: names are no part of a state, and can be erased."""

    @property
    def are_several(self) -> bool:
        """True where nearly every message of the user has one of a few labels."""
        labelled = self._labels.total()
        is_labelled = labelled >= max(MIN_LABELLED, self._messages * LABELLED_SHARE)
        return is_labelled and 1 < len(self._labels) <= labelled * NAMES_SHARE

    def hear(self, text: str) -> str:
        """Count a message; return what its speaker says: in a chat of several the text without its label."""
        self._messages += 1
        label = _LABEL.match(text)
        if label is None:
            return text
        checksum = zlib.crc32(label[1].encode("utf-8", "surrogatepass"))
        if checksum in self._labels or len(self._labels) < MAX_SPEAKERS:
            self._labels[checksum] += 1
        # What was before a colon once may be words of the message: "Never deploy before 10:30".
        return text[label.end() :] if self.are_several and self._labels[checksum] > 1 else text

    def to_state(self) -> list[Any]:
        """Return the counts as JSON-safe values."""
        return [self._messages, *map(list, self._labels.items())]

    @classmethod
    def from_state(cls, state: list[Any]) -> Speakers:
        """Restore the counts from ``to_state``; [] for none."""
        speakers = cls()
        if state:
            speakers._messages, *labels = state
            speakers._labels.update(dict(labels))
        return speakers
