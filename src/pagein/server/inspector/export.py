"""A run as one HTML file that opens without a server: the same pages, with all their data inside."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

from pagein.memory.operations.requests import RenderedRequest
from pagein.server.inspector.data import InspectorData, describe_changes, describe_request

_IMPORT = re.compile(r'(from|import)\s*(["\'])\./([^"\']+)\2')
_SHARED_MIN_CHARACTERS = 120
"""Characters from which on a text that several answers have is written once."""

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


def export_page(data: InspectorData, run: str, tick: Tick = lambda *_: None) -> bytes:
    """The HTML file of a run. Raises NotFound, LogError."""
    texts: dict[str, int] = {}
    # Each answer is shared at once: of a long run all of them would not fit in memory side by side.
    answers = {address: _share_texts(answer, texts) for address, answer in list_answers(data, run, tick)}
    value = {"run": run, "answers": answers, "texts": list(texts)}
    # Within a script element only "<" can end it.
    content = json.dumps(value).replace("<", "\\u003c")
    style, script = _read("style.css"), _bundle("app.js")
    policy = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'"
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}"><title>pagein</title><style>{style}</style></head>
<body><div id="app"></div><script type="application/json" id="pagein-export">{content}</script>
<script type="module">{script}</script></body></html>
"""
    return page.encode()


def _share_texts(value: Any, texts: dict[str, int]) -> Any:
    if isinstance(value, dict):
        return {key: _share_texts(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_share_texts(item, texts) for item in value]
    if isinstance(value, str) and (len(value) >= _SHARED_MIN_CHARACTERS or value.startswith(_REFERENCE)):
        return f"{_REFERENCE}{texts.setdefault(value, len(texts))}"
    return value


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
