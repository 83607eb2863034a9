"""``pagein log``, ``view``, ``expand`` and ``verify``: inspect a store without writing to its record."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.backends.open import display_name, open_store
from pagein.cli import _output, _settings, _stores, checkpoint
from pagein.cli._options import AsJson, ModelName, resolve_counter
from pagein.cli._stores import ReadonlyStoreAddress
from pagein.cli.inspector import open_data
from pagein.cli.recall import Day, parse_time, rebuild_search_index
from pagein.context.view.layout import make_entry
from pagein.context.view.view import Report
from pagein.errors import ConfigurationError, UnknownRequest
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
    Mark,
    Observed,
    Pin,
    Undo,
    Unpin,
)
from pagein.events.handles import observation_handle, range_handle, step_handle
from pagein.events.steps import ActionStep, Step, as_text, kind_name
from pagein.facts.owners import Owners, is_reserved, users_with_facts
from pagein.log.base import Entry, Log
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.config import load
from pagein.memory.operations.requests import RenderedRequest
from pagein.memory.options import Options
from pagein.tokens import TokenCounter

LINE_CHARACTERS, LINE_MIN_CHARACTERS = 200, 80
"""Length of a line of ``pagein log`` where stdout is no terminal, and in a narrow one."""


def log(
    db: ReadonlyStoreAddress,
    /,
    *,
    run: _settings.RunOptions = _settings.ANY_RUN,
    user: Annotated[str | None, Parameter(help="List the facts of this user, as recorded, instead of a run.")] = None,
    limit: Annotated[int | None, Parameter(help="Show only the newest entries, this many.")] = None,
    since: Day = None,
    graph: checkpoint.Graph = False,
    json: AsJson = False,
) -> int:
    """List every recorded entry in order: its handle, its time in UTC, its tokens, its kind and its first words.

    If the store has several sessions and none is named, the sessions are listed.

    For example:

      pagein log run.db
      pagein log run.db --session web-app --json
      pagein log run.db --limit 20
      pagein log run.db --since 2026-05-01
      pagein log run.db --graph
      pagein log run.db --user alice
      pagein log postgresql://localhost/agents --tenant acme
    """
    session, tenant = run.resolve()
    names = _stores.list_sessions(db, tenant)
    if user is not None:
        session = _facts_session(db, tenant, user)
    if session is None and len(names) > 1:
        return _list_sessions(db, names, tenant, json=json)
    if graph:
        return checkpoint.print_graph(db, _stores.choose_session(db, names, session), tenant, json=json)
    with _stores.open_stored_log(db, _stores.choose_session(db, names, session), tenant) as record:
        entries = tuple(_newest_entries(record, limit, parse_time("--since", since)))
        counter = resolve_counter(None)
        if json:
            _output.print_json([_entry_as_dict(entry, counter) for entry in entries])
            return 0
        width = max(_output.console().width, LINE_MIN_CHARACTERS) if sys.stdout.isatty() else LINE_CHARACTERS
        for entry in entries:
            tokens = _count_tokens(entry.body, counter)
            size = "" if tokens is None else _output.format_short(tokens)
            when = f"{_output.format_time(entry.at):<16} {size:>6}"
            line = f"{step_handle(entry.position):<6} {when} {_kind(entry.body):<11} {_describe_entry(entry.body)}"
            _output.print_text(line if len(line) <= width else f"{line[: width - 1]}…")
        if not entries:
            _output.print_text(f"No entries since {since}.")
    return 0


def _facts_session(db: str, tenant: str, user: str) -> str:
    """The session with the facts of a user. Raises ConfigurationError where there are none, and names those there are."""
    users = sorted(users_with_facts(_stores.list_sessions(db, tenant, is_left_out=lambda _: False)))
    if user not in users:
        raise ConfigurationError(
            f"{display_name(db)}: no facts of the user {user!r}. {_stores.users_hint(users)} {_stores.OTHER_TENANT}"
        )
    return Owners("", user=user).log_name("user")


def _newest_entries(record: Log, limit: int | None, since: float | None) -> Iterator[Entry]:
    """The entries recorded since a time, of these the newest. Raises ConfigurationError for a limit below 1."""
    if limit is not None and limit < 1:
        raise ConfigurationError(f"--limit is a number of entries, 1 or more, not {limit}")
    start = 0 if limit is None else max(0, record.head() - limit)
    return (entry for entry in record.read(start) if since is None or entry.at >= since)


def view(
    db: ReadonlyStoreAddress,
    /,
    *,
    budget: Annotated[
        int | None, Parameter(help="Show the present view, in this many tokens. Needed if no request was sent.")
    ] = None,
    run: _settings.RunOptions = _settings.ANY_RUN,
    user: Annotated[str | None, Parameter(help="User whose facts the view has. Default: the configuration's.")] = None,
    policy: _settings.ConfiguredPolicy = None,
    format: _settings.ConfiguredFormat = None,
    model: ModelName = None,
    config: _settings.ConfigFile = None,
    request: Annotated[int | None, Parameter(help="Show this request of the run, as it was sent.")] = None,
    messages: Annotated[bool, Parameter(help="Print the request, message by message.")] = False,
    json: AsJson = False,
) -> int:
    """Show what the model saw: the tokens by tier and reason, and what was left out.

    Without --budget it shows the last request that was sent, or the one of
    --request. The request is made again from the log, and compared with what was
    sent. With --budget it shows the view that the run would have now, with the
    facts of --user.

    The command does not write to the store, also if it has to compact the view.
    pagein.toml sets the defaults, see pagein config.

    For example:

      pagein view run.db
      pagein view run.db --request 12 --messages
      pagein view run.db --budget 8000
      pagein view run.db --budget 8000 --user alice --messages
      pagein view run.db --budget 8000 --format anthropic --messages --json
    """
    name, tenant = run.find(db, config)
    if budget is None:
        sent_request = _find_sent_request(db, name, tenant, request)
        if sent_request is not None:
            given = {"--user": user, "--policy": policy, "--format": format, "--model": model}
            _refuse_view_options([name for name, option in given.items() if option is not None])
            return _print_sent_request(sent_request, messages=messages, json=json)
    settings = _settings.ViewOptions(budget, policy, format, model, config).settings()
    options: Options = {
        **settings.options, "format": settings.format, "user": _settings.option_or_setting(load(config), "user", user),
    }  # fmt: skip
    with AgentMemory.open(db, session=name, tenant=tenant, readonly=True, **options) as memory:
        rendered = memory.to_request()
        report = memory.report()
    _print_view(report, rendered, messages=messages, json=json)
    return 0


def _refuse_view_options(given: Sequence[str]) -> None:
    """Raise ConfigurationError for options of a view that would be made now, beside a request that was sent."""
    if given:
        raise ConfigurationError(
            f"{', '.join(given)} changes no request that was sent: add --budget to see the view that the run would have now"
        )


def _find_sent_request(db: str, name: str, tenant: str, number: int | None) -> RenderedRequest | None:
    """The request of that number, or the last one, rendered again; None where none is named and none is known."""
    with closing(open_data(db, tenant)) as data:
        try:
            return data.render(name, number)
        except UnknownRequest:
            with _stores.open_stored_log(db, name, tenant) as record:
                # Raises for a store whose key is missing: it knows its requests, and tells none.
                next(iter(record.read(0, 1)), None)
            if number is None:
                return None
            raise


def _print_sent_request(rendered: RenderedRequest, *, messages: bool, json: bool) -> int:
    """Print a request that was sent; the exit code is 1 where it is not what was sent."""
    if not json:
        state = f"not as it was sent: {rendered.problem}" if rendered.problem else "as it was sent, byte for byte"
        _output.print_text(f"request {rendered.record.number} of {rendered.record.branch}: {state}")
    _print_view(rendered.view.report, rendered.request, messages=messages, json=json, problem=rendered.problem)
    return 1 if rendered.problem else 0


def _print_view(report: Report, request: dict[str, Any], *, messages: bool, json: bool, problem: str = "") -> None:
    if json:
        extra = {"problem": problem} if problem else {}
        values = asdict(report) | {"by_tier": report.by_tier()}
        _output.print_json(values | extra | ({"request": request} if messages else {}))
    elif messages:
        for line in _request_lines(request):
            _output.print_text(line)
    else:
        _print_report(report)


def expand(
    db: ReadonlyStoreAddress,
    handle: Annotated[str, Parameter(help="Handle from a stub or summary: s12, s12.0 or s3-18.")],
    /,
    *,
    run: _settings.RunOptions = _settings.ANY_RUN,
    json: AsJson = False,
) -> int:
    """Print the whole original of a handle.

    With --json, its steps and notes are printed as they were recorded.

    For example:

      pagein expand run.db s12.0
      pagein expand run.db s3-18 > before.txt
    """
    with run.open_memory(db, readonly=True) as memory:
        original = memory.expand(handle)
    if json:
        steps = [{"kind": kind_name(step), **asdict(step)} for step in original.steps]
        notes = [asdict(note) for note in original.notes]
        _output.print_json({"handle": original.handle, "text": str(original), "steps": steps, "notes": notes})
    else:
        _output.print_text(str(original))
    return 0


def verify(
    db: ReadonlyStoreAddress,
    /,
    *,
    run: _settings.RunOptions = _settings.ANY_RUN,
    rebuild_index: Annotated[bool, Parameter(help="Rebuild the search index from the record.")] = False,
    json: AsJson = False,
) -> int:
    """Verify every hash of the record. Exit code 1 if anything is wrong.

    With --rebuild-index, the search index of every session is then rebuilt from
    the record, if that is sound. The record is only read.

    For example:

      pagein verify run.db
      pagein verify run.db --rebuild-index
    """
    tenant = _settings.resolve_tenant(run.tenant)
    names = _stores.list_sessions(db, tenant, is_left_out=lambda _: False)
    selected = names if run.session is None else (_stores.choose_session(db, names, run.session),)
    results = {}
    with (
        closing(open_store(db, tenant=tenant, readonly=True)) as store,
        _output.progress_bar("verify", len(selected)) as advance,
    ):
        for name, result in store.verify(selected):
            results[name] = result
            advance()
    if json:
        _output.print_json({name: asdict(result) | {"ok": result.ok} for name, result in results.items()})
    else:
        for name, result in results.items():
            erased = f" ({result.erased:,} erased)" if result.erased else ""
            state = "ok" if result.ok else "DAMAGED"
            _output.print_text(
                f"{_stores.shown_name(name)}: {_output.count_of(result.entries, 'entry', 'entries')}{erased}, {state}"
            )
            for problem in result.problems:
                where = "the log" if problem.position is None else step_handle(problem.position)
                _output.print_text(f"  {where}: {problem.what}")
    is_sound = all(result.ok for result in results.values())
    if rebuild_index and is_sound:
        entries = rebuild_search_index(db, tenant, tuple(name for name in names if not is_reserved(name)))
        if not json:
            _output.print_text(f"the search index was rebuilt: {_output.count_of(entries, 'entry', 'entries')}")
    return 0 if is_sound else 1


# -- sessions


def _list_sessions(db: str, names: Sequence[str], tenant: str, *, json: bool) -> int:
    with closing(open_store(db, tenant=tenant, readonly=True)) as store:
        entries = {name: store.head(name) for name in names}
    if json:
        _output.print_json({"sessions": [{"session": name, "entries": entries[name]} for name in names]})
        return 0
    title = f"{len(names)} sessions; choose one with --session"
    rows = ((_stores.shown_name(name), _output.format_count(entries[name])) for name in names)
    _output.print_table(title, "session", "entries", rows=rows)
    return 0


# -- entries


def _kind(body: Body) -> str:
    if isinstance(body, FactBody):
        return type(body).__name__.removeprefix("Facts").removeprefix("Fact").lower()
    match body:
        case Observed():
            return "observation"
        case Compaction() | Pin() | Unpin() | Mark() | Checkpoint() | Undo():
            return type(body).__name__.lower()
        case _:
            return kind_name(body)


def _describe_entry(body: Body) -> str:
    match body:
        case Observed(action=action, index=index, observation=observation):
            return _line(
                f"of {observation_handle(action, index)}, {observation.status}: {as_text(observation.content)}"
            )
        case Compaction(policy=policy, reason=reason, tokens_before=before, tokens_after=after):
            where = f"s{body.first}-{body.last - 1}"
            return _line(f"{where} by {policy}, {before:,} to {after:,} tokens: {reason}")
        case Pin(text=text) | FactsShown(text=text):
            return _line(text)
        case Unpin(position=position) | Undo(position=position):
            return f"of {step_handle(position)}"
        case Mark(position=position, importance=importance):
            return f"{importance}, of {step_handle(position)}"
        case Checkpoint(name=name):
            return _line(name)
        case Erased(spans=spans, reason=reason, gone=erased_entries):
            where = " ".join(range_handle(first, last) for first, last in spans)
            return _line(f"{where}{f' ({erased_entries:,} entries)' if erased_entries else ''}: {reason}")
        case FactStated() | FactRemoved() | FactConfirmed() | FactsUsed() | FactsExtracted():
            return _describe_fact_entry(body)
        case ActionStep(content=content, tool_calls=calls):
            call_texts = " ".join(f"{call.name}({call.arguments})" for call in calls)
            return _line(f"{call_texts} {as_text(content)}")
        case _:
            return _line(as_text(body.content))


def _describe_fact_entry(body: FactStated | FactRemoved | FactConfirmed | FactsUsed | FactsExtracted) -> str:
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
    return _output.strip_control(" ".join(text[: 4 * LINE_CHARACTERS].split()))


def _count_tokens(body: Body, counter: TokenCounter) -> int | None:
    """The tokens of what an entry says to a model, whole; None for one that says nothing."""
    if isinstance(body, FactsShown):
        return counter.text(body.text)
    if isinstance(body, Step | Observed | Pin):
        ids = tuple(call.id for call in getattr(body, "tool_calls", ()))
        return make_entry(body, 0, 1, counter, tier="whole", why="", ids=ids).tokens
    return None


def _entry_as_dict(entry: Entry, counter: TokenCounter) -> dict[str, Any]:
    place = {"handle": step_handle(entry.position), "position": entry.position, "at": entry.at}
    size = {"tokens": _count_tokens(entry.body, counter)}
    return place | size | {"kind": _kind(entry.body), "body": asdict(entry.body), "digest": entry.digest}


# -- the report


def _print_report(report: Report) -> None:
    sums = (
        (tier, _output.format_count(tokens), _output.format_percent(tokens / max(1, report.tokens)))
        for tier, tokens in report.by_tier().items()
    )
    _output.print_table(f"{report.tokens:,} of {report.limit:,} tokens", "tier", "tokens", "share", rows=sums)
    shown = (line for line in report.lines if line.tokens)  # the others stand in the next table
    lines = ((line.handle, line.tier, line.why, _output.format_count(line.tokens)) for line in shown)
    columns = ("handle", "tier", "why")
    _output.print_table("in the view, in its order", *columns, "tokens", rows=lines, text_columns=3)
    absent = ((item.handle, item.tier, item.why) for item in report.out)
    title = "out of the view; pagein expand prints each"
    _output.print_table(title, *columns, rows=absent, text_columns=3, empty="Nothing is out of the view.")


def _request_lines(request: dict[str, Any]) -> Iterator[str]:
    """A request of any format, message by message. What has no text is JSON."""
    system = request.get("system") or request.get("config", {}).get("system_instruction")
    if system:
        yield "── system"
        yield _content_text(system)
    for message in next(request[name] for name in ("messages", "input", "contents") if name in request):
        answers = message.get("tool_call_id")
        yield f"── {message.get('role', message.get('type'))}" + (f" {answers}" if answers else "")
        content = message.get("content", message.get("parts"))
        if content:
            yield _content_text(content)
        elif "role" not in message:
            yield _part_json(message)
        for call in message.get("tool_calls") or ():
            function = call.get("function") or call.get("custom") or call
            arguments = function.get("arguments", function.get("input", function.get("args", "")))
            text = arguments if isinstance(arguments, str) else _output.compact_json(arguments)
            yield f"→ {function.get('name', call.get('type'))}({text}) {call.get('id', '')}"


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(map(_part_text, [content] if isinstance(content, dict) else content))


def _part_text(part: Any) -> str:
    match part:
        case str() | {"text": str()} | {"thinking": str()}:
            return part if isinstance(part, str) else str(part.get("text", part.get("thinking")))
        case {"type": "tool_use"}:
            return f"→ {part.get('name')}({_output.compact_json(part.get('input'))}) {part.get('id')}"
        case {"type": "tool_result"}:
            return f"← {part.get('tool_use_id')}\n{_content_text(part.get('content') or '')}"
        case {"parts": parts}:
            return _content_text(parts)
        case {"type": str(kind)} if kind.startswith(("image", "input_image", "document", "file")):
            return f"[{kind}]"
        case _:
            return _part_json(part)


def _part_json(part: Any) -> str:
    """A part as JSON, without the bytes of its pictures."""
    return re.sub(r"[\w+/=]{200,}", "…", _output.compact_json(part))
