"""What shows and what leaves: the view within budget, compactions, and the summaries a model writes meanwhile.

The turn never waits for a model: at the hard mark it takes what is ready, else the extract; what comes later is put in
place when the prefix breaks anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from pagein.compaction import Plan, plan_of
from pagein.compaction.fitting import checked, fitting
from pagein.compaction.manual import manual
from pagein.effects import Append, Begin, Collect, Flow
from pagein.history import told
from pagein.log import Compaction, Replacement, Survival
from pagein.models.secrets import scrubbed
from pagein.session import Session
from pagein.steps import SummaryStep, TaskStep, as_text
from pagein.summaries.fidelity import measured
from pagein.summaries.mentions import mentions
from pagein.summaries.spans import span_of
from pagein.tokens import Budget
from pagein.view import View
from pagein.view.fold import preview
from pagein.writing import Author, Job, Outcome, Tile
from pagein.writing.course import summed
from pagein.writing.jobs import adopted, built_on, known, wanted

FITS = 0.7
"""Share of the author's room up to which a source, quoted, is taken to fit into one request."""

REBUILT = 4
"""Times the cost of what is new up to which a summary is rebuilt from its source instead of merged with what came before.
Merging by code loses nothing but the model's second look; rebuilding at every fold would ask for the run again and again."""

REST = 0.1
"""Share of the limit by which the view grows before another job is begun ahead of time, after one that failed."""


def view(session: Session) -> Flow[View]:
    """The view within budget: what left to get there is recorded first. Raises OverBudget."""
    yield from collect(session)
    current = session.fold.view(session.limit(session.budget))
    plan = fitting(current, session.budget, session.policy)
    if plan is not None:
        ready = _with_ready(session, current, session.budget)
        current = yield from commit(session, current, *(ready or (plan, ())))
    yield from _begin(session, current)
    session.asked = current.tokens
    return current


def shown(
    session: Session, summary_mode: bool, keep_last_n: int | None, max_tokens: int | None
) -> Flow[View]:
    """The view, or what the manual controls make of it; only the former records a compaction."""
    if not summary_mode and keep_last_n is None and max_tokens is None:
        return (yield from view(session))
    budget = session.budget if max_tokens is None else Budget(max_tokens)
    current = manual(
        session.fold.view(session.limit(budget)), summary_mode=summary_mode, keep_last_n=keep_last_n
    )
    plan = fitting(current, budget, session.policy)
    return current if plan is None else preview(current, plan.replacements)


def compact(session: Session, *, wait: bool = False) -> Flow[Compaction | None]:
    """Compact now, to the low mark, whatever the view costs; None where nothing would get smaller.

    With ``wait`` the author writes the summaries first, in this turn; where it fails, the extract stands.
    """
    yield from collect(session)
    current = session.fold.view(session.limit(session.budget))
    plan = _pressed(session, current)
    if plan is None or preview(current, checked(current, plan).replacements).tokens >= current.tokens:
        return None
    if wait and session.author is not None:
        yield from settled(session, None)
        if session.ready is None and (job := (yield from _job(session, current, plan))):
            session.job = job
            yield from Begin(job)
            yield from settled(session, None)
    ready = _with_ready(session, current, None)
    yield from commit(session, current, *(ready or (plan, ())))
    return session.fold.compactions[-1][1]


def _pressed(session: Session, current: View) -> Plan | None:
    # Only the marks are moved: what a policy grants the user's words is a share of the limit, which is the same.
    share = min(1.0, current.tokens * session.budget.low_share / current.limit)
    return session.policy(current, replace(session.budget, high=share, low=share))


def commit(session: Session, current: View, plan: Plan, known: tuple[Survival, ...] = ()) -> Flow[View]:
    """Record a plan as a compaction, and give the view it leaves.

    ``known`` is what is known to survive in what the author wrote already.
    """
    after = preview(current, plan.replacements)
    fidelity = summed([known, (yield from _survived(session, current, plan.replacements))])
    body = Compaction(plan.replacements, plan.policy, plan.reason, current.tokens, after.tokens, fidelity)
    session.take((yield from Append((body,), session.fold.head)))
    session.rests_until = 0
    return session.fold.view(current.limit)


def _survived(session: Session, current: View, by: Iterable[Replacement]) -> Flow[tuple[Survival, ...]]:
    """What of the steps that leave with these extracts is still in sight, kind by kind."""
    reports = []
    for each in by:
        if each.summary is None or each.record:
            continue
        leaving = [
            shown.first
            for shown in current.run
            if each.first <= shown.first < each.last and not isinstance(shown.item, SummaryStep)
        ]
        if leaving:
            found, _ = yield from told(session, leaving[0], each.last)
            span = span_of(((at, found[at]) for at in leaving if at in found), each.first, each.last)
            pins = session.fold.pinned.values()
            reports.append(measured(mentions(span), each.summary, pins=pins).kinds)
    return summed(reports)


