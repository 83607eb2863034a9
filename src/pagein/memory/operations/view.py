"""What shows and what leaves: the view within budget, compactions, and the summaries a model writes meanwhile.

The turn never waits for a model: what is written when the prefix breaks stands then, and extracts stand for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pagein.context import page_in as recalling
from pagein.context.compaction.apply import checked, fitting
from pagein.context.compaction.base import Plan
from pagein.context.view.fold import preview
from pagein.context.view.view import View
from pagein.errors import Conflict, OverBudget
from pagein.events.entries import Checkpoint, Compaction, Erased, FactsShown, Replacement, Survival
from pagein.events.steps import SummaryStep, TaskStep, as_text
from pagein.memory._effects import Append, Attend, Begin, CallOff, Collect, Flow, Index, Read, Recall
from pagein.memory._state import Session, Stood, Tail
from pagein.memory.operations import facts_block as knowing
from pagein.memory.operations.history import told
from pagein.summaries.job import Author, Job, Outcome, Tile
from pagein.tokens import Budget

if TYPE_CHECKING:
    from pagein.search.base import Hit, Query
    from pagein.summaries.spans import Span

T = TypeVar("T")

FITS = 0.7
"""Share of the author's room up to which a source, quoted, is taken to fit into one request."""

REBUILT = 4
"""Times the cost of what is new up to which a summary is rebuilt from its source instead of merged with what came before.
Merging by code loses nothing but the model's second look; rebuilding at every fold would ask for the run again and again."""

AHEAD, A_TURN = 0.5, 32
"""Share of the limit from which what was recorded is learnt from, and indexed, ahead of need; and texts, and entries, a
turn. What is done in the turn that needs it is done at once, for all the turns before it."""

QUIET = (Compaction, FactsShown, Checkpoint, Erased)
"""What the library writes of its own accord: nothing that a host has to look at before it writes on."""

ATTEMPTS = 8
"""Times that another may be first in this."""

REST = 0.1
"""Share of the limit by which the view grows before another job is begun ahead of time, after one that failed."""


def view(session: Session) -> Flow[View]:
    """The view within budget: what left to get there is recorded first. Raises OverBudget."""
    return (yield from undisturbed(session, lambda: _view(session)))


def undisturbed(session: Session, attempt: Callable[[], Flow[T]]) -> Flow[T]:
    """What the attempt gives; made again where nobody but the library wrote meanwhile, elsewhere. Raises Conflict."""
    for _ in range(ATTEMPTS):
        head = session.fold.head
        try:
            return (yield from attempt())
        except Conflict:
            since = yield from Read(head, None)
            if not all(isinstance(each.body, QUIET) for each in since):
                raise
    return (yield from attempt())


def _view(session: Session) -> Flow[View]:
    yield from settled(session, 0.0)
    limit = session.limit(session.budget)
    yield from knowing.headed(session, limit)
    current = session.fold.view(limit)
    if current.tokens > limit * AHEAD:
        session.fold.memo.learn_ahead(A_TURN)
    facts = yield from knowing.blocks(session, current, int(limit * knowing.FACTS))
    room = limit - sum(each.tokens for each in facts)
    try:
        plan = fitting(replace(current, limit=room), session.budget, session.policy)
    except OverBudget:
        bare = knowing.without(current)
        if not facts and bare is current:
            raise
        facts, room = (), limit  # what may not leave needs their room
        plan = fitting(bare, session.budget, session.policy)
        if bare is not current:
            yield from knowing.say(session, "")
            current = session.fold.view(limit)
    if plan is not None:
        _, current = yield from commit(session, replace(current, limit=room), plan)
        current = replace(current, limit=limit)
        if facts:
            facts = yield from knowing.blocks(
                session, current, min(int(limit * knowing.FACTS), limit - current.tokens - knowing.FRAME)
            )
    yield from _begin(session, current)
    known = current.with_tail(facts) if facts else current
    current = yield from _with_tail(session, known if known.tokens <= limit else current)
    session.asked, session.last = current.tokens, current
    return current


def _with_tail(session: Session, current: View) -> Flow[View]:
    """The view with what comes back behind it; the same view where nothing left, or nothing matches."""
    if not session.share:
        return current
    if not recalling.has_left(current):
        if current.tokens > current.limit * AHEAD:
            with session.telling("nothing is indexed ahead of need"):
                yield from Index(A_TURN)
        return current
    room = recalling.room_for(current, session.share)
    if room < recalling.LEAST:
        return current
    if session.tail is None or session.tail.is_old(current, len(session.fold.compactions)):
        session.tail = yield from _looked_up(session, current, room)
    tail, stood = session.tail, session.tail.stood
    if stood is None or (stood.head, stood.room) != (current.head, room):
        made = recalling.shown_in(tail.paged, current, room, tail.head, session.sights)
        stood = Stood(current.head, room, made)
        session.tail = replace(tail, stood=stood)
    found = stood.shown
    whole = current if found is None else current.with_tail((*current.tail, found))
    return whole if whole.tokens <= whole.limit else current


