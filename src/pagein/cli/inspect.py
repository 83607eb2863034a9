"""``pagein log``, ``view``, ``expand`` and ``verify``: into a database, whose record they never write to."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.memory import InMemoryLog
from pagein.cli import _output as screen
from pagein.cli import _stores as stores
from pagein.cli import checkpoint as branching
from pagein.cli._options import (
    AsJson,
    ModelName,
    SessionName,
)
from pagein.cli._settings import Budget, ConfigFile, FormatName, PolicyName, Tenant, place, viewing
from pagein.cli._stores import Database, TenantName
from pagein.cli.recall import rebuilt
from pagein.context.view.view import Report
from pagein.events.entries import (
    Body,
    Checkpoint,
    Compaction,
    Erased,
    FactBody,
    FactConfirmed,
    FactRemoved,
    FactsExtracted,
    FactsShown,
    FactStated,
    FactsUsed,
    Observed,
    Pin,
    Undo,
    Unpin,
)
from pagein.events.handles import observation_handle, range_handle, step_handle
from pagein.events.steps import ActionStep, as_text, kind_name
from pagein.facts.owners import is_reserved
from pagein.log.base import Entry, Log
from pagein.memory.agent_memory import AgentMemory

LINE = 200
"""Characters of a line of ``pagein log`` where stdout is no terminal."""


def log(
    db: Database,
    /,
    *,
    session: SessionName = None,
    tenant: TenantName = "",
    graph: branching.Graph = False,
    json: AsJson = False,
) -> int:
    """List what was recorded: every entry in order, with its handle.

    Where the file holds several sessions and none is named, the sessions are
    listed.

    For example:

      pagein log run.db
      pagein log run.db --session web-app --json
      pagein log run.db --graph
      pagein log postgresql://localhost/agents --tenant acme
    """
    names = stores.sessions(db, tenant)
    if session is None and len(names) > 1:
        return _list_sessions(db, names, tenant, json=json)
    if graph:
        return branching.graph(db, stores.chosen(db, names, session), tenant, json=json)
    with stores.opened(db, stores.chosen(db, names, session), tenant) as record:
        if json:
            screen.show_json([_entry(each) for each in record.read()])
            return 0
        width = screen.console().width if sys.stdout.isatty() else LINE
        for each in record.read():
            line = f"{step_handle(each.position):<6} {_kind(each.body):<11} {_said(each.body)}"
            screen.show(line if len(line) <= width else f"{line[: width - 1]}…")
    return 0


def view(
    db: Database,
    /,
    *,
    budget: Budget = None,
    session: SessionName = None,
    tenant: Tenant = None,
    policy: PolicyName = None,
    format: FormatName = None,
    model: ModelName = None,
    config: ConfigFile = None,
    messages: Annotated[
        bool, Parameter(help="Print the request itself, message by message.", show_default=False)
    ] = False,
    json: AsJson = False,
) -> int:
    """Show what the model would see under a budget: every token by tier and reason, and what is out.

    The file is not written to: where the view has to be compacted to fit, that
    happens in a copy in memory. What is not said is what pagein.toml says, as in
    "pagein config".

    For example:

      pagein view run.db --budget 8000
      pagein view run.db --budget 8000 --messages
      pagein view run.db --budget 8000 --format anthropic --messages --json
    """
    how = viewing(config, budget=budget, policy=policy, format=format, model=model)
    with _of(db, *place(config, session, tenant)) as record:
        copy = _copy(record)
    with AgentMemory(
        copy,
        budget=how.budget,
        policy=how.policy,
        counter=how.counter,
        format=how.format,
        page_in=how.page_in,
    ) as memory:
        request = memory.to_request()
        report = memory.report()
    if json:
        screen.show_json(_report(report) | ({"request": request} if messages else {}))
    elif messages:
        for line in _spoken(request):
            screen.show(line)
    else:
        _print_report(report)
    return 0


def expand(
    db: Database,
    handle: Annotated[str, Parameter(help="As in stubs and summaries: s12, s12.0 or s3-18.")],
    /,
    *,
    session: SessionName = None,
    tenant: TenantName = "",
    json: AsJson = False,
) -> int:
    """Print the original behind a handle, whole.

    With --json its steps and notes come as they were recorded.

    For example:

      pagein expand run.db s12.0
      pagein expand run.db s3-18 > before.txt
    """
    with (
        _of(db, session, tenant) as record,
        AgentMemory(record) as memory,
    ):
        found = memory.expand(handle)
    if json:
        steps = [{"kind": kind_name(each), **_plain(each)} for each in found.steps]
        notes = _plain(found.notes)
        screen.show_json({"handle": found.handle, "text": str(found), "steps": steps, "notes": notes})
    else:
        screen.show(str(found))
    return 0


def verify(
    db: Database,
    /,
    *,
    session: SessionName = None,
    tenant: TenantName = "",
    rebuild_index: Annotated[
        bool,
        Parameter(help="Drop the index that recall searches, and build it anew.", show_default=False),
    ] = False,
    json: AsJson = False,
) -> int:
    """Derive every hash of the record again. Exit code 1 where anything is wrong.

    With --rebuild-index the index of every session is then built anew from the
    record, where that is sound; the record itself is only read. It needs no more
    than that: an index can be thrown away.

    For example:

      pagein verify run.db
      pagein verify run.db --rebuild-index
    """
    names = stores.sessions(db, tenant, is_left_out=lambda _: False)
    wanted = names if session is None else (stores.chosen(db, names, session),)
    found = {}
    for name in wanted:
        with stores.opened(db, name, tenant) as record:
            found[name] = record.verify()
    if json:
        screen.show_json({name: _plain(each) | {"ok": each.ok} for name, each in found.items()})
    else:
        for name, each in found.items():
            erased = f" ({each.erased:,} erased)" if each.erased else ""
            screen.show(f"{name}: {each.entries:,} entries{erased}, " + ("ok" if each.ok else "DAMAGED"))
            for problem in each.problems:
                where = "the log" if problem.position is None else step_handle(problem.position)
                screen.show(f"  {where}: {problem.what}")
    is_sound = all(each.ok for each in found.values())
    if rebuild_index and is_sound:
        entries = rebuilt(db, tenant, tuple(name for name in names if not is_reserved(name)))
        if not json:
            screen.show(f"the index was built anew: {entries:,} entries")
    return 0 if is_sound else 1


# -- sessions


def _of(db: str, session: str | None, tenant: str) -> AbstractContextManager[Log]:
    return stores.opened(db, stores.chosen(db, stores.sessions(db, tenant), session), tenant)


def _list_sessions(db: str, names: Sequence[str], tenant: str, *, json: bool) -> int:
    entries: dict[str, int] = {}
    for name in names:
        with stores.opened(db, name, tenant) as record:
            entries[name] = record.head()
    if json:
        screen.show_json({"sessions": [{"session": name, "entries": entries[name]} for name in names]})
        return 0
    made = screen.table(f"{len(names)} sessions; see one with --session", "session", "entries")
    for name in names:
        screen.row(made, name, screen.number(entries[name]))
    screen.console().print(made)
    return 0


def _copy(record: Log) -> InMemoryLog:
    """The record once more, in memory, where it may be written to."""
    copy = InMemoryLog()
    copy.append([entry.body for entry in record.read()], after=0, at=time.time())
    return copy


# -- entries


def _kind(body: Body) -> str:
    if isinstance(body, FactBody):
        return type(body).__name__.removeprefix("Facts").removeprefix("Fact").lower()
    match body:
        case Observed():
            return "observation"
        case Compaction() | Pin() | Unpin() | Checkpoint() | Undo():
            return type(body).__name__.lower()
        case _:
            return kind_name(body)


def _said(body: Body) -> str:
    """What an entry says, in one line."""
    match body:
        case Observed(action=action, index=index, observation=seen):
            return _line(f"of {observation_handle(action, index)}, {seen.status}: {as_text(seen.content)}")
        case Compaction(policy=policy, reason=reason, tokens_before=before, tokens_after=after):
            where = f"s{body.first}-{body.last - 1}"
            return _line(f"{where} by {policy}, {before:,} to {after:,} tokens: {reason}")
        case Pin(text=text) | FactsShown(text=text):
            return _line(text)
        case Unpin(position=position) | Undo(position=position):
            return f"of {step_handle(position)}"
        case Checkpoint(name=name):
            return _line(name)
        case Erased(spans=spans, reason=reason, gone=gone):
            where = " ".join(range_handle(first, last) for first, last in spans)
            return _line(f"{where}{f' ({gone:,} entries)' if gone else ''}: {reason}")
        case FactStated() | FactRemoved() | FactConfirmed() | FactsUsed() | FactsExtracted():
            return _fact(body)
        case ActionStep(content=content, tool_calls=calls):
            asked = " ".join(f"{call.name}({call.arguments})" for call in calls)
            return _line(f"{asked} {as_text(content)}")
        case _:
            return _line(as_text(body.content))


def _fact(body: FactStated | FactRemoved | FactConfirmed | FactsUsed | FactsExtracted) -> str:
    """What an entry says of facts, in one line."""
    match body:
        case FactStated(content=content, category=category):
            return _line(f"{category}: {content}")
        case FactRemoved(fact=fact, reason=reason) | FactConfirmed(fact=fact, reason=reason):
            return _line(f"of {step_handle(fact)}: {reason}")
        case FactsUsed(facts=used):
            return _line("of " + " ".join(map(step_handle, used)))
        case FactsExtracted(session=session, upto=upto):
            return _line(f"{session!r} up to {step_handle(upto)}")


def _line(text: str) -> str:
    return screen.clean(" ".join(text[: 4 * LINE].split()))


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "handle": step_handle(entry.position),
        "position": entry.position,
        "at": entry.at,
        "kind": _kind(entry.body),
        "body": _plain(entry.body),
        "digest": entry.digest,
    }


def _plain(value: Any) -> Any:
    """A value of ours as JSON-safe values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


