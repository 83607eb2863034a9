"""Read recorded runs from a file: JSON lines or one JSON value, also gzipped.

A run is a list of messages, or an object with ``messages`` and an optional ``id``. The format of the messages, OpenAI
chat or Anthropic, is detected.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Final

from pagein.errors import ConfigurationError, FormatError
from pagein.formats import FormatName, format_named, guess_format
from pagein.formats.parsing import type_name

DEMO: Final = "demo.jsonl.gz"
"""The bundled run, from the mini-swe-agent project under its MIT licence."""

_GZIP: Final = b"\x1f\x8b"

_UNFINISHED: Final = (b"{", b"[", b",")
"""Ends of a first line whose JSON value continues on the next line."""


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded run: its messages, and the format they are in. ``where`` is the file and line it came from."""

    id: str
    messages: tuple[dict[str, Any], ...]
    format: FormatName = "openai"
    system: Any = None
    """An Anthropic system prompt, which is separate from the messages."""
    where: str = ""

    @property
    def wire(self) -> tuple[dict[str, Any], ...]:
        """The messages, with a separate system prompt as the first of them."""
        return self.messages if self.system is None else ({"system": self.system}, *self.messages)

    @property
    def request(self) -> dict[str, Any]:
        """The whole run as one request."""
        messages = {"messages": list(self.messages)}
        return messages if self.system is None else {"system": self.system, **messages}


def read_runs(path: str | Path, *, limit: int | None = None) -> tuple[Run, ...]:
    """Read the runs of a file, at most ``limit``.

    Raises FormatError with the file and the line, ConfigurationError where the file cannot be read.
    """
    where = Path(path)
    stem = where.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    with _open_file(where) as file:
        runs = tuple(
            _parse_run(value, f"{where}:{line}", f"{stem}:{line}")
            for line, value in islice(_values(file, where), limit)
        )
    if not runs and limit != 0:
        raise FormatError("the file has no runs", path=str(where))
    return runs


def turns_of(run: Run) -> list[list[dict[str, Any]]]:
    """The new messages of each request of a run; last those behind its last request."""
    turns: list[list[dict[str, Any]]] = [[]]
    for message in run.wire:
        if message.get("role") == "assistant" and turns[-1]:
            turns.append([])
        turns[-1].append(dict(message))
    return turns


def replay_clock() -> Callable[[], float]:
    """Return a clock that goes a second with each look: requests name days, and a pause empties the provider's cache."""
    return count(1.0).__next__


def demo_run() -> Run:
    """Read the bundled run."""
    bundled = resources.files("pagein.evaluation").joinpath("recorded", DEMO)
    with resources.as_file(bundled) as path:
        return read_runs(path, limit=1)[0]


@contextmanager
def _open_file(path: Path) -> Iterator[Iterable[bytes]]:
    try:
        with path.open("rb") as raw:
            if raw.peek(2)[:2] != _GZIP:  # no seek, because it may be a pipe
                yield raw
                return
            with gzip.GzipFile(fileobj=raw) as unzipped:
                yield unzipped
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"the gzip data is damaged or truncated: {error}", path=str(path)) from error
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error


def _values(file: Iterable[bytes], path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the JSON values of a file with their line numbers: one a line, or one value over many lines."""
    numbered = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    number, first = next(numbered, (0, b""))
    if not number:
        return
    second = next(numbered, None)
    if second is None:
        yield from _split_list(number, _json(first, path, number))
    elif first.rstrip().endswith(_UNFINISHED):
        rest = b"".join(line for _, line in chain((second,), numbered))
        yield from _split_list(number, _json(first + rest, path, number))
    else:
        for at, line in chain(((number, first), second), numbered):
            yield at, _json(line, path, at)


def _split_list(number: int, value: Any) -> Iterator[tuple[int, Any]]:
    """Yield the runs of a list of runs; any other value as it is."""
    nested = isinstance(value, list) and bool(value) and not any(map(_is_message, value))
    for run in value if nested else (value,):
        yield number, run


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value and "messages" not in value


def _json(text: bytes, path: Path, line: int) -> Any:
    try:
        return json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8: {error.reason} at byte {error.start}", path=f"{path}:{line}") from error
    except json.JSONDecodeError as error:
        at = f"{path}:{line + error.lineno - 1}"
        raise FormatError(f"not JSON: {error.msg} at column {error.colno}", path=at) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON that can be read: {error}", path=f"{path}:{line}") from error


def _parse_run(value: Any, where: str, name: str) -> Run:
    if isinstance(value, dict) and "messages" in value:
        messages, system = value["messages"], value.get("system")
        name = str(value.get("id") or value.get("instance_id") or name)
    elif isinstance(value, list):
        messages, system = value, None
    else:
        hint = "; this is a single message" if _is_message(value) else f", not {type_name(value)}"
        if isinstance(value, dict) and "pagein" in value:
            hint = "; this is a session: write its messages with pagein export --format openai"
        raise FormatError(f'a run is a list of messages or {{"id": ..., "messages": [...]}}{hint}', path=where)
    request = messages if system is None else {"system": system, "messages": messages}
    try:
        format = guess_format(request)
        format_named(format).parse(request)
    except FormatError as error:
        raise FormatError(str(error), path=where) from error
    return Run(name, tuple(messages), format, system, where)


def number_duplicates(names: Iterable[str]) -> tuple[str, ...]:
    """Number repeated names.

    >>> number_duplicates(["a", "b", "a"])
    ('a', 'b', 'a-2')
    """
    used: set[str] = set()
    result = []
    for name in names:
        unique, number = name, 1
        while unique in used:
            number += 1
            unique = f"{name}-{number}"
        used.add(unique)
        result.append(unique)
    return tuple(result)
