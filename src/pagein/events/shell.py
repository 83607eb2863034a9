"""A shell's command as text: its parts, the programs that they run, and the words that may be paths. Pure.

It knows quotes, separators and redirections, and no more of a shell's grammar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

COMMAND_KEYS: Final = ("command", "cmd")
"""Names of arguments that have a command."""

FOLDER_KEYS: Final = ("workdir", "cwd", "working_directory")
"""Names of arguments that have the folder in which a command runs."""

COMMAND_MAX_CHARS: Final = 8_000
"""Characters of a command in which paths are looked for."""

VIEWERS: Final = frozenset(("bat", "cat", "head", "less", "nl", "sed", "tail"))
"""Programs that print the lines of a file in their order."""

READERS: Final = VIEWERS.union(("awk", "egrep", "grep", "jq", "rg", "sort", "uniq"))
"""Programs that print what is in files."""

COMPANIONS: Final = READERS.union(("cd", "echo", "find", "ls", "pwd", "tree", "true", "wc"))
"""Those, and programs that agents put beside them."""

_SEPARATOR = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?P<separator>&&|\|\|?|;|\n)""", re.DOTALL)
"""What separates the parts of a command, or quoted text, in which nothing does."""

_WORD = re.compile(r"[^\s'\"`;&|<>=,:*?{}#]{3,}")
_ERROR_OUTPUT = re.compile(r"2>\s*\S+")
_IN_PLACE = re.compile(r"(?:^|\s)-(?:\w*i|-in-place)")


def command_of(fields: Mapping[str, object]) -> str:
    """The command in the arguments of a call, or "".

    >>> command_of({"command": ["bash", "-lc", "cat a.py"]})
    'cat a.py'
    """
    value = next((fields[key] for key in COMMAND_KEYS if key in fields), None)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        is_script = any(re.fullmatch(r"(?i)-\w*c(ommand)?", word) for word in value[-2:-1])
        value = value[-1] if is_script else " ".join(value)
    return value if isinstance(value, str) else ""


def split_command(command: str) -> list[str]:
    """Split a command at ``&&``, ``||``, ``|``, ``;`` and the ends of lines, outside of quotes.

    >>> split_command("cd src && grep -n 'a|b' x.py | head 2>&1")
    ['cd src', "grep -n 'a|b' x.py", 'head 2>&1']
    """
    start, parts = 0, list[str]()
    for match in _SEPARATOR.finditer(command):
        if match["separator"]:
            parts.append(command[start : match.start()].strip())
            start = match.end()
    return [part for part in (*parts, command[start:].strip()) if part]


def programs_of(command: str) -> set[str]:
    """The programs that the parts of a command run."""
    return {part.split(maxsplit=1)[0] for part in split_command(command)}


def folder_of(fields: Mapping[str, object], command: str) -> str:
    """The folder in which a command runs, as far as the call says so, or "".

    >>> folder_of({"workdir": "/home/u"}, "cd proj && cat a.py")
    '/home/u/proj'
    """
    folder = next((value for key in FOLDER_KEYS if isinstance(value := fields.get(key), str)), "")
    if command.startswith("cd ") and (parts := split_command(command[:COMMAND_MAX_CHARS])):
        target = parts[0][3:].strip().strip("'\"")
        folder = "" if "$" in target or target.startswith("-") else join_path(folder, target)
    return folder


def join_path(folder: str, path: str) -> str:
    """Join a folder and a path in it, without ``.`` and ``..``.

    >>> join_path("/home/u", "./src/../a.py"), join_path("src", "/a.py"), join_path("", "./a.py")
    ('/home/u/a.py', '/a.py', 'a.py')
    """
    whole = path if not folder or path.startswith(("/", "~")) else f"{folder}/{path}"
    parts: list[str] = []
    for part in whole.split("/"):
        if part == ".." and parts and parts[-1] not in ("", ".."):
            parts.pop()
        elif part not in (".", "") or not (parts or part):
            parts.append(part)
    return "/".join(parts)


def path_words(text: str) -> tuple[str, ...]:
    """The words of a text that may be paths of files, each once.

    >>> path_words("sed -n '1,9p' src/a.py ./b.ts; git show HEAD:c/Makefile -- src/ --all https://x.org/a.py")
    ('src/a.py', './b.ts', 'c/Makefile')
    """
    words: dict[str, None] = {}
    for word in (word.rstrip("\\") for word in _WORD.findall(text[:COMMAND_MAX_CHARS])):
        # A backslash is of a pattern, of an escaped space, or of Windows: what is behind it is no path.
        if ("." in word or "/" in word) and "\\" not in word and not word.startswith(("-", "//")):
            # In a path brackets stand between slashes, as in app/(shop)/page.tsx; others are of the text around it.
            path = word if "/(" in word else word.rpartition("(")[2].rstrip(").")
            if len(path) > 2 and path[-1] != "/" and ("/" in path or path.rpartition(".")[2][:1].isalpha()):
                words[path] = None
    return tuple(words)


def viewed_paths(command: str) -> tuple[str, ...]:
    """The paths of the files whose lines a command prints in their order.

    >>> viewed_paths("cd src && nl -ba a.py | sed -n '1,40p'; cat b.py > c.py; sed -i s/a/b/ d.py; cat > e.py <<'END'")
    ('a.py',)
    """
    paths: list[str] = []
    for part in split_command(command[:COMMAND_MAX_CHARS].partition("<<")[0]):
        program, _, rest = part.partition(" ")
        if program in VIEWERS:
            rest = _ERROR_OUTPUT.sub("", rest)
            if ">" not in rest and not (program == "sed" and _IN_PLACE.search(rest)):
                paths += path_words(rest)
    return tuple(paths)
