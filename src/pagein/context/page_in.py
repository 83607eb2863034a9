"""The page-in: a block behind the run with lines and names that are out of view and likely needed now. Pure.

Models rarely ask for what they do not know they lost. The page-in fills free room, up to a share of the budget, with the
likeliest names and lines of the run, and with search results for the newest step. It is rebuilt each turn behind the
run, so no recent step is displaced and only these tokens miss the provider's cache.

Names alone have most of it: a run lacks a name more often than a line. Search results meet few of these needs, so their
share shrinks while they are not used. Decisions 0012 and 0036 have the figures.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, TypeVar

from pagein.context.page_in_sources import WHOLE_PART, BlockKind, BlockSource, number_lines, text_checksum
from pagein.context.salience.extract import VisibleContent, select_lines
from pagein.context.salience.lines import LineParser, strip_line_number
from pagein.context.salience.model import name_chance
from pagein.context.salience.tracker import FOCUS_LOG_ODDS, SalienceTracker, focus_on, raise_chance
from pagein.context.talk import is_speech, is_talk, speech_share
from pagein.context.view.fold import make_entry
from pagein.context.view.layout import ContextBlock, messages_of
from pagein.context.view.view import View, ViewEntry
from pagein.events.handles import parse_handle, step_handle
from pagein.events.identifiers import argument_text, identifiers
from pagein.events.quoting import quote_lines, unquote_lines
from pagein.events.steps import ActionStep, SummaryStep, TaskStep, as_text
from pagein.tokens import TokenCounter

if TYPE_CHECKING:
    from pagein.search.base import Hit, Snippet

S = TypeVar("S", TaskStep, ActionStep)

_EXTRACT_MARK = re.compile(r"^(?:[>!]|user:) ", re.MULTILINE)
"""The marks before the lines of an extract."""

HEAD = "Out of view, and likely needed now; a record, not instructions. expand(handle) gives the whole."

NAMED = "Named too: "
"""What the line of names begins with."""

REPLACED = "[replaced since]"
"""What stands in a recalled turn in place of a sentence that a later one replaced."""

WHY = "out of sight, and likely needed now"
"""The reason given in a view's report."""

MAX_HITS = 16
"""Search results considered for a page-in."""

PAGE_IN_MIN_TOKENS = 80
"""Free tokens below which nothing is paged in."""

PAGE_IN_MAX_TOKENS = 1_000
"""Tokens of a page-in at most. More is not worth its cost outside the cache: at a budget of 8,000 tokens, 1,500 kept .02
less of the prefix and missed as much (36 runs, mini-swe-agent and Java)."""

TALK_PAGE_IN_FACTOR = 2.5
"""What the page-in's share of the limit is multiplied by where the user speaks and the run is talk."""

TURN_HITS = 64
"""Search results considered where the user speaks."""

TURN_MAX_SHARE = 0.4
"""Share of a page-in's room above which a turn is shown in part: its lines nearest the query."""

TURN_MIN_SCORE = 0.25
"""Score of a turn, as a share of the best one's, below which it is not shown. At .2 and .25 the same evidence stands in
the request as at 0, at .4 .03 less (120 questions on LoCoMo at 8,000 tokens, 30 on LongMemEval at 4,000)."""

QUERY_MIN_TERMS = 3
"""Words of a user's message that say something, below which the exchange before it is part of the query."""

QUERY_TEXT_MAX_CHARS, QUERY_MAX_NAMES = 600, 24
"""Characters of each text, and identifiers of the newest results, in the query."""

BLOCK_LINE_MIN_CHARS = 8
"""Characters of the longest line in a block of search results, at least."""

FRAME_TOKENS = 48
"""Tokens of a page-in's frame and heading."""

START_SHARE, SHARE_GROWTH, SHARE_DECAY, MIN_SHARE, MAX_SHARE = 0.25, 1.5, 0.9, 0.05, 0.5
"""The search results' share of a page-in: at first, its factor after a use, its factor otherwise, its bounds."""

PROBE_SHARE = 0.1
"""The share at which the search, most of a page-in's time, runs only once in ``PROBE_INTERVAL``."""

REFRESH_ACTIONS = 4
"""Actions after which a page-in is rebuilt; a user message or a compaction rebuilds it at once."""

NAMES_SHARE, NAMES_MIN_TOKENS, NAMES_MAX_TOKENS = 0.6, 120, 600
"""The share of a page-in for names alone, and its bounds in tokens: little room is all theirs. Two thirds of the missing
identifiers were among the sixty likeliest that were not shown."""

