"""Page-in: what left the view and is likely needed now stands behind the run, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pagein.context import page_in as paging
from pagein.context.compaction.base import newest_user_position
from pagein.context.talk import speech_share
from pagein.context.view.view import View
from pagein.context.worth import page_in_worth
from pagein.events.steps import ActionStep
from pagein.memory._effects import Call, Flow, Recall
from pagein.memory._state import AHEAD_OF_NEED_PER_TURN, PageInOccasion, PageInState, RunState
from pagein.memory.operations.history import expand

if TYPE_CHECKING:
    from pagein.search.base import Hit, Query


def add_page_in(run: RunState, view: View) -> Flow[View]:
    """Add the page-ins to a view that something left; index entries ahead of need while nothing did.

    A new one is looked for behind a compaction and a new user message. It stays where it is until the next compaction.
    """
    if not view.has_replaced_entries:
        with run.problems.guard("nothing is indexed ahead of need"):
            yield from Call(lambda runtime: runtime.search.index(AHEAD_OF_NEED_PER_TURN))
        return view
    state, is_asked = run.page_in, paging.is_user_turn(view)
    view_so_far = _with_earlier(run, view)
    # A user message is an occasion by itself. After one, what the action before it named may leave with its page-in.
    fault = paging.NamedFault() if is_asked else paging.find_fault(view_so_far, state.visible)
    last_fault = -1 if state.occasion is None else state.occasion.fault
    fault_position = fault.position if fault.names else last_fault
    if not state.begin(PageInOccasion(run.last_compaction, newest_user_position(view), fault_position)):
        return view_so_far
    if is_asked and state.tokens > max(view.limit * state.share, paging.talk_room(view, state.share)) / 2:
        state.shown, view_so_far = (), view  # the user's words come first
    room = paging.available_tokens(view_so_far, state.share, state.tokens, is_fault=bool(fault.names))
    page_in = None if room < paging.PAGE_IN_MIN_TOKENS else (yield from _find_page_in(run, view_so_far, room, fault))
    if page_in is None:
        return view_so_far
    with_page_in = view_so_far.with_tail((*view_so_far.tail, page_in.entry))
    if with_page_in.tokens > view.limit:
        return view_so_far
    state.shown = (*state.shown, page_in)
    return with_page_in


def _with_earlier(run: RunState, view: View) -> View:
    """The view with the page-ins since the last compaction; they are dropped where they do not fit any more."""
    state = run.page_in
    state.end_with(run.last_compaction)
    state.used = paging.find_used(view, [page_in.entry for page_in in state.shown], state.visible)
    if _with_page_ins(state, view).tokens > view.limit:
        state.shown = ()
    return _with_page_ins(state, view)


def _with_page_ins(state: PageInState, view: View) -> View:
    return view.with_tail((*view.tail, *(page_in.entry for page_in in state.shown))) if state.shown else view


def prepare_page_in(run: RunState) -> Flow[None]:
    """Find the page-in of the view as it stands, so that a snapshot spares the next opening the search."""
    view = run.view_with_ledger()
    is_used = run.usage.last_view is not None and view.tokens <= view.limit
    if is_used and run.page_in.is_due(view):
        yield from add_page_in(run, view)


def _find_page_in(run: RunState, view: View, room: int, fault: paging.NamedFault) -> Flow[paging.PageIn | None]:
    """Find what is likely needed: lines and names of the run, and what the search finds for the user's words."""
    if paging.talk_room(view, run.page_in.share) >= paging.PAGE_IN_MIN_TOKENS:
        return (yield from _find_turns(run, view, room))
    is_asked = paging.is_user_turn(view)
    # A question asks for its own words: beside those of the newest step they would find its neighbours first.
    query = paging.build_question(view).text if is_asked else paging.build_query(view)
    hits: tuple[Hit, ...] = ()
    # What was named out of view says what is needed: to look for every word of the task beside it takes three times as long.
    words = " ".join(sorted(fault.names)) if fault.names else query
    if words and (is_asked or fault.names):
        from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

        now = yield from _now()
        hits = yield from _search(run, Query(words, paging.MAX_HITS, exclude=view.verbatim_positions, now=now))
    return paging.build_page_in(
        view, room, query, run.page_in.visible, worth=page_in_worth(run.page_in.prices), hits=hits
    )


def _find_turns(run: RunState, view: View, room: int) -> Flow[paging.PageIn | None]:
    """Find whole turns for the user's words; where tools are called, lines and names of the run have the rest."""
    from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

    question = paging.build_question(view)
    now = yield from _now()
    found: list[Sequence[Hit]] = []
    # In one query the words of the exchange, which are many, would outweigh the user's.
    for words in filter(None, question):
        query = Query(words, paging.TURN_HITS, exclude=view.verbatim_positions, now=now)
        found.append((yield from _search(run, query)))
    hits = paging.merge_hits(found) if len(found) > 1 else [hit for every in found for hit in every]
    texts: dict[str, str] = {}
    for hit in hits:
        if not hit.whole and hit.handle not in texts:
            texts[hit.handle] = str((yield from expand(run, hit.handle)))
    tokens = room - paging.FRAME_TOKENS
    replaced = run.fold.ledger.superseded_texts()
    for hit in hits:
        for old in replaced.get(hit.position, ()):
            # An old rule or value must not come back as if it were valid.
            texts[hit.handle] = texts.get(hit.handle, hit.text).replace(old, paging.REPLACED)
    calls_tools = any(entry.item.tool_calls for entry in view.run if isinstance(entry.item, ActionStep))
    most = int(tokens * speech_share(view)) if calls_tools else tokens
    turns = paging.choose_turns(hits, texts, most, view.counter, question.text)
    return paging.build_page_in(
        view, room, question.text, run.page_in.visible,
        worth=page_in_worth(run.page_in.prices), turns=turns, only_turns=not calls_tools,
    )  # fmt: skip


def _now() -> Flow[float]:
    """The time that "last Tuesday" counts from."""
    return (yield from Call(lambda runtime: runtime.clock()))


def _search(run: RunState, query: Query) -> Flow[tuple[Hit, ...]]:
    with run.problems.guard("nothing came back by itself"):
        return (yield from Recall(query))
    return ()