def made_ready(session: Session) -> Flow[None]:
    """Have at hand what comes back in the view as the run stands: whoever opens it next need not look for it."""
    current = session.fold.view(session.limit(session.budget))
    if session.last is not None and current.tokens <= current.limit:
        yield from _with_tail(session, current)


def _looked_up(session: Session, current: View, room: int) -> Flow[Tail]:
    """What is likely needed now, and what the archive finds for what the run is about, where it is to be asked."""
    session.part = session.part.after(current)
    query = recalling.cue(current)
    part = session.part.tokens(current, room)
    hits: tuple[Hit, ...] = ()
    if part and query:
        from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

        asked = Query(query, recalling.LIMIT, exclude=recalling.in_sight(current))
        hits = yield from _recalled(session, asked)
    paged = recalling.paged_in(current, hits, part, room, query, session.sights)
    session.part = replace(session.part, showed=paged.new)
    return Tail(current.head, len(session.fold.compactions), paged)


def _recalled(session: Session, query: Query) -> Flow[tuple[Hit, ...]]:
    with session.telling("nothing came back by itself"):
        return (yield from Recall(query))
    return ()


def shown(
    session: Session, summary_mode: bool, keep_last_n: int | None, max_tokens: int | None
) -> Flow[View]:
    """The view, or what the manual controls make of it; only the former records a compaction."""
    if not summary_mode and keep_last_n is None and max_tokens is None:
        return (yield from view(session))
    from pagein.context.compaction.manual import manual  # noqa: PLC0415 - loads where it is asked for

    budget = session.budget if max_tokens is None else Budget(max_tokens)
    current = manual(
        session.fold.view(session.limit(budget)), summary_mode=summary_mode, keep_last_n=keep_last_n
    )
    plan = fitting(current, budget, session.policy)
    return current if plan is None else preview(current, plan.replacements)


def compact(session: Session, *, wait: bool = False) -> Flow[Compaction | None]:
    """Compact now, to the low mark, whatever the view costs; None where nothing would get smaller.

    With ``wait`` the author writes what it can first, in this turn; where it fails, extracts stand.
    """
    yield from settled(session, None if wait else 0.0)
    current = session.fold.view(session.limit(session.budget))
    # Only the marks are moved: what a policy grants the user's words is a share of the limit, which is the same.
    share = min(1.0, current.tokens * session.budget.low_share / current.limit)
    plan = session.policy(current, replace(session.budget, high=share, low=share, soft=None))
    if plan is None or preview(current, checked(current, plan).replacements).tokens >= current.tokens:
        return None
    if wait and (yield from begun(session, current, plan.replacements)):
        yield from settled(session, None)
    body, _ = yield from commit(session, current, plan)
    return body


def commit(session: Session, current: View, plan: Plan) -> Flow[tuple[Compaction, View]]:
    """Record a plan as a compaction, with what a model wrote of its ranges; gives that, and the view it leaves."""
    plan = replace(plan, replacements=with_records(session, current, plan.replacements))
    after = preview(current, plan.replacements)
    if session.has_facts:
        with session.telling("nothing was read for facts"):
            yield from Attend(now=True)
    fidelity = yield from _survived(session, current, plan.replacements)
    body = Compaction(plan.replacements, plan.policy, plan.reason, current.tokens, after.tokens, fidelity)
    known = yield from knowing.renewed(session, current, after)
    session.take((yield from Append((body, *known), session.fold.head)))
    session.rests_until = 0
    return body, session.fold.view(current.limit)


def with_records(
    session: Session, current: View, replacements: tuple[Replacement, ...]
) -> tuple[Replacement, ...]:
    """The replacements with what was written of their ranges; and the summaries that stand, where more is known now."""
    if session.author is None:
        return replacements
    from pagein.summaries.records import chain, composed, joined, recorded, tiles  # noqa: PLC0415 - loads where a model writes

    found = [*session.recorded, *session.written]
    shown = session.fold.records
    made: dict[tuple[int, int], Replacement] = {}
    all_tiles = list(tiles(current, replacements))
    for each in all_tiles:
        links = chain(found, each.first, each.last)
        written = joined(links) if links else None
        if written is not None and recorded(written) != shown.get((each.first, each.last)):
            by = composed(current, each, written, session.author.name, newest=each is all_tiles[-1])
            if by.record:
                made[each.first, each.last] = by
    kept = tuple(made.pop((each.first, each.last), each) for each in replacements)
    return (*kept, *made.values())