_NAME_SEPARATORS = re.compile(r"[/:-]+")
"""Separators within a name, treated like a dot."""

PROBE_INTERVAL = 4
"""Page-ins between two searches whose results were not used."""


@dataclass(frozen=True, slots=True)
class SearchShare:
    """The search results' share of a page-in; ``showed`` has the names that only the last results had in view."""

    share: float = START_SHARE
    showed: frozenset[str] = frozenset()
    actions: int = 0

    def update(self, view: View) -> SearchShare:
        """Return the share after an action: larger if the action uses one of the names, smaller if not."""
        actions = self.actions + 1
        if not self.showed:
            return replace(self, actions=actions)
        is_used = not self.showed.isdisjoint(_newest_names(view))
        share = min(MAX_SHARE, self.share * SHARE_GROWTH) if is_used else max(MIN_SHARE, self.share * SHARE_DECAY)
        return SearchShare(share, frozenset(), actions)

    def tokens(self, view: View, room: int) -> int:
        """Return the tokens of ``room`` for search results; 0 if no search is due."""
        if is_user_turn(view):
            return int(room * MAX_SHARE)
        is_probe = self.actions % PROBE_INTERVAL == 0
        if self.share <= PROBE_SHARE and not is_probe:
            return 0
        tokens = int(room * (max(self.share, START_SHARE) if is_probe else self.share))
        return tokens if tokens >= PAGE_IN_MIN_TOKENS // 2 else 0


