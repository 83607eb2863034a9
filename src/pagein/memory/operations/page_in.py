"""Page-in: what left the view and is likely needed now stands behind the run, as data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pagein.context.page_in import (
    FRAME_TOKENS,
    MAX_HITS,
    PAGE_IN_MIN_TOKENS,
    REPLACED,
    TURN_HITS,
    PageIn,
    available_tokens,
    build_page_in,
    build_query,
    build_question,
    choose_turns,
    render_page_in,
    source_of_hit,
    talk_room,
)
from pagein.context.page_in_sources import BlockSource
from pagein.context.talk import speech_share
from pagein.context.view.view import View
from pagein.events.steps import ActionStep
from pagein.memory._effects import Flow, IndexEntries, Recall
from pagein.memory._state import AHEAD_OF_NEED_PER_TURN, PageInCache, RenderedPageIn, RunState
from pagein.memory.operations.history import expand

if TYPE_CHECKING:
    from pagein.search.base import Hit, Query


def add_page_in(run: RunState, view: View) -> Flow[View]:
    """Add the page-in to a view that something left; index entries ahead of need while nothing did.

    The view stays the same if nothing matches, or nothing has room.
    """
    if not view.has_replaced_entries:
        with run.problems.guard("nothing is indexed ahead of need"):
            yield from IndexEntries(AHEAD_OF_NEED_PER_TURN)
        return view
    room = available_tokens(view, run.page_in.share)
    if room < PAGE_IN_MIN_TOKENS:
        return view
    cache = run.page_in.cache
    if cache is None or cache.is_old(view, len(run.fold.compactions)):
        cache = run.page_in.cache = yield from _find_page_in(run, view, room)
    rendered = cache.rendered
    if rendered is None or (rendered.head, rendered.room) != (view.head, room):
        entry = render_page_in(cache.page_in, view, room, cache.head, run.page_in.visible)
        rendered = RenderedPageIn(view.head, room, entry)
        run.page_in.cache = replace(cache, rendered=rendered)
    if rendered.entry is None:
        return view
    with_page_in = view.with_tail((*view.tail, rendered.entry))
    return with_page_in if with_page_in.tokens <= with_page_in.limit else view


def prepare_page_in(run: RunState) -> Flow[None]:
    """Find the page-in of the view as it stands, so that a snapshot spares the next opening the search."""
    view = run.view_with_ledger()
    is_used = run.usage.last_view is not None and view.tokens <= view.limit
    if is_used and run.page_in.is_due(view):
        yield from add_page_in(run, view)


def _find_page_in(run: RunState, view: View, room: int) -> Flow[PageInCache]:
    """Find what is likely needed: lines and names of the run, and hits for its newest words where search has a share."""
    run.page_in.search_share = run.page_in.search_share.update(view)
    if talk_room(view, run.page_in.share) >= PAGE_IN_MIN_TOKENS:
        return PageInCache(view.head, len(run.fold.compactions), (yield from _find_turns(run, view, room)))
    query = build_query(view)
    search_tokens = run.page_in.search_share.tokens(view, room)
    hits: tuple[Hit, ...] = ()
    if search_tokens and query:
        from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

        hits = yield from _search(run, Query(query, MAX_HITS, exclude=view.verbatim_positions))
    page_in = build_page_in(view, hits, search_tokens, room, query, run.page_in.visible)
    run.page_in.search_share = replace(run.page_in.search_share, showed=page_in.new_names)
    return PageInCache(view.head, len(run.fold.compactions), page_in)


def _find_turns(run: RunState, view: View, room: int) -> Flow[PageIn]:
    """Find whole turns for the user's words; where tools are called, lines and names of the run have the rest."""
    from pagein.search.base import Query  # noqa: PLC0415 - loads where something is looked for

    query = build_question(view)
    hits: tuple[Hit, ...] = ()
    if query:
        hits = yield from _search(run, Query(query, TURN_HITS, exclude=view.verbatim_positions))
    texts: dict[str, str] = {}
    for hit in hits:
        if not hit.whole and hit.handle not in texts:
            texts[hit.handle] = str((yield from expand(run, hit.handle)))
    tokens = room - FRAME_TOKENS
    replaced = run.fold.ledger.superseded_texts()
    for hit in hits:
        for old in replaced.get(hit.position, ()):
            # An old rule or value must not come back as if it held.
            texts[hit.handle] = texts.get(hit.handle, hit.text).replace(old, REPLACED)
    calls_tools = any(entry.item.tool_calls for entry in view.run if isinstance(entry.item, ActionStep))
    most = int(tokens * speech_share(view)) if calls_tools else tokens
    turns = choose_turns(hits, texts, most, view.counter, query)
    rest = room - sum(cost for _, _, cost in turns) if calls_tools else 0
    page_in = build_page_in(view, (), 0, rest, query, run.page_in.visible)
    by_handle = {hit.handle: hit for hit in reversed(hits)}
    return replace(
        page_in,
        sources=(*(_source_of_turn(by_handle, block, texts) for _, block, _ in turns), *page_in.sources),
        blocks=(*(block for _, block, _ in turns), *page_in.blocks),
        costs=(*(cost for _, _, cost in turns), *page_in.costs),
        turns=tuple(position for position, _, _ in turns),
    )


def _source_of_turn(hits: dict[str, Hit], block: str, texts: dict[str, str]) -> BlockSource:
    hit = hits[block[1 : block.index("]")]]
    text = texts.get(hit.handle, hit.text)
    return source_of_hit(hit, block, text, kind="turn")


def _search(run: RunState, query: Query) -> Flow[tuple[Hit, ...]]:
    with run.problems.guard("nothing came back by itself"):
        return (yield from Recall(query))
    return ()
