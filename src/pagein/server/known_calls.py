"""The calls of runs whose clients give them no name: the id of a call tells which run a list is of."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_CALLS = 65_536

_RANDOM_ID = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8,}")
"""The part of an id that no two calls have: ``call_1`` and ``functions.read:0`` have none, and so may be of any run."""


@dataclass(slots=True)
class KnownCalls:
    """The names of runs by the ids of their newest calls."""

    _names: OrderedDict[tuple[str, str], str] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tenant: str, name: str, rows: Sequence[Any]) -> None:
        """Remember the calls of an answer in a run, no others: two clients may have the same example of a call in their lists."""
        with self._lock:
            for call_id in call_ids(rows):
                self._names.setdefault((tenant, call_id), name)
                self._names.move_to_end((tenant, call_id))
                if len(self._names) > MAX_CALLS:
                    self._names.popitem(last=False)

    def find_name(self, tenant: str, rows: Sequence[Any]) -> str:
        """Return the name of the run that has the newest known call of a list; "" where none is known."""
        with self._lock:
            names = (self._names.get((tenant, call_id), "") for call_id in call_ids(rows))
            return next((name for name in names if name), "")


def call_ids(rows: Sequence[Any]) -> Iterator[str]:
    """Yield the ids of the calls in messages of any protocol, the newest first; only those that no two calls have.

    >>> list(call_ids([{"role": "assistant", "tool_calls": [{"id": "call_Xa81kQ02b"}, {"id": "call_2"}]}]))
    ['call_Xa81kQ02b']
    >>> list(call_ids([{"role": "model", "parts": [{"text": "Yes."}, {"functionCall": {"id": "a81kQ02b"}}]}]))
    ['a81kQ02b']
    """
    for row in reversed(rows):
        if not isinstance(row, dict):
            continue
        ids = [call.get("id") for call in _objects(row.get("tool_calls"))]
        ids += [block.get("id") for block in _objects(row.get("content")) if block.get("type") == "tool_use"]
        ids += [
            call.get("id") for part in _objects(row.get("parts")) if isinstance(call := part.get("functionCall"), dict)
        ]
        ids += [row.get("call_id")] if str(row.get("type")).endswith("_call") else []
        yield from (call_id for call_id in ids if isinstance(call_id, str) and _RANDOM_ID.search(call_id))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