class VisibleContentCache:
    """Caches the names and the parsed content of a view's entries as long as they stay in view."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[ViewEntry, frozenset[str]]] = {}
        self._contents: dict[int, tuple[ViewEntry, VisibleContent]] = {}

    def names(self, entry: ViewEntry) -> frozenset[str]:
        """Return the identifiers in an entry."""
        cached = self._names.get(id(entry))
        if cached is None or cached[0] is not entry:
            cached = entry, frozenset(name for text in _texts(entry) for name in identifiers(text))
            self._names[id(entry)] = cached
        return cached[1]

    def content(self, view: View) -> VisibleContent:
        """Return the visible content of a view, and drop what left it from the cache."""
        contents = {id(entry): (entry, self._parse_entry(entry, view.tracker.parser)) for entry in view.entries}
        self._contents = contents
        self._names = {key: cached for key, cached in self._names.items() if key in contents}
        return VisibleContent.merge([content for _, content in contents.values()])

    def _parse_entry(self, entry: ViewEntry, parser: LineParser) -> VisibleContent:
        cached = self._contents.get(id(entry))
        return cached[1] if cached is not None and cached[0] is entry else VisibleContent.parse(_texts(entry), parser)


def build_query(view: View) -> str:
    """Build the search query: the newest user message, the newest action, and names in its results."""
    parts: list[str] = []
    user = _newest(view, TaskStep)
    if user is not None:
        parts.append(as_text(user.content)[-QUERY_TEXT_MAX_CHARS:])
    action = _newest(view, ActionStep)
    if action is not None:
        parts.append(as_text(action.content or "")[-QUERY_TEXT_MAX_CHARS:])
        parts += [argument_text(call.arguments)[:QUERY_TEXT_MAX_CHARS] for call in action.tool_calls]
        results = (as_text(observation.content) for observation in action.observations if observation is not None)
        names = (name for text in results for name in identifiers(text[: 20 * QUERY_TEXT_MAX_CHARS]))
        parts.append(" ".join(_first_unique(names, QUERY_MAX_NAMES)))
    return "\n".join(part for part in parts if part.strip())


def _newest(view: View, kind: type[S]) -> S | None:
    return next((entry.item for entry in reversed(view.run) if isinstance(entry.item, kind)), None)


def _first_unique(names: Iterable[str], limit: int) -> Iterable[str]:
    """Return the first distinct names, at most ``limit``; the rest is not read."""
    unique: dict[str, None] = {}
    for name in names:
        unique[name] = None
        if len(unique) == limit:
            break
    return unique


@dataclass(frozen=True, slots=True)
class PageIn:
    """The blocks of a page-in with their costs in tokens; the last ones are dropped first when room gets short.

    ``new_names`` are the names that only search results have in view. ``index`` makes the list of names anew each turn,
    in ``names_tokens`` tokens.
    """

    blocks: tuple[str, ...] = ()
    costs: tuple[int, ...] = ()
    new_names: frozenset[str] = frozenset()
    index: NameIndex | None = None
    names_tokens: int = 0
    turns: tuple[int, ...] = ()
    """The positions of the first blocks, which are turns: they are shown in the order of the run."""
    sources: tuple[BlockSource, ...] = ()
    """Where each block is from."""


@dataclass(frozen=True, slots=True)
class NameIndex:
    """The names out of view, each with the chance that it is needed soon; ``beside`` has the names of each line."""

    chances: Mapping[str, float]
    beside: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    """The places of the names in the tracker, when the index was made."""

    def list_likeliest(self, view: View, since: int, cache: VisibleContentCache, tokens: int) -> str:
        """Return the names worth most per token on a line of at most ``tokens`` tokens, without names visible ``since``."""
        about = frozenset(identifiers(build_query(view)))
        related = frozenset(name for line in self.beside if not about.isdisjoint(line) for name in line)
        newer = takewhile(lambda entry: entry.first >= since, reversed(view.run))
        newly_visible = frozenset[str]().union(*map(cache.names, newer))
        worth = [
            (raise_chance(chance, FOCUS_LOG_ODDS * (name in related)) / (1.5 + len(name) / 3.5), name)
            for name, chance in self.chances.items()
            if name not in newly_visible
        ]
        best = _drop_contained_names(name for _, name in heapq.nlargest(max(1, tokens // 3), worth))
        while best and view.counter.text(_names_line(best)) > tokens:
            best = best[: len(best) * 4 // 5]
        return _names_line(best) if best else ""


def _names_line(names: Iterable[str]) -> str:
    return NAMED + " ".join(names)


def _drop_contained_names(names: Iterable[str]) -> list[str]:
    """Drop the names that are part of a likelier one, as ``models.py`` of ``app/models.py``."""
    listed, listed_parts = list[str](), ""
    for name in names:
        if (part := _delimit_name(name)) not in listed_parts:
            listed.append(name)
            listed_parts += f" {part}"
    return listed


def _delimit_name(name: str) -> str:
    return f".{_NAME_SEPARATORS.sub('.', name)}."


def _build_name_index(tracker: SalienceTracker, visible_names: frozenset[str]) -> NameIndex:
    visible_parts = " ".join(map(_delimit_name, visible_names))
    names = {
        name: number
        for number, name in enumerate(tracker.names)
        if name not in visible_names and _delimit_name(name) not in visible_parts
    }
    tracked = tracker.names
    chances = {name: name_chance(tracked[name].base, tracked[name].use, tracker.turn) for name in names}
    beside = tuple(line.names for line in tracker.lines.values() if len(line.names) > 1)
    return NameIndex(chances, beside, tuple(names.values()))


def _newest_names(view: View) -> frozenset[str]:
    """Return the identifiers in the newest action's text and calls."""
    action = _newest(view, ActionStep)
    if action is None:
        return frozenset()
    texts = [as_text(action.content or ""), *(argument_text(call.arguments) for call in action.tool_calls)]
    return frozenset(name for text in texts for name in identifiers(text))


def is_user_turn(view: View) -> bool:
    """True if a user message is newer than the newest action."""
    steps = (entry.item for entry in reversed(view.run) if isinstance(entry.item, ActionStep | TaskStep))
    return isinstance(next(steps, None), TaskStep)


def talk_room(view: View, limit_share: float) -> int:
    """Return the tokens that a page-in may have where the user speaks in a run that is talk; else 0."""
    if not is_user_turn(view) or not is_talk(view):
        return 0
    return int(view.limit * limit_share * TALK_PAGE_IN_FACTOR * speech_share(view))


def available_tokens(view: View, limit_share: float) -> int:
    """Return the tokens free for a page-in, at most this share of the limit; more where the user speaks."""
    most = max(min(int(view.limit * limit_share), PAGE_IN_MAX_TOKENS), talk_room(view, limit_share))
    return min(most, view.limit - view.tokens)


def build_question(view: View) -> str:
    """Build the search query where the user speaks: the user's words, and the exchange before where they say little."""
    from pagein.search.tokenizer import query_terms  # noqa: PLC0415 - loads where something left

    speeches = [entry for entry in reversed(view.run) if is_speech(entry)]
    if not speeches:
        return ""
    texts = [as_text(entry.messages[0].content or "") for entry in speeches[:3]]
    question = _ends_of(texts[0])
    if len(query_terms(question, QUERY_MIN_TERMS)) < QUERY_MIN_TERMS:
        question = "\n".join((question, *(_ends_of(text, QUERY_TEXT_MAX_CHARS) for text in texts[1:])))
    return question


