"""The fates of the steps of a run, read once from its log and then only what is new: lives, and what was asked again.

A run forgot something where the model asked for it by a tool, called again for a result that had left its view, or a
page-in brought it back. What it missed and never asked for is not known.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from pagein._common.json_values import parse_json
from pagein.events.entries import REWRITTEN, Compaction, Erased, Observed
from pagein.events.handles import parse_handle, step_handle
from pagein.events.steps import ActionStep, ToolCall
from pagein.log.base import Entry, StoredLog
from pagein.log.branch_log import BranchLog
from pagein.log.hash_chain import decode_row
from pagein.log.requests import RequestTable
from pagein.memory.requests import PageInRecord, RequestRecord, decode_record

ASKING_TOOLS = ("recall", "expand")
"""The memory's tools by which a model asks for what left."""

MAX_QUERY_CHARACTERS = 200

_RESULT = re.compile(rb'\{"action":(\d+),')
"""The beginning of the stored body of a result."""

Json = dict[str, Any]


class Journal:
    """The compactions, erasures and questions of one run, and its page-ins."""

    def __init__(self) -> None:
        self.events: list[Entry] = []
        """Entries that say something of other entries: compactions, erasures, and calls of the memory's tools."""
        self.page_ins: list[tuple[RequestRecord, PageInRecord]] = []
        """Each page-in with the first request that showed it."""
        self.answers: dict[int, list[int]] = {}
        """By action, the positions of its results."""
        self._head, self._numbered = 0, 0
        self._asked: list[Json] = []
        self._calls: dict[bytes, int] = {}
        self._out: set[int] = set()
        self._request_heads: list[tuple[int, int]] = []

    def read(self, log: StoredLog, table: RequestTable) -> None:
        """Read what is new in a log and its table of requests. Raises LogError."""
        if log.head() < self._head:
            Journal.__init__(self)  # the run was erased, whole
        start = self._head
        for entry in self._new_entries(log):
            if start and isinstance(entry.body, Erased):
                Journal.__init__(self)  # it may have quoted what is gone
                self.read(log, table)
                return
            self._read_entry(entry)
        for row in table.rows(self._numbered):
            self._numbered = row.number
            self._request_heads.append((row.head, row.number))
            if b'"page_ins"' in row.body and (record := decode_record(row)) is not None:
                known = {page_in.head for _, page_in in self.page_ins[-8:]}
                self.page_ins += ((record, page_in) for page_in in record.page_ins if page_in.head not in known)

    def _new_entries(self, log: StoredLog) -> Iterator[Entry]:
        """The new entries; results of which only the action matters are noted and not decoded."""
        if isinstance(log, BranchLog):  # its rows would all be chained anew
            for entry in log.read(self._head):
                self._head = entry.position + 1
                yield entry
            return
        for row in log.rows(self._head):
            result = _RESULT.match(row.body) if row.kind == "observed" else None
            decoded = None if result else decode_row(row, log.blob)
            self._head = row.position + 1
            if decoded is not None:
                yield decoded
            elif result is not None:
                self.answers.setdefault(int(result[1]), []).append(row.position)

    def _read_entry(self, entry: Entry) -> None:
        match entry.body:
            case Compaction(replacements=replacements, policy=policy):
                for by in replacements if policy != REWRITTEN else ():
                    self._out.update(range(by.first, by.last))
                self.events.append(entry)
            case Erased():
                self.events.append(entry)
            case Observed(action=action):
                self.answers.setdefault(action, []).append(entry.position)
            case ActionStep(tool_calls=calls):
                for call in calls:
                    self._read_call(entry, call)
            case _:
                pass

    def _read_call(self, entry: Entry, call: ToolCall) -> None:
        if call.name in ASKING_TOOLS:
            self.events.append(entry)
            arguments = _read_arguments(call)
            target = next(filter(None, map(parse_handle, arguments.values())), None)
            why = "" if target else " ".join(arguments.values())[:MAX_QUERY_CHARACTERS]
            self._ask(entry, f"asked by {call.name}", why, str(target or ""))
            return
        digest = blake2b(f"{call.name}\n{call.arguments}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        before = self._calls.get(digest)
        if before is not None and before in self._out:
            handle = step_handle(before)
            self._ask(entry, "called again", f"{call.name}, as in {handle}", handle)
        self._calls[digest] = entry.position

    def _ask(self, entry: Entry, what: str, why: str, handle: str) -> None:
        self._asked.append(
            {"at": entry.at, "position": entry.position, "by": step_handle(entry.position), "what": what, "why": why,
             "handles": [handle] if handle else []}
        )  # fmt: skip

    def list_asked_again(self) -> list[Json]:
        """What was asked again, oldest first, each with the request in which it was out of view, or came back."""
        rows = [row | {"request": self._request_before(row["position"])} for row in self._asked]
        for record, page_in in self.page_ins:
            handles = list(dict.fromkeys(handle for handle, _ in page_in.reasons))
            why = page_in.why
            rows.append(
                {"at": record.at, "position": page_in.head, "by": "", "what": "page-in", "why": why, "handles": handles,
                 "request": record.number}
            )  # fmt: skip
        return sorted(rows, key=lambda row: (row["position"], row["at"]))

    def _request_before(self, position: int) -> int:
        """The number of the last request before a position; 0 for none."""
        at = bisect_right(self._request_heads, (position, 1 << 62))
        return self._request_heads[at - 1][1] if at else 0


def asked_for(call: ToolCall, first: int, last: int) -> bool:
    """True if a call of the memory's tools names a step in ``[first, last)``."""
    handles = map(parse_handle, _read_arguments(call).values())
    return call.name in ASKING_TOOLS and any(
        handle and handle.first < last and first < handle.last for handle in handles
    )


def page_in_kinds(page_in: PageInRecord, first: int, last: int) -> Sequence[str]:
    """The ways in which a page-in brought back a step in ``[first, last)``."""
    return sorted({block.kind for block in page_in.blocks if first <= block.position < last})


def _read_arguments(call: ToolCall) -> Mapping[str, str]:
    values = parse_json(call.arguments)
    values = values if isinstance(values, dict) else {}
    return {name: value for name, value in values.items() if isinstance(value, str)}
