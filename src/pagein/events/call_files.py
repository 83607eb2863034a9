"""The files that a tool call names: in an argument, in a patch, or in a shell's command. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pagein.events.identifiers import parse_arguments
from pagein.events.shell import command_of, folder_of, join_path, path_words, viewed_paths

PATH_KEYS: Final = frozenset(
    ("path", "filepath", "file", "filename", "targetfile", "absolutepath", "relativepath", "notebookpath")
)
"""Names of arguments that name a file, in lower case and without underscores and hyphens."""

_PATCHED_FILE = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S[^\n\t]*)", re.MULTILINE)
"""The line of a patch that names the file whose hunks follow."""


@dataclass(frozen=True, slots=True)
class CallFiles:
    """The files that a call names.

    ``path`` is the one of an argument. Of a ``command``, ``viewed`` are the files whose lines it prints, and ``words`` all words
    that may be paths. ``patches`` has the hunks for each file that a patch changes.
    """

    path: str = ""
    command: str = ""
    viewed: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    patches: Mapping[str, str] = field(default_factory=dict)

    @property
    def text_paths(self) -> tuple[str, ...]:
        """The files whose text the result has."""
        return (self.path,) if self.path else self.viewed

    @property
    def mention_paths(self) -> tuple[str, ...]:
        """The paths that name a file if one with this path was read before."""
        return (*self.words, *self.patches)


def files_of(arguments: str) -> CallFiles:
    r"""Find the files that a call with these arguments names.

    >>> files_of('{"file_path": "/src/a.py", "old_string": "x = 1"}').path
    '/src/a.py'
    >>> files_of('{"cmd": "nl -ba src/a.py | head -40", "workdir": "/home/u"}').viewed
    ('/home/u/src/a.py',)
    >>> files_of("*** Begin Patch\n*** Update File: src/a.py\n@@\n-x = 1\n*** End Patch").mention_paths
    ('src/a.py',)
    """
    fields = parse_arguments(arguments)
    for key, value in fields.items():
        if isinstance(value, str) and value and key.lower().replace("_", "").replace("-", "") in PATH_KEYS:
            return CallFiles(value)
    command = command_of(fields)
    folder = folder_of(fields, command)
    texts = (command,) if command else (value for value in fields.values() if isinstance(value, str))
    patches: dict[str, str] = {}
    for path, hunks in (patch for text in texts for patch in _patches_in(text)):
        whole = join_path(folder, path)
        patches[whole] = patches.get(whole, "") + hunks
    if patches or not command:
        return CallFiles(command=command, patches=patches)
    viewed, words = (
        [join_path(folder, path) for path in paths] for paths in (viewed_paths(command), path_words(command))
    )
    return CallFiles(command=command, viewed=tuple(viewed), words=tuple(words))


def _patches_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each file that a patch in the text changes, with its hunks."""
    if "*** " not in text and "+++ " not in text:
        return
    marks = list(_PATCHED_FILE.finditer(text))
    ends = (*(mark.start() for mark in marks[1:]), len(text))
    for mark, end in zip(marks, ends, strict=False):
        yield mark[1].strip(), text[mark.end() : end]
