"""A run as one HTML file that opens without a server: the same pages, with all their data inside."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.resources import files
from itertools import chain
from typing import Any

from pagein.memory.operations.requests import RenderedRequest
from pagein.server.inspector.data import InspectorData, describe_changes, describe_request

_IMPORT = re.compile(r'(from|import)\s*(["\'])\./([^"\']+)\2')
_SHARED_MIN_CHARACTERS = 120
"""Characters from which on what several answers have is written once."""

_REFERENCE = "\0#"


Tick = Callable[[int, int], None]
"""Called after each request of a run with its number among them, and their number."""


def list_answers(data: InspectorData, run: str, tick: Tick) -> Iterator[tuple[str, Any]]:
    """Yield the answers that the pages of a run ask for, with their addresses. Raises NotFound, LogError."""
    asked, requests = data.list_asked_again(run), data.requests(run)
    yield "runs", {"runs": [row for row in data.runs()["runs"] if row["run"] == run], "store": ""}
    yield f"runs/{run}/marks", data.marks(run)
    yield f"runs/{run}/requests", requests
    yield f"runs/{run}/asked", asked
    yield f"runs/{run}/cost", data.cost(run)
    before: RenderedRequest | None = None
    handles = {handle for row in asked["asked"] for handle in (row["by"], *row["handles"]) if handle}
    for done, row in enumerate(requests["requests"], 1):
        rendered = data.render(run, row["number"])
        request = describe_request(run, rendered)
        yield f"runs/{run}/requests/{row['number']}", request
        if before is not None:
            changes = describe_changes(run, before, rendered)
            yield f"runs/{run}/requests/{row['number']}/diff/{before.record.number}", changes
        before = rendered
        handles.update(block["handle"] for block in request["blocks"] if block["handle"])
        handles.update(item["handle"] for item in request["out"])
        handles.update(handle for handle, _ in request["record"]["reasons"])
        tick(done, len(requests["requests"]))
    for handle in sorted(handles):
        yield f"runs/{run}/steps/{handle}", data.step(run, handle)


def export_page(data: InspectorData, run: str, tick: Tick = lambda *_: None) -> Iterator[bytes]:
    """Yield the HTML file of a run, piece by piece: nothing but what repeats is in memory. Raises NotFound, LogError."""
    answers = list_answers(data, run, tick)
    first = next(answers)
    style, script = _read("style.css"), _bundle("app.js")
    policy = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'"
    yield f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}"><title>pagein</title><style>{style}</style></head>
<body><div id="app"></div><script type="text/plain" id="pagein-export">""".encode()
    yield from _pack(_list_lines(chain([("", {"run": run}), first], answers)))
    yield f"""</script>
<script type="module">{script}</script></body></html>
""".encode()


@dataclass(slots=True)
class _Shared:
    """What several answers have, each a line of its own, numbered in their order."""

    numbers: dict[bytes, int] = field(default_factory=dict)
    new_lines: list[str] = field(default_factory=list)

    def share(self, value: Any) -> Any:
        """The value, or where it is long a reference to its line."""
        if isinstance(value, dict):
            value = {key: self.share(item) if isinstance(item, str) else item for key, item in value.items()}
        elif not isinstance(value, str):
            return value
        text = json.dumps(value)
        if len(text) < _SHARED_MIN_CHARACTERS and not (isinstance(value, str) and value.startswith(_REFERENCE)):
            return value
        digest = blake2b(text.encode(), digest_size=16).digest()
        if digest not in self.numbers:
            self.numbers[digest] = len(self.numbers)
            self.new_lines.append(f"\t{text}\n")
        return f"{_REFERENCE}{self.numbers[digest]}"


def _list_lines(answers: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield a line for each answer, its address and its value; before it, with no address, those that it refers to."""
    shared = _Shared()
    for address, answer in answers:
        value = {key: list(map(shared.share, item)) if isinstance(item, list) else shared.share(item)
                 for key, item in answer.items()}  # fmt: skip
        yield from shared.new_lines
        shared.new_lines.clear()
        yield f"{json.dumps(address)}\t{json.dumps(value)}\n"


def _pack(lines: Iterable[str]) -> Iterator[bytes]:
    """Compress lines as gzip does, in base64."""
    packer, rest = zlib.compressobj(wbits=31), b""
    for line in lines:
        rest += packer.compress(line.encode())
        whole = len(rest) // 3 * 3
        yield base64.b64encode(rest[:whole])
        rest = rest[whole:]
    yield base64.b64encode(rest + packer.flush())


def _bundle(name: str) -> str:
    """A module with every module that it imports inside, as an address of data."""
    text = _read(name)

    def inline(match: re.Match[str]) -> str:
        folder = name.rpartition("/")[0]
        other = _bundle(f"{folder}/{match[3]}" if folder else match[3])
        encoded = base64.b64encode(other.encode()).decode()
        return f'{match[1]} "data:text/javascript;base64,{encoded}"'

    return _IMPORT.sub(inline, text)


def _read(name: str) -> str:
    return (files("pagein.server.inspector") / "static" / name).read_text("utf-8")
