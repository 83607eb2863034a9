"""The record of a request: what was sent to the model, what it cost, and how it can be rendered again.

It has numbers, positions and hashes, and no text of the run. What was shown is made again from the log at the
record's head; the digest tells whether it is what was sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

from pagein.context.page_in.sources import BlockSource
from pagein.errors import PageinError
from pagein.events.handles import observation_handle, step_handle
from pagein.formats.sdk_objects import cache_written
from pagein.log.requests import REQUEST_MAX_BYTES, RequestRow, RequestTable, encode_body
from pagein.memory.options import check_usage
from pagein.tokens import Budget

NOTE_MAX_CHARACTERS = 80
"""Characters of an outcome, of a note, and of its name."""

_REASONS = {
    "search": "found for the newest step", "turn": "found for the user's words", "lines": "likely needed now",
    "recent": "among the newest that left", "file": "of a file that the run works on",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageInRecord:
    """The sources of a page-in as it was found at ``head``: the sources of its blocks, and numbers of names.

    ``is_complete`` is False where a part of it cannot be named by its place; then it cannot be made again.
    """

    head: int
    blocks: tuple[BlockSource, ...] = ()
    names: tuple[int, ...] = ()
    is_complete: bool = True

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """The handle of each block, and the reason why it came back."""
        return tuple(
            (step_handle(block.position) if block.part < 0 else observation_handle(block.position, block.part),
             _REASONS[block.kind])
            for block in self.blocks
        )  # fmt: skip

    @property
    def why(self) -> str:
        """The reasons why its blocks came back."""
        return ", ".join(dict.fromkeys(reason for _, reason in self.reasons)) or "likely needed now"


@dataclass(frozen=True, slots=True)
class FactsRecord:
    """A block of facts before the steps from ``position`` on: the ids of its facts, each with the one that disputes it.

    ``is_later`` is False for the first block of a view.
    """

    position: int
    ids: tuple[tuple[str, str], ...]
    is_later: bool = False


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """The usage that the provider reported, in its tokens; ``input`` includes what was read from and written to its cache."""

    input: int
    output: int = 0
    cache_read: int = 0
    cache_written: int = 0


def read_request_usage(usage: Any) -> RequestUsage:
    """The usage of a request as its provider reported it. Raises ConfigurationError for what is no usage."""
    report = check_usage(usage)
    return RequestUsage(report.input_tokens, report.output_tokens, report.cached_tokens, cache_written(usage))


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """The filters of ``to_messages``, which record nothing."""

    summary_mode: bool = False
    keep_last_n: int | None = None
    max_tokens: int | None = None


NO_FILTER = RequestFilter()


@dataclass(frozen=True, slots=True)
class UnrecordedPlan:
    """The settings of a view that left out more than the log says: with a filter, or in room of its own.

    ``policy`` is a name, "" for a policy that has none; ``page_in`` the share of the limit for a page-in. ``worth`` is that
    of an extract's tokens; None where an earlier release did not write it.
    """

    policy: str
    budget: Budget
    page_in: float
    is_narrow: bool
    worth: float | None = None


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of a run, as it was sent.

    ``number`` counts the run's requests from 1 on. ``head`` is the number of entries that the log of ``branch`` had, ``at``
    the time in seconds since the epoch. ``budget`` is the window and ``reserve`` what it leaves for output and tools;
    ``limit`` is what the messages may cost, ``tokens`` what they do, ``tiers`` for what. ``digest`` is the hash of the
    rendered request, ``lists`` are those of its messages: without a line at its end that nobody said, and with it. ``prefix`` counts the tokens that it begins with as the request before did; ``broke`` is the handle or
    the tier of what differs there, ``broke_why`` the reason; "" where it only goes on. ``rewritten`` are the tokens
    behind the break that the request before had, too. ``recorded`` are the tokens of the run
    with everything in it, 0 where they are not known, and ``used`` the heads of the page-ins that alone showed something which
    the newest action names. ``usage`` is None until it is known.
    ``writers`` are the tokens that models read and wrote for a purpose, beside the run, since the request before.
    ``seconds`` has durations by name, such as ``first`` and ``whole``; ``outcome`` what became of it, "" while unknown.
    """

    number: int = 0
    head: int = 0
    at: float = 0.0
    branch: str = "main"
    model: str = ""
    format: str = ""
    counter: str = ""
    budget: int = 0
    reserve: int = 0
    limit: int = 0
    tokens: int = 0
    tiers: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""
    lists: tuple[str, ...] = ()
    compactions: int = 0
    prefix: int = 0
    broke: str = ""
    broke_why: str = ""
    rewritten: int = 0
    recorded: int = 0
    used: tuple[int, ...] = ()
    filter: RequestFilter = NO_FILTER
    page_ins: tuple[PageInRecord, ...] = ()
    facts: tuple[FactsRecord, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    """The names of the owners of the facts: the user, the project, the task."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The host's names of roles in the messages."""
    plan: UnrecordedPlan | None = None
    bytes: int | None = None
    """The bytes that the messages might have; None for any number."""
    usage: RequestUsage | None = None
    writers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    outcome: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Short facts of who sent it, such as a proxy's request id. No text of the run belongs here."""


_ROW_FIELDS = ("number", "head", "at")
_FIELDS = frozenset(each.name for each in fields(RequestRecord))
_BODY_DEFAULTS = {name: getattr(RequestRecord(), name) for name in sorted(_FIELDS.difference(_ROW_FIELDS))}
_BODY_VALUES = attrgetter(*_BODY_DEFAULTS)


def encode_record(record: RequestRecord) -> bytes:
    """Encode a record as the body of its row, at most ``REQUEST_MAX_BYTES``: the names of a long page-in give way first."""
    body = _encode(record)
    if len(body) > REQUEST_MAX_BYTES and record.page_ins:
        unnamed = (replace(page_in, names=(), is_complete=False) for page_in in record.page_ins)
        body = _encode(replace(record, page_ins=tuple(unnamed)))
        if len(body) > REQUEST_MAX_BYTES:
            body = _encode(replace(record, page_ins=(PageInRecord(record.page_ins[0].head, is_complete=False),)))
    if len(body) > REQUEST_MAX_BYTES:
        body = _encode(replace(record, facts=(), owners={}, page_ins=(), notes={}, digest=""))
    return body


def _encode(record: RequestRecord) -> bytes:
    body = zip(_BODY_DEFAULTS.items(), _BODY_VALUES(record), strict=True)
    changed = ((name, value) for (name, default), value in body if value != default)
    return encode_body({name: _FORMS[name][0](value) if name in _FORMS else value for name, value in changed})


def decode_record(row: RequestRow) -> RequestRecord | None:
    """Decode a stored row; None for a damaged one, or one of a later release."""
    try:
        known = ((name, value) for name, value in json.loads(row.body).items() if name in _FIELDS)
        values: dict[str, Any] = {name: _FORMS[name][1](value) if name in _FORMS else value for name, value in known}
        return RequestRecord(**values | {"number": row.number, "head": row.head, "at": row.at})
    except (ValueError, TypeError, KeyError, AttributeError, PageinError):
        return None


def read_records(table: RequestTable, after: int = 0, limit: int | None = None) -> tuple[RequestRecord, ...]:
    """Read the records of a table behind a number; damaged ones are left out. Raises LogError."""
    records = map(decode_record, table.rows(after, limit))
    return tuple(record for record in records if record is not None)


def last_record(table: RequestTable) -> RequestRecord | None:
    """Read the last record of a table; None where there is none, or it is damaged. Raises LogError."""
    return next(iter(read_records(table, table.last() - 1, 1)), None)


def _encode_plan(plan: UnrecordedPlan) -> dict[str, Any]:
    row = asdict(plan)
    row["budget"].pop("bytes")  # the record has those of the messages
    return row


def decode_sources(rows: list[list[Any]]) -> tuple[BlockSource, ...]:
    """Decode the sources of a page-in's blocks."""
    return tuple(
        BlockSource(kind, position, part, None if lines is None else tuple(lines), of)
        for kind, position, part, lines, of in rows
    )


_FORMS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "filter": (asdict, lambda row: RequestFilter(**row)),
    "page_ins": (
        lambda page_ins: [[page_in.head, page_in.blocks, page_in.names, page_in.is_complete] for page_in in page_ins],
        lambda rows: tuple(PageInRecord(head, decode_sources(blocks), tuple(names), whole) for head, blocks, names, whole in rows),
    ),
    "facts": (
        lambda facts: [[block.position, block.ids, block.is_later] for block in facts],
        lambda rows: tuple(FactsRecord(at, tuple((id, disputed) for id, disputed in ids), later) for at, ids, later in rows),
    ),
    "plan": (_encode_plan, lambda row: UnrecordedPlan(**row | {"budget": Budget(**row["budget"])})),
    "used": (tuple, tuple),
    "lists": (tuple, tuple),
    "writers": (dict, lambda row: {purpose: (int(read), int(wrote)) for purpose, (read, wrote) in row.items()}),
    "usage": (asdict, lambda row: RequestUsage(**row)),
}  # fmt: skip
"""By field how its value is written as JSON, and read again; every other one is JSON as it is."""


def with_outcome(
    record: RequestRecord,
    outcome: str,
    usage: RequestUsage | None,
    seconds: Mapping[str, float],
    notes: Mapping[str, str],
) -> RequestRecord:
    """The record with what became of its request; texts are cut to a length that a row has room for."""
    short = {name[:NOTE_MAX_CHARACTERS]: text[:NOTE_MAX_CHARACTERS] for name, text in notes.items()}
    return replace(
        record,
        usage=usage or record.usage,
        outcome=outcome[:NOTE_MAX_CHARACTERS] or record.outcome,
        seconds={**record.seconds, **{name: round(value, 6) for name, value in seconds.items()}},
        notes={**record.notes, **short},
    )