def _survived(session: Session, current: View, by: Iterable[Replacement]) -> Flow[tuple[Survival, ...]]:
    """What of the steps that leave is still in sight in the summaries of their ranges, kind by kind."""
    from pagein.summaries.fidelity import measured  # noqa: PLC0415 - loads where something leaves
    from pagein.summaries.key_items import mentions  # noqa: PLC0415
    from pagein.summaries.spans import span_of  # noqa: PLC0415

    sums: dict[str, Survival] = {}
    for each in by:
        leaving = [
            shown.first
            for shown in current.run
            if each.first <= shown.first < each.last and not isinstance(shown.item, SummaryStep)
        ]
        if each.summary is None or not leaving:
            continue
        found, _ = yield from told(session, leaving[0], each.last)
        span = span_of(((at, found[at]) for at in leaving if at in found), each.first, each.last)
        reader = session.fold.memo.reader
        leaves = mentions(span, reader)
        for new in measured(leaves, each.summary, pins=session.fold.pinned.values(), reader=reader).kinds:
            old = sums.get(new.kind, Survival(new.kind, 0, 0, 0))
            sums[new.kind] = Survival(
                new.kind, old.total + new.total, old.in_sight + new.in_sight, old.reachable + new.reachable
            )
    return tuple(each for each in sums.values() if each.total)


def _begin(session: Session, current: View) -> Flow[None]:
    """Give the author something to write, where it is free and there is something."""
    if session.author is None or session.job is not None:
        return
    if (yield from begun(session, current, ())):
        return
    if current.tokens < max(session.rests_until, int(current.limit * session.budget.soft_share)):
        return
    # From the soft mark on: what will leave at the hard one.
    session.rests_until = current.tokens + int(current.limit * REST)
    plan = ahead(session, current)
    if plan is not None:
        yield from begun(session, current, plan.replacements)


def ahead(session: Session, current: View) -> Plan | None:
    """What is to leave from the soft mark on; None under that mark, or where nothing would."""
    budget, mark = session.budget, session.budget.soft_share
    if current.tokens < int(current.limit * mark):
        return None
    plan = session.policy(current, replace(budget, high=mark, low=min(budget.low_share, mark), soft=None))
    return None if plan is None else checked(current, plan)


def begun(session: Session, current: View, replacements: Sequence[Replacement]) -> Flow[bool]:
    """Begin to write what stands, or is to stand, for ranges of the run; True where there was something to write."""
    author = session.author
    if author is None:
        return False
    from pagein.summaries.records import SMALLEST, chain, joined, tiles  # noqa: PLC0415 - loads where a model writes

    found, wanted = [*session.recorded, *session.written], []
    for each in tiles(current, replacements):
        links = chain(found, each.first, each.last)
        start = links[-1].last if links else each.first
        if links and _is_rebuilt(session, author, each, start):
            start = each.first
        if start >= each.last or (start, each.last) in session.tried:
            continue
        if session.fold.cost_of(start, each.last) < SMALLEST:
            continue
        session.tried.add((start, each.last))
        span = yield from _source(session, start, each.last)
        if span.said:
            previous = joined(links).summary if start > each.first else None
            wanted.append(Tile(each.first, each.last, span, previous))
    if wanted:
        heard = tuple(_heard(current))
        conversation = current.messages() if author.holds_run else ()
        pins = tuple(session.fold.pinned.values())
        session.job = Job(tuple(wanted), session.counter, pins, heard, conversation)
        yield from Begin(session.job)
    return bool(wanted)


def _source(session: Session, first: int, last: int) -> Flow[Span]:
    """The steps as they were recorded, the user's words left out: those stand by themselves."""
    from pagein.summaries.spans import span_of  # noqa: PLC0415 - loads where a model writes

    steps, _ = yield from told(session, first, last)
    return span_of(((at, step) for at, step in steps.items() if not isinstance(step, TaskStep)), first, last)


def _is_rebuilt(session: Session, author: Author, each: Replacement, start: int) -> bool:
    """True where the source is asked about whole: it fits, and is not many times what is new in it."""
    whole, fresh = session.fold.cost_of(each.first, each.last), session.fold.cost_of(start, each.last)
    return fresh > 0 and whole <= author.asking.room * FITS and whole <= fresh * REBUILT


def _heard(current: View) -> Iterable[str]:
    """What the user and the host said, as far as it stands: only that may make a rule."""
    for each in current.entries:
        if each.tier in ("system", "user"):
            yield from (as_text(message.content) for message in each.messages)


def settled(session: Session, timeout: float | None) -> Flow[bool]:
    """Wait at most ``timeout`` seconds (None: as long as it takes) for the author; True when it is at rest."""
    if session.job is not None:
        outcome = yield from Collect(timeout)
        if outcome is None:
            return False
        session.job = None
        _take(session, outcome)
    return True


def thrown_away(session: Session) -> Flow[None]:
    """Call off a summary that is being written, and go on: it is of what goes, or of another branch."""
    if session.job is not None:
        session.job = None
        yield from CallOff()


def _take(session: Session, outcome: Outcome) -> None:
    """Keep what was written, and tell once what went wrong."""
    problem = outcome.problem
    if problem is not None:
        kind = f"{type(problem).__name__} {getattr(problem, 'reason', '')}".strip()
        author = session.author.name if session.author else "nobody"
        session.tell(
            kind,
            f"{author} wrote no summary, an extract stands instead: {type(problem).__name__}: {problem}",
        )
    if outcome.written:
        if problem is None:
            # An outage that comes again is told again; that answers are refused, now and then, is told once.
            session.failing = {each for each in session.failing if each.startswith("SummaryRejected")}
        session.written.extend(outcome.written)