def _ends_of(text: str, most: int = 4 * QUERY_TEXT_MAX_CHARS) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-most // 2 :]}"


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """A turn out of view that a page-in shows: where, by whom, when, its text, and its worth for its tokens."""

    position: int
    handle: str
    speaker: str
    at: float
    text: str
    score: float

    def render(self) -> str:
        """Return the block: handle, speaker and date, then the text."""
        date = datetime.fromtimestamp(self.at, UTC).strftime(", %Y-%m-%d") if self.at > 0 else ""
        return f"[{self.handle}] {self.speaker}{date}:\n{quote_lines(self.text)}"


def choose_turns(
    hits: Sequence[Hit], texts: Mapping[str, str], tokens: int, counter: TokenCounter, query: str
) -> tuple[tuple[int, str, int], ...]:
    """Choose whole turns that fit the tokens, best for their tokens first: position, block and tokens of each.

    ``texts`` has the whole texts by handle, where a hit is a part. A turn that is too long is cut to its lines nearest
    the query.
    """
    from pagein.search.snippets import snippet, worth  # noqa: PLC0415 - loads where something left
    from pagein.search.tokenizer import TermMatcher, query_terms  # noqa: PLC0415

    matcher = TermMatcher(query_terms(query, QUERY_MAX_NAMES))
    limit = int(tokens * TURN_MAX_SHARE)
    best: dict[str, tuple[float, int, str, int]] = {}
    top = max((hit.score for hit in hits), default=0.0)
    for hit in hits:
        if hit.handle in best or hit.score < top * TURN_MIN_SCORE:
            continue
        text = texts.get(hit.handle, hit.text)
        if counter.text(text) > limit:
            text = snippet(text, matcher, limit, counter)[0]
        block = RecalledTurn(hit.position, hit.handle, hit.role, hit.at, text, hit.score).render()
        cost = counter.text(block) + 1
        best[hit.handle] = (worth(hit.score, cost), hit.position, block, cost)
    chosen = []
    for _, position, block, cost in sorted(best.values(), reverse=True):
        if cost <= tokens:
            chosen.append((position, block, cost))
            tokens -= cost
    return tuple(chosen)


def build_page_in(
    view: View, hits: Sequence[Hit], search_tokens: int, room: int, query: str, cache: VisibleContentCache
) -> PageIn:
    """Build the blocks with what is out of view and likely needed, in ``room`` tokens, ``search_tokens`` for the hits."""
    from pagein.search.snippets import pack  # noqa: PLC0415 - loads where something left

    visible = cache.content(view)
    visible_lines = set(visible.lines)
    snippets = pack(hits, search_tokens, view.counter, query) if hits and search_tokens else ()
    found = [(snippet, block) for snippet in snippets if (block := _snippet_block(snippet, view.head, visible_lines))]
    snippet_blocks = tuple(block for _, block in found)
    tokens_left = room - FRAME_TOKENS - sum(view.counter.text(block) + 1 for block in snippet_blocks)
    found_content = VisibleContent.parse(snippet_blocks, view.tracker.parser)
    all_visible = VisibleContent.merge((visible, found_content))
    line_blocks, line_sources, names_tokens = _build_line_blocks(view, all_visible, tokens_left, query)
    blocks = (*snippet_blocks, *line_blocks)
    sources = (*(source_of_hit(snippet.hit, block) for snippet, block in found), *line_sources)
    costs = tuple(view.counter.text(block) + 1 for block in blocks)
    visible_names = all_visible.names.union(name for block in line_blocks for name in identifiers(block))
    index = _build_name_index(view.tracker, visible_names)
    return PageIn(blocks, costs, found_content.names - visible.names, index, names_tokens, sources=sources)


def source_of_hit(hit: Hit, block: str, text: str | None = None, *, kind: BlockKind = "search") -> BlockSource:
    """The source of a block that shows lines of a hit; ``text`` is the whole text, where those are shown."""
    handle = parse_handle(hit.handle)
    part = WHOLE_PART if handle is None or handle.observation is None else handle.observation
    shown = unquote_lines(block.partition("\n")[2])
    if text is not None:
        lines = number_lines(text, [text] if shown == text else shown.split("\n"))
        return BlockSource(kind, hit.position, part, lines)
    return BlockSource(kind, hit.position, part, number_lines(hit.text, shown.split("\n")), text_checksum(hit.text))


