"""Page-in: what left the view and is likely needed now stands behind the run, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pagein.context.compaction.base import newest_user_position
from pagein.context.page_in.block import DAY_TOKENS, FRAME_TOKENS, REPLACED, PageIn, SourcedBlock, build_page_in
from pagein.context.page_in.likely import MAX_HITS, build_likely
from pagein.context.page_in.limits import (
    PAGE_IN_MIN_TOKENS,
    TALK_FREE_FACTOR,
    available_tokens,
    has_question,
    is_user_turn,
    searched_talk_tokens,
    talk_tokens,
)
from pagein.context.page_in.named import NamedFault, find_fault, find_used, newest_action
from pagein.context.page_in.query import Question, build_query, build_question, merge_hits
from pagein.context.page_in.turns import TURN_HITS, choose_turns, divide_tokens, recent_turn
from pagein.context.talk import is_speech_step, speech_share
from pagein.context.view.view import View
from pagein.context.worth import page_in_worth
from pagein.events.protocol import open_calls
from pagein.events.steps import ActionStep, SummaryStep
from pagein.memory._state import AHEAD_OF_NEED_PER_TURN, PageInOccasion, PageInState, RunState
from pagein.memory.operations.file_page_in import find_file_lines
from pagein.memory.operations.history import expand

if TYPE_CHECKING:
    from pagein.search.base import Hit, Query
    from pagein.search.passages import Passage

TURNS_READ_AT_ONCE, TURNS_READ_MOST = 64, 512
"""Entries read at once for the newest turns that left, and in all: behind a long run of tools they may stand far back."""


def add_page_in(run: RunState, view: View) -> View:
    """Add the page-ins to a view that something left; index entries ahead of need while nothing did.

    A new one is looked for behind a compaction and a new user message. It stays where it is until the next compaction.
    """
    if not view.has_replaced_entries:
        with run.problems.guard("nothing is indexed ahead of need"):
            run.runtime.search.index(AHEAD_OF_NEED_PER_TURN)
        return view
    state, is_asked = run.page_in, is_user_turn(view)
    view_so_far = _with_earlier(run, view)
    # A user message is an occasion by itself. After one, what the action before it named may leave with its page-in.
    fault = NamedFault() if is_asked else find_fault(view_so_far, state.visible)
    last = state.occasion
    state.occasion = occasion = _occasion(run, view, fault, last)
    if not is_asked and occasion.is_of_new_file(last):
        files = find_file_lines(run, view_so_far)
        if files is not None:
            state.shown = (*state.shown, files)
            view_so_far = _with_page_ins(state, view)
    if not occasion.is_new_but_for_files(last):
        return view_so_far
    if is_asked:
        _make_space(run, view)
        view_so_far = _with_page_ins(state, view)
    tokens = available_tokens(view_so_far, state.share, state.tokens, is_fault=bool(fault.names))
    if tokens < PAGE_IN_MIN_TOKENS:
        return view_so_far
    if talk_tokens(view, state.share) >= PAGE_IN_MIN_TOKENS:
        new = _find_turns(run, view_so_far, tokens)
    else:
        page_in = _find_likely(run, view_so_far, tokens, fault)
        new = () if page_in is None else (page_in,)
    with_page_ins = view_so_far.with_tail((*view_so_far.tail, *(page_in.entry for page_in in new)))
    if not new or with_page_ins.tokens > view.limit:
        return view_so_far
    state.shown = (*state.shown, *new)
    return with_page_ins


def _occasion(run: RunState, view: View, fault: NamedFault, last: PageInOccasion | None) -> PageInOccasion:
    """The occasion of a view: what came last of each kind."""
    last = last or PageInOccasion()
    entry, action = newest_action(view)
    # What a call shows of a file is known with its result.
    has_results = entry is not None and action is not None and not open_calls(action, 0)
    return PageInOccasion(
        run.last_compaction,
        newest_user_position(view),
        fault.position if fault.names else last.fault,
        entry.first if entry is not None and has_results and view.tracker.files.newest == entry.first else last.file,
    )


def _make_space(run: RunState, view: View) -> None:
    """Drop the page-ins that stand in the way of what the user's words bring back.

    Where talk goes on without a question, the newest turns that left stay, and the provider's cache has them.
    """
    state = run.page_in
    tokens = talk_tokens(view, state.share)
    if state.tokens > max(view.limit * state.share, tokens) / 2:
        state.shown = tuple(
            page_in for page_in in state.shown if page_in.has_newest_turns and tokens and not has_question(view)
        )


def _with_earlier(run: RunState, view: View) -> View:
    """The view with the page-ins since the last compaction; they are dropped where they do not fit any more."""
    state = run.page_in
    state.end_with(run.last_compaction)
    state.used = find_used(view, [page_in.entry for page_in in state.shown], state.visible)
    if _with_page_ins(state, view).tokens > view.limit:
        state.shown = ()
    return _with_page_ins(state, view)


def _with_page_ins(state: PageInState, view: View) -> View:
    return view.with_tail((*view.tail, *(page_in.entry for page_in in state.shown))) if state.shown else view


def prepare_page_in(run: RunState) -> None:
    """Find the page-in of the view as it stands, so that a snapshot spares the next opening the search."""
    view = run.view_with_ledger()
    is_used = run.usage.last_view is not None and view.tokens <= view.limit
    if is_used and run.page_in.is_due(view):
        add_page_in(run, view)


def _find_likely(run: RunState, view: View, tokens: int, fault: NamedFault) -> PageIn | None:
    """Find what is likely needed: lines and names of the run, and what the search finds for the user's words."""
    is_asked = is_user_turn(view)
    # A question asks for its own words: beside those of the newest step they would find its neighbours first.
    query = build_question(view).text if is_asked else build_query(view)
    hits: tuple[Hit, ...] = ()
    # What was named out of view says what is needed: to look for every word of the task beside it takes three times as long.
    words = " ".join(sorted(fault.names)) if fault.names else query
    if words and (is_asked or fault.names):
        from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

        now = run.runtime.clock()
        hits = _search(run, Query(words, MAX_HITS, exclude=view.verbatim_positions, now=now))
    return build_likely(view, tokens, query, run.page_in.visible, worth=page_in_worth(run.page_in.prices), hits=hits)


