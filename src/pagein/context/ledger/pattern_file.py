r"""Patterns in a text file, by name: a stranger reads and extends them, a row for each way to say something.

A section begins with ``[NAME]``. Each row below it has one or more alternatives, parted by ``|``; the section is all of them.

- ``{NAME}`` stands for another section.
- A row that ends with the beginning of a group, such as ``(?:``, has the rows up to the next ``)`` inside.
- A frame behind the name holds for all rows, which stand in the place of its ``@``: ``[STYLE] \b@\b`` finds whole words.
- ``[ ]`` is a space at the beginning or the end of an alternative.
- ``# e.g. ...`` is an example of the next row, which a test holds. Other lines that begin with ``#`` are comments, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

_HEADER = re.compile(r"\[([A-Z][A-Z0-9_]*)\](?: (.+))?")
_REFERENCE = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")
_IN_GROUP = re.compile(r"(?<=\(\?[:!=])\n|(?<=\w>)\n|\n(?=\))")
"""The end of a row that begins a group, or of the last one inside."""


class PatternFile:
    """The sections of a file of the ledger, each of which can be compiled. Upper and lower case are the same to them."""

    def __init__(self, name: str) -> None:
        self.sections: dict[str, tuple[str, list[str]]] = {}
        """By name, the frame and the rows of a section."""
        self._compiled: dict[str, re.Pattern[str]] = {}
        text = files("pagein.context.ledger").joinpath(name).read_text("utf-8")
        for line in map(str.strip, text.splitlines()):
            if (header := _HEADER.fullmatch(line)) is not None:
                rows = list[str]()
                self.sections[header[1]] = header[2] or "@", rows
            elif line and line[0] != "#":
                rows.append(line)

    def pattern(self, name: str) -> re.Pattern[str]:
        """Return the compiled pattern of a section."""
        if name not in self._compiled:
            self._compiled[name] = re.compile(self.expand(*self.sections[name]), re.IGNORECASE)
        return self._compiled[name]

    def expand(self, frame: str, rows: Iterable[str]) -> str:
        """Return the pattern of rows in a frame, with sections in the place of their names."""
        alternatives = _IN_GROUP.sub("", "\n".join(rows)).replace("\n", "|")
        pattern = alternatives if frame == "@" else frame.replace("@", f"(?:{alternatives})")
        return _REFERENCE.sub(lambda reference: f"(?:{self.expand(*self.sections[reference[1]])})", pattern)