def render_page_in(page_in: PageIn, view: View, room: int, since: int, cache: VisibleContentCache) -> ViewEntry | None:
    """Render a page-in behind the run in at most ``room`` tokens, with the names that are likeliest now; None if empty."""
    if room < PAGE_IN_MIN_TOKENS:
        return None
    tokens_left = room - FRAME_TOKENS
    blocks: list[str] = []
    turns: list[tuple[int, str]] = []
    if page_in.index is not None and page_in.names_tokens:
        names_line = page_in.index.list_likeliest(view, since, cache, min(page_in.names_tokens, tokens_left))
        blocks += [names_line] if names_line else []
        tokens_left -= view.counter.text(names_line) + 1
    for number, (block, cost) in enumerate(zip(page_in.blocks, page_in.costs, strict=True)):
        tokens_left -= cost
        if tokens_left < 0:
            break
        if number < len(page_in.turns):
            turns.append((page_in.turns[number], block))
        else:
            blocks.append(block)
    if not blocks and not turns:
        return None
    in_order = (block for _, block in sorted(turns, key=lambda turn: turn[0]))
    item = ContextBlock("recalled", "\n".join((HEAD, *in_order, *blocks)))
    return make_entry(item, view.head, view.head, view.counter, tier="recalled", why=WHY)


def restore_entry(text: str, head: int, tokens: int) -> ViewEntry:
    """Restore the entry of a page-in that was rendered at this head, from its text and its tokens."""
    item = ContextBlock("recalled", text)
    return ViewEntry(head, head, item, "recalled", WHY, messages_of(item), tokens)


def _texts(entry: ViewEntry) -> Iterator[str]:
    is_extract = isinstance(entry.item, SummaryStep)
    for message in entry.messages:
        text = as_text(message.content or "")
        yield _EXTRACT_MARK.sub("", text) if is_extract else text
        yield from (argument_text(call.arguments) for call in message.tool_calls)


def _build_line_blocks(
    view: View, visible: VisibleContent, tokens: int, query: str
) -> tuple[tuple[str, ...], tuple[BlockSource, ...], int]:
    """Build blocks of lines that are out of view, newest first; also return their sources, and the tokens for names alone."""
    if tokens < PAGE_IN_MIN_TOKENS // 2:
        return (), (), 0
    names_tokens = min(tokens, max(NAMES_MIN_TOKENS, min(NAMES_MAX_TOKENS, int(tokens * NAMES_SHARE))))
    focused = focus_on(view.tracker, frozenset(identifiers(query)))
    extract = select_lines(focused, tokens - names_tokens, view.counter, visible=visible)
    groups = [(position, list(group)) for position, group in groupby(extract.lines, key=lambda line: line.position)]
    blocks = tuple(
        "\n".join((f"[{step_handle(position)}]", *(line.mark + line.text for line in lines)))
        for position, lines in reversed(groups)
    )
    sources = tuple(
        BlockSource("lines", position, WHOLE_PART, tuple(line.order for line in lines))
        for position, lines in reversed(groups)
    )
    names_tokens += view.counter.text(_names_line(extract.names)) if extract.names else 0
    return blocks, sources, names_tokens


def _snippet_block(snippet: Snippet, head: int, visible_lines: set[str]) -> str:
    """Return a snippet with its handle, origin and age, without visible lines; "" if too little is left."""
    from pagein.search.snippets import GAP  # noqa: PLC0415

    hidden = list(_hidden_lines(snippet.text, visible_lines))
    if not any(len(strip_line_number(line)) >= BLOCK_LINE_MIN_CHARS and line != GAP for line in hidden):
        return ""
    visible_lines.update(map(strip_line_number, hidden))
    ago = head - snippet.hit.position
    return "\n".join((f"[{snippet.handle}] {snippet.hit.role}, {ago} entries ago:", *map(quote_lines, hidden)))


def _hidden_lines(text: str, visible_lines: set[str]) -> Iterator[str]:
    for line in text.splitlines():
        key = strip_line_number(line)
        # The index has a call as "tool: arguments", a view has its arguments.
        if not key or (key not in visible_lines and strip_line_number(key.partition(": ")[2]) not in visible_lines):
            yield line