def _find_turns(run: RunState, view: View, tokens: int) -> tuple[PageIn, ...]:
    """Find whole turns for the user's words; what they leave of the tokens is for the newest turns that left.

    Where tools are called, lines and names of the run have their part instead.
    """
    state, question = run.page_in, build_question(view)
    in_sight = view.verbatim_positions.union(*(page_in.turns for page_in in state.shown))
    searched = int(TALK_FREE_FACTOR * searched_talk_tokens(view, state.share)) - FRAME_TOKENS
    if any(entry.item.tool_calls for entry in view.run if isinstance(entry.item, ActionStep)):
        most = int((tokens - FRAME_TOKENS) * speech_share(view))
        turns = _turns_for(run, view, question, in_sight, min(most, searched))
        worth = page_in_worth(state.prices)
        likely = build_likely(view, tokens, question.text, state.visible, worth=worth, turns=turns)
        return () if likely is None else (likely,)
    most = tokens - FRAME_TOKENS
    turns = _turns_for(run, view, question, in_sight, min(most, searched))
    newest: tuple[SourcedBlock, ...] = ()
    if not any(page_in.has_newest_turns for page_in in state.shown):
        newest = _newest_turns_that_left(run, view, in_sight, most)
        turns, newest = divide_tokens(turns, newest, most - FRAME_TOKENS, view.counter)
    for_question = build_page_in(view, tokens, turns)
    recent = build_page_in(view, tokens - (0 if for_question is None else for_question.entry.tokens), newest)
    # What the next message replaces stands last.
    return tuple(page_in for page_in in (recent, for_question) if page_in is not None)


def _turns_for(
    run: RunState, view: View, question: Question, in_sight: frozenset[int], tokens: int
) -> tuple[SourcedBlock, ...]:
    from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

    now = run.runtime.clock()
    searches: list[Sequence[Hit]] = []
    # In one query the words of the exchange, which are many, would outweigh the user's.
    for words in filter(None, question):
        query = Query(words, TURN_HITS, exclude=in_sight, now=now)
        searches.append(_search(run, query))
    hits = merge_hits(searches) if len(searches) > 1 else [hit for every in searches for hit in every]
    texts: dict[str, str] = {}
    replaced = run.fold.learned.ledger.superseded_texts()
    for hit in hits:
        if hit.handle not in texts:
            texts[hit.handle] = _whole_text(run, hit, replaced)
    return choose_turns(hits, texts, tokens, view.counter, question.text)


def _whole_text(run: RunState, part: Hit | Passage, replaced: Mapping[int, tuple[str, ...]]) -> str:
    """The whole text that a part is from, without what was replaced: an old rule must not come back as if it were valid."""
    text = part.text if part.whole else str(expand(run, part.handle))
    for old in replaced.get(part.position, ()):
        text = text.replace(old, REPLACED)
    return text


def _newest_turns_that_left(
    run: RunState, view: View, in_sight: frozenset[int], tokens: int
) -> tuple[SourcedBlock, ...]:
    """Read the newest turns that left the view since it was cleared and are not in sight, whole, until one does not fit."""
    from pagein.memory.erasure.redact import ERASED  # noqa: PLC0415 - loads where something left
    from pagein.search.passages import passages  # noqa: PLC0415

    ends = (entry.last for entry in view.run if entry.stubs or isinstance(entry.item, SummaryStep))
    last, turns, days = max(ends, default=0), list[SourcedBlock](), {""}
    replaced = run.fold.learned.ledger.superseded_texts()
    oldest = max(run.fold.cleared, last - TURNS_READ_MOST)
    while last > oldest and tokens >= PAGE_IN_MIN_TOKENS:
        first = max(oldest, last - TURNS_READ_AT_ONCE)
        for entry in reversed(run.runtime.read_entries(first, last)):
            if entry.position in in_sight or not is_speech_step(entry.body):
                continue
            wordings = run.fold.changes.wordings.get(entry.position)
            said = run.runtime.read_entries(wordings[-1], wordings[-1] + 1)[0] if wordings else entry
            part = next((part for part in passages(said) if part.position == entry.position), None)
            if part is None or part.text == ERASED:
                continue
            turn = recent_turn(part, _whole_text(run, part, replaced))
            cost = view.counter.text(turn.text) + 1 + (0 if turn.day in days else DAY_TOKENS)
            if cost > tokens:
                return tuple(turns)
            tokens -= cost
            days.add(turn.day)
            turns.append(turn)
        last = first
    return tuple(turns)


def _search(run: RunState, query: Query) -> tuple[Hit, ...]:
    with run.problems.guard("nothing came back by itself"):
        return run.runtime.recall(query)
    return ()