def _with_ready(
    session: Session, current: View, budget: Budget | None
) -> tuple[Plan, tuple[Survival, ...]] | None:
    """What the author has ready as the plan, and what else it takes to fit; None where nothing is, or it does not help."""
    ready, session.ready = session.ready, None
    if ready is None:
        return None
    plan = adopted(current, ready, checked)
    if plan is None:
        session.written.extend(ready.written)
        return None
    after = preview(current, plan.replacements)
    more = None if budget is None else fitting(after, budget, session.policy)
    if more is not None:
        plan, after = plan.then(more), preview(after, more.replacements)
    kept = {(each.first, each.last) for each in plan.replacements if each.record}
    session.written.extend(each for each in ready.written if (each.first, each.last) not in kept)
    return (plan, ready.fidelity) if after.tokens < current.tokens else None


def _begin(session: Session, current: View) -> Flow[None]:
    """Give the author something to write, where it is free and there is something."""
    if session.author is None or session.job is not None:
        return
    if session.ready is not None:
        if adopted(current, session.ready, checked) is not None:
            return
        # Folded into something larger since: the next job builds on it.
        session.written.extend(session.ready.written)
        session.ready = None
    plan = _standing(session, current) or _ahead(session, current)
    job = None if plan is None else (yield from _job(session, current, plan))
    if job is not None:
        session.job = job
        yield from Begin(job)


def _standing(session: Session, current: View) -> Plan | None:
    """The extracts that stand in the view and were not asked for yet."""
    extracts = (
        Replacement(each.first, each.last, summary=each.item.content, author=each.item.author)
        for each in current.run
        if isinstance(each.item, SummaryStep) and (each.first, each.last) not in session.tried
    )
    plan = plan_of(extracts, session.policy.name, "a better summary of it")
    found = () if plan is None else wanted(plan, session.counter)
    return plan_of(found, session.policy.name, "a better summary of it")


def _ahead(session: Session, current: View) -> Plan | None:
    """From the soft mark on, what will leave at the hard one."""
    budget = session.budget
    if current.tokens < max(session.rests_until, int(current.limit * budget.soft_share)):
        return None
    session.rests_until = current.tokens + int(current.limit * REST)
    soft = replace(budget, high=budget.soft_share, low=min(budget.low_share, budget.soft_share))
    plan = session.policy(current, soft)
    return None if plan is None else checked(current, plan)


def _job(session: Session, current: View, plan: Plan) -> Flow[Job | None]:
    """The job of writing the plan's extracts, each from its source, or from what was written of it and what came since."""
    author = session.author
    if author is None:
        return None
    found = list(known((each for _, each in session.fold.compactions), session.written))
    tiles = []
    for each in wanted(plan, session.counter):
        if (each.first, each.last) in session.tried or each.summary is None:
            continue
        session.tried.add((each.first, each.last))
        before, start = built_on(found, each.first, each.last)
        if before is not None and _is_rebuilt(session, author, each, start):
            before, start = None, each.first
        steps, _ = yield from told(session, start, each.last)
        span = span_of(
            ((at, step) for at, step in steps.items() if not isinstance(step, TaskStep)), start, each.last
        )
        if span.said or before is not None:
            tiles.append(Tile(each.first, each.last, session.counter.text(each.summary), span, before))
    if not tiles:
        return None
    heard = tuple(_heard(current))
    conversation = current.messages() if author.holds_run else ()
    return Job(plan, tuple(tiles), session.counter, tuple(session.fold.pinned.values()), heard, conversation)


def _is_rebuilt(session: Session, author: Author, each: Replacement, start: int) -> bool:
    """True where the source is asked about whole: it fits, and is not many times what is new in it."""
    whole, fresh = session.fold.cost_of(each.first, each.last), session.fold.cost_of(start, each.last)
    return whole <= author.asking.room * FITS and whole <= fresh * REBUILT


def _heard(current: View) -> Iterable[str]:
    """What the user and the host said, as far as it stands: only that may make a rule."""
    for each in current.entries:
        if each.tier in ("system", "user"):
            yield from (as_text(message.content) for message in each.messages)


def collect(session: Session) -> Flow[None]:
    """Take what the author has finished, if it has."""
    yield from settled(session, 0.0)


def settled(session: Session, timeout: float | None) -> Flow[bool]:
    """Wait at most ``timeout`` seconds (None: as long as it takes) for the author; True when it is at rest."""
    if session.job is not None:
        outcome = yield from Collect(timeout)
        if outcome is None:
            return False
        session.job = None
        _take(session, outcome)
    return True


def _take(session: Session, outcome: Outcome) -> None:
    """Keep what was written, and tell once what went wrong."""
    if outcome.problem is not None:
        said = scrubbed(f"{type(outcome.problem).__name__}: {outcome.problem}")
        text = f"{session.author.name if session.author else 'the author'} wrote no summary: {said}"
        if text not in session.problems:
            session.problems.append(text)
            logging.getLogger("pagein").warning("%s. The extract stands; the log is unchanged.", text)
    if outcome.written:
        session.ready = outcome