# -- the report


def _report(report: Report) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(report)
    return plain | {"by_tier": report.by_tier()}


def _print_report(report: Report) -> None:
    out = screen.console()
    sums = screen.table(f"{report.tokens:,} of {report.limit:,} tokens", "tier", "tokens", "share")
    for tier, tokens in report.by_tier().items():
        screen.row(sums, tier, screen.number(tokens), screen.percent(tokens / max(1, report.tokens)))
    out.print(sums)
    shown = screen.table("in the view, in its order", "handle", "tier", "why", "tokens", left=3)
    for line in report.lines:
        screen.row(shown, line.handle, line.tier, line.why, screen.number(line.tokens))
    out.print(shown)
    left = screen.table("out of the view; pagein expand gives each back", "handle", "tier", "why", left=3)
    for each in report.out:
        screen.row(left, each.handle, each.tier, each.why)
    out.print(left if report.out else "Nothing is out of the view.")


def _spoken(request: dict[str, Any]) -> Iterator[str]:
    """The request as a person reads it."""
    if request.get("system"):
        yield "── system"
        yield _readable(request["system"])
    for message in request["messages"]:
        answers = message.get("tool_call_id")
        yield f"── {message['role']}" + (f" {answers}" if answers else "")
        if message.get("content"):
            yield _readable(message["content"])
        for call in message.get("tool_calls") or ():
            function = call.get("function") or call.get("custom") or {}
            asked = function.get("arguments", function.get("input", ""))
            yield f"→ {function.get('name', call.get('type'))}({asked}) {call.get('id', '')}"


def _readable(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_part(part) for part in content)


def _part(part: dict[str, Any]) -> str:
    match part.get("type"):
        case "text" | "thinking":
            return str(part.get("text", part.get("thinking", "")))
        case "tool_use":
            return f"→ {part.get('name')}({screen.compact(part.get('input'))}) {part.get('id')}"
        case "tool_result":
            return f"← {part.get('tool_use_id')}\n{_readable(part.get('content') or '')}"
        case kind:
            return f"[{kind}]"
