"""The page-in: a block with lines and names that are out of view and likely needed now. Pure.

Models rarely ask for what they do not know they lost. The page-in shows the likeliest names and lines of the run, and
where the user speaks what the search finds for the user's words. It is made where its worth can change, behind a
compaction or a new user message, and stays where it was first shown until the next compaction: so it is paid for once,
and is part of the provider's cache after that. Only what is worth its tokens is shown, so in a large view there is often
nothing. Decision 0045 has the figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from pagein.context.page_in_sources import WHOLE_PART, BlockKind, BlockSource, number_lines, text_checksum
from pagein.context.salience.extract import VisibleContent, select_lines
from pagein.context.salience.lines import LineParser, strip_line_number
from pagein.context.talk import is_speech, is_talk, speech_share
from pagein.context.view.layout import ContextBlock, ViewEntry, make_entry, messages_of
from pagein.context.view.view import View
from pagein.events.handles import parse_handle, step_handle
from pagein.events.identifiers import argument_text, format_call, identifiers
from pagein.events.quoting import quote_lines, unquote_lines
from pagein.events.steps import ActionStep, SummaryStep, TaskStep, as_text
from pagein.tokens import TokenCounter

if TYPE_CHECKING:
    from pagein.search.base import Hit, Snippet
    from pagein.search.passages import Passage

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

PAGE_IN_MAX_TOKENS, ASKED_MAX_TOKENS, UNASKED_MAX_SHARE = 500, 1_000, 0.4
"""Tokens of the page-ins of a tool run at most, until the next compaction, those where the user speaks, and the share of what
nothing asked for."""

SEARCH_SHARE = 0.5
"""Share of a page-in for search results, where the user speaks in a run that is no talk."""

NAME_WORTH = 0.95
"""Worth of a name alone in a page-in, relative to one in a line: with .7 more names are missing, .014 against .011 at 4,000
tokens (30 mini-swe-agent runs), and the lines are as many."""

TALK_PAGE_IN_FACTOR = 2.5
"""What the page-in's share of the limit is multiplied by where the user speaks and the run is talk."""

TALK_MAX_TOKENS = 8_000
"""Tokens of that room at most. Beyond it turns come that only share words with the question: 8 questions of LongMemEval in
80,000 tokens of talk have all of the evidence at a budget of 40,000, as without this."""

QUESTION_TOKENS, SPOKEN_TOKENS = 100, 400
"""Tokens of the user's newest message up to which it is a question, for which whole turns come back, and up to which it is spoken.
A longer one brings what it is about, as a file, a page, or what another agent found: the longer it is, the less comes back."""

QUESTION_MARKS, UNASKED_TALK_SHARE = "?\uff1f\u061f\u037e\u055e\u1367", 0.4
"""The signs of a question, and what the search has of that room where the user's message has none: talk goes on, and the newest turns
that left have the rest. Decision 0069 has the figures."""

TALK_FREE_FACTOR = 1.3
"""What a page-in may have of that room where the view has more free: compactions plan with the room itself. Chats of short
turns, REALTALK's: .645 of the evidence before, .658 with this, ``TURN_HITS`` and ``TURN_DENSITY_EXPONENT``; .781 and .799 in the
other five chats, on which nothing was chosen. LoCoMo and LongMemEval stay as they are."""

TURN_HITS = 128
"""Search results considered where the user speaks."""

TURN_DENSITY_EXPONENT = 0.15
"""How much a turn's length counts against it. At 0 LongMemEval has .016 less, at .3 REALTALK .010 less."""

TURN_MAX_SHARE = 0.4
"""Share of a page-in's room above which a turn is shown in part: its lines nearest the query."""

TURN_MIN_SCORE = 0.25
"""Score of a turn, as a share of the best one's, below which it is not shown. At .2 and .25 the same evidence stands in
the request as at 0, at .4 .03 less (120 questions on LoCoMo at 8,000 tokens, 30 on LongMemEval at 4,000)."""

QUERY_MIN_TERMS = 3
"""Words of a user's message that say something, below which the exchange before it is looked for, too. Of LoCoMo's 24 questions with fewer, .69
of the evidence are among 40 hits for their own words, .06 for both in one query, .68 for two; of 450 that say nothing ("Tell me more about
this") .10, .87 and .80."""

QUERY_TEXT_MAX_CHARS, QUERY_MAX_NAMES = 600, 24
"""Characters of each text, and identifiers of the newest results, in the query."""

BLOCK_LINE_MIN_CHARS = 8
"""Characters of the longest line in a block of search results, at least."""

FRAME_TOKENS, DAY_TOKENS = 48, 8
"""Tokens of a page-in's frame and heading, and of a day before its turns."""

_NAME_SEPARATORS = re.compile(r"[/:-]+")
"""Separators within a name, treated like a dot."""


class VisibleContentCache:
    """Caches the parsed content of a view's entries as long as they stay in view."""

    def __init__(self) -> None:
        self._contents: dict[int, tuple[ViewEntry, VisibleContent]] = {}
        self._named: tuple[ActionStep | None, frozenset[str]] = None, frozenset()

    def content(self, view: View) -> VisibleContent:
        """Return the visible content of a view, and drop what left it from the cache."""
        entries = (*view.entries, *view.tail)
        contents = {id(entry): (entry, self._parse_entry(entry, view.tracker.parser)) for entry in entries}
        self._contents = contents
        return VisibleContent.merge([content for _, content in contents.values()])

    def hidden_names(self, names: AbstractSet[str], view: View, but: ViewEntry) -> set[str]:
        """Return those of the names that are in no entry of the view but this one."""
        hidden = set(names)
        for entry in (*view.entries, *view.tail):
            if hidden and entry is not but:
                hidden -= self.names(entry, view)
        return hidden

    def names(self, entry: ViewEntry, view: View) -> frozenset[str]:
        """Return the identifiers of an entry."""
        return self._parse_entry(entry, view.tracker.parser).names

    def names_of(self, step: ActionStep) -> frozenset[str]:
        """Return the identifiers in an action's text and arguments; those of the last action asked for are cached."""
        if self._named[0] is not step:
            texts = (as_text(step.content or ""), *(argument_text(call.arguments) for call in step.tool_calls))
            self._named = step, frozenset(name for text in texts for name in identifiers(text))
        return self._named[1]

    def _parse_entry(self, entry: ViewEntry, parser: LineParser) -> VisibleContent:
        cached = self._contents.get(id(entry))
        if cached is None or cached[0] is not entry:
            cached = self._contents[id(entry)] = entry, VisibleContent.parse(_texts(entry), parser)
        return cached[1]


def build_query(view: View) -> str:
    """Build the search query: the newest user message, the newest action, and names in its results."""
    parts: list[str] = []
    user = next((entry.item for entry in reversed(view.run) if isinstance(entry.item, TaskStep)), None)
    if user is not None:
        parts.append(as_text(user.content)[-QUERY_TEXT_MAX_CHARS:])
    _, action = _newest_action(view)
    if action is not None:
        parts.append(as_text(action.content or "")[-QUERY_TEXT_MAX_CHARS:])
        parts += [argument_text(call.arguments)[:QUERY_TEXT_MAX_CHARS] for call in action.tool_calls]
        results = (as_text(observation.content) for observation in action.observations if observation is not None)
        names = (name for text in results for name in identifiers(text[: 20 * QUERY_TEXT_MAX_CHARS]))
        parts.append(" ".join(_first_unique(names, QUERY_MAX_NAMES)))
    return "\n".join(part for part in parts if part.strip())


def _first_unique(names: Iterable[str], limit: int) -> Iterable[str]:
    """Return the first distinct names, at most ``limit``; the rest is not read."""
    unique: dict[str, None] = {}
    for name in names:
        unique[name] = None
        if len(unique) == limit:
            break
    return unique


@dataclass(frozen=True, slots=True)
class SourcedBlock:
    """A block of a page-in: its text, where it is from, and the day of a turn."""

    text: str
    source: BlockSource
    day: str = ""


@dataclass(frozen=True, slots=True)
class PageIn:
    """A page-in as it was first shown: its ``entry``, the sources of its blocks, and the numbers of its names.

    A name's number is its place in the tracker at the entry's position.
    """

    entry: ViewEntry
    sources: tuple[BlockSource, ...] = ()
    names: tuple[int, ...] = ()

    @property
    def turns(self) -> frozenset[int]:
        """The positions of its turns."""
        return frozenset(source.position for source in self.sources if source.kind in ("turn", "recent"))

    @property
    def has_newest_turns(self) -> bool:
        """True if it has the newest turns that left, which stay the same until the next compaction."""
        return any(source.kind == "recent" for source in self.sources)


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


@dataclass(frozen=True, slots=True)
class NamedFault:
    """The newest action names something that is out of view: its position, and the names; -1 and none where it does not."""

    position: int = -1
    names: frozenset[str] = frozenset()


def find_fault(view: View, cache: VisibleContentCache) -> NamedFault:
    """Find what the newest action names that is out of view.

    What it names for the first time, or what its own result has, is not out of view.
    """
    newest, step = _newest_action(view)
    if newest is None or step is None:
        return NamedFault()
    hidden = cache.hidden_names(view.tracker.names_before(cache.names_of(step)), view, newest)
    if hidden:
        results = [as_text(observation.content) for observation in step.observations if observation is not None]
        hidden.difference_update(name for text in results for name in identifiers(text))
    return NamedFault(newest.first, frozenset(hidden)) if hidden else NamedFault()


def find_used(view: View, page_ins: Sequence[ViewEntry], cache: VisibleContentCache) -> tuple[int, tuple[int, ...]]:
    """Return the position of the newest action, and of the page-ins before it that alone show something it names."""
    newest, step = _newest_action(view)
    if newest is None or step is None:
        return -1, ()
    earlier = [entry for entry in page_ins if entry.first <= newest.first]
    shown = {name for entry in earlier for name in cache.names_of(step) & cache.names(entry, view)}
    alone = cache.hidden_names(shown, view, newest)
    return newest.first, tuple(entry.first for entry in earlier if alone & cache.names(entry, view))


def _newest_action(view: View) -> tuple[ViewEntry, ActionStep] | tuple[None, None]:
    actions = ((entry, entry.item) for entry in reversed(view.run) if isinstance(entry.item, ActionStep))
    return next(actions, (None, None))


def is_user_turn(view: View) -> bool:
    """True if a user message is newer than the newest action."""
    steps = (entry.item for entry in reversed(view.run) if isinstance(entry.item, ActionStep | TaskStep))
    return isinstance(next(steps, None), TaskStep)


def talk_room(view: View, limit_share: float) -> int:
    """Return the tokens that page-ins may have where the user speaks in a run that is talk; else 0."""
    if not is_user_turn(view) or not is_talk(view):
        return 0
    said = _newest_user_entry(view).tokens
    share = limit_share * TALK_PAGE_IN_FACTOR * (1.0 if said <= SPOKEN_TOKENS else QUESTION_TOKENS / said)
    return min(int(view.limit * share * speech_share(view)), TALK_MAX_TOKENS)


def search_room(view: View, limit_share: float) -> int:
    """Return the part of that room for what the search finds: all of it for a short question."""
    room = talk_room(view, limit_share)
    said = _newest_user_entry(view).tokens if room else 0
    if said > SPOKEN_TOKENS or not room:
        return room
    return int(room * min(1.0 if asks(view) else UNASKED_TALK_SHARE, QUESTION_TOKENS / said))


def asks(view: View) -> bool:
    """True if the user's newest message has a question, by its mark or by the order of its words."""
    from pagein.context.ledger import english  # noqa: PLC0415 - its patterns: an import of pagein loads little

    text = as_text(_newest_user_entry(view).messages[0].content or "")
    has_mark, is_open = any(mark in text for mark in QUESTION_MARKS), text.rstrip()[-1:].isalnum()
    return has_mark or (is_open and english.QUESTION.search(english.spell_out(text)) is not None)


def _newest_user_entry(view: View) -> ViewEntry:
    return next(entry for entry in reversed(view.run) if isinstance(entry.item, TaskStep))


def question_room(view: View, limit_share: float) -> int:
    """Return the tokens to leave free for a page-in where the user speaks, else 0: in a full view none would be made."""
    if not is_user_turn(view):
        return 0
    return max(_max_tokens(view, limit_share) // 2, search_room(view, limit_share))


def _max_tokens(view: View, limit_share: float) -> int:
    """Return the tokens that page-ins of a run of tools may have together."""
    return min(int(view.limit * limit_share), ASKED_MAX_TOKENS if is_user_turn(view) else PAGE_IN_MAX_TOKENS)


def available_tokens(view: View, limit_share: float, shown_tokens: int, *, is_fault: bool) -> int:
    """Return the tokens free for a page-in beside those shown: of a share of the limit, more where the user speaks.

    Where nothing was named out of view and the user does not speak, part of it is left for when that happens. Each message
    of the user has its own: in a large view there are many until the next compaction.
    """
    tokens = _max_tokens(view, limit_share)
    if is_user_turn(view):
        tokens = min(tokens, int(view.limit * limit_share) - shown_tokens)
    else:
        tokens = int(tokens * (1 if is_fault else UNASKED_MAX_SHARE)) - shown_tokens
    tokens = max(tokens, int(TALK_FREE_FACTOR * talk_room(view, limit_share)) - shown_tokens)
    return min(tokens, view.limit - view.tokens)


class Question(NamedTuple):
    """What is looked for where the user speaks: the user's words, and where they say little those with the exchange before.

    "" where they say nothing, and where they say enough.
    """

    own: str
    with_before: str = ""

    @property
    def text(self) -> str:
        """All that is looked for."""
        return self.with_before or self.own


def build_question(view: View) -> Question:
    """Build the search query where the user speaks."""
    from pagein.search.tokenizer import count_telling  # noqa: PLC0415 - loads where something left

    speeches = [entry for entry in reversed(view.run) if is_speech(entry)]
    if not speeches:
        return Question("")
    texts = [as_text(entry.messages[0].content or "") for entry in speeches[:3]]
    question = _ends_of(texts[0])
    if (telling := count_telling(question, QUERY_MIN_TERMS)) >= QUERY_MIN_TERMS:
        return Question(question)
    longer = "\n".join((question, *(_ends_of(text, QUERY_TEXT_MAX_CHARS) for text in texts[1:])))
    return Question(question if telling else "", longer)


def merge_hits(found: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Merge the hits of several searches, best first: in each the best one's score is 1."""
    best: dict[tuple[str, str], Hit] = {}
    for hits in found:
        top = max((hit.score for hit in hits), default=0.0) or 1.0
        for hit in hits:
            scaled = replace(hit, score=hit.score / top)
            if (key := (hit.handle, hit.text)) not in best or best[key].score < scaled.score:
                best[key] = scaled
    return sorted(best.values(), key=lambda hit: -hit.score)


def _ends_of(text: str, max_chars: int = 4 * QUERY_TEXT_MAX_CHARS) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars // 2]}\n{text[-max_chars // 2 :]}"


def turn_block(handle: str, speaker: str, text: str) -> str:
    """The block of a turn out of view: handle, speaker and text."""
    return f"[{handle}] {speaker}: {quote_lines(text)}"


def day_of(at: float) -> str:
    """The day of a turn, "" where no clock was."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d") if at > 0 else ""


def under_days(blocks: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the blocks of turns in order, each day once, before its first turn: short turns cost half of what a date in each would."""
    last = ""
    for day, block in blocks:
        if day not in ("", last):
            yield day
            last = day
        yield block


class _RatedTurn(NamedTuple):
    """A turn that may come back; the best of several is the greatest."""

    worth: float
    position: int
    tokens: int
    block: SourcedBlock


def choose_turns(
    hits: Sequence[Hit], texts: Mapping[str, str], tokens: int, counter: TokenCounter, query: str
) -> tuple[SourcedBlock, ...]:
    """Choose whole turns that fit the tokens, best for their tokens first.

    ``texts`` has the whole texts by handle, where a hit is a part. A turn that is too long is cut to its lines nearest
    the query.
    """
    from pagein.search.snippets import snippet, worth  # noqa: PLC0415 - loads where something left
    from pagein.search.tokenizer import TermMatcher, query_terms  # noqa: PLC0415

    matcher = TermMatcher(query_terms(query, QUERY_MAX_NAMES))
    limit = int(tokens * TURN_MAX_SHARE)
    turns: dict[str, _RatedTurn] = {}
    top = max((hit.score for hit in hits), default=0.0)
    for hit in hits:
        if hit.handle in turns or hit.score < top * TURN_MIN_SCORE:
            continue
        whole = texts.get(hit.handle, hit.text)
        text = snippet(whole, matcher, limit, counter)[0] if counter.text(whole) > limit else whole
        if not text:
            continue  # one long line, of which no piece fits
        block = turn_block(hit.handle, hit.role, text)
        cost = counter.text(block) + 1
        source = source_of_hit(hit, text, whole, kind="turn")
        rated = SourcedBlock(block, source, day_of(hit.at))
        turns[hit.handle] = _RatedTurn(worth(hit.score, cost, TURN_DENSITY_EXPONENT), hit.position, cost, rated)
    chosen: list[SourcedBlock] = []
    days = {""}
    for turn in sorted(turns.values(), reverse=True, key=lambda turn: turn[:3]):
        cost = turn.tokens + (0 if turn.block.day in days else DAY_TOKENS)
        if cost <= tokens:
            chosen.append(turn.block)
            days.add(turn.block.day)
            tokens -= cost
    return tuple(chosen)


def divide_room(
    turns: Sequence[SourcedBlock], newest: Sequence[SourcedBlock], tokens: int, counter: TokenCounter
) -> tuple[tuple[SourcedBlock, ...], tuple[SourcedBlock, ...]]:
    """Divide the tokens: the newest turns have what the others leave, without a gap; one in both stands with the newest."""
    positions = {turn.source.position for turn in turns}
    free = tokens - sum(counter.text(turn.text) + 1 for turn in turns)
    fitting: list[SourcedBlock] = []
    for turn in newest:
        free -= 0 if turn.source.position in positions else counter.text(turn.text) + 1
        if free < 0:
            break
        fitting.append(turn)
    fitting_positions = {turn.source.position for turn in fitting}
    return tuple(turn for turn in turns if turn.source.position not in fitting_positions), tuple(fitting)


def recent_turn(part: Passage, text: str) -> SourcedBlock:
    """The block of a turn, whole, that is among the newest that left."""
    source = BlockSource("recent", part.position, part.part, number_lines(text, [text]))
    return SourcedBlock(turn_block(part.handle, part.role, text), source, day_of(part.at))


def build_page_in(
    view: View,
    room: int,
    query: str,
    cache: VisibleContentCache,
    *,
    worth: float,
    turns: Sequence[SourcedBlock] = (),
    hits: Sequence[Hit] = (),
    only_turns: bool = False,
) -> PageIn | None:
    """Build the page-in behind the run in at most ``room`` tokens, of turns, search hits, and likely lines and names.

    A line or a name is shown where the needs it meets are expected to be ``worth`` its tokens. None where nothing is.
    """
    visible = cache.content(view)
    passages = [] if only_turns else _snippet_blocks(view, hits, int(room * SEARCH_SHARE), query, set(visible.lines))
    costs = sum(view.counter.text(block.text) + 1 for block in (*turns, *passages))
    names: tuple[str, ...] = ()
    lines: list[SourcedBlock] = []
    if not only_turns:
        shown = VisibleContent.parse((block.text for block in (*turns, *passages)), view.tracker.parser)
        visible = VisibleContent.merge((visible, shown))
        lines, names = _likely_lines(view, visible, room - FRAME_TOKENS - costs, query, worth)
    blocks = [*passages, *lines]
    while turns or names or blocks:
        entry = _render(view, turns, names, blocks)
        if entry.tokens <= room:
            numbers = {name: number for number, name in enumerate(view.tracker.names)} if names else {}
            sources = tuple(block.source for block in (*turns, *blocks))
            return PageIn(entry, sources, tuple(numbers[name] for name in names))
        if blocks:
            blocks.pop()
        elif names:
            names = names[: len(names) * 4 // 5]
        else:
            turns = turns[:-1]
    return None


def _render(
    view: View, turns: Sequence[SourcedBlock], names: Sequence[str], blocks: Sequence[SourcedBlock]
) -> ViewEntry:
    in_order = sorted(turns, key=lambda turn: turn.source.position)
    texts = [HEAD, *under_days((turn.day, turn.text) for turn in in_order)]
    texts += [NAMED + " ".join(names)] if names else []
    texts += (block.text for block in blocks)
    item = ContextBlock("recalled", "\n".join(texts))
    return make_entry(item, view.head, view.head, view.counter, tier="recalled", why=WHY)


def _snippet_blocks(
    view: View, hits: Sequence[Hit], tokens: int, query: str, visible_lines: set[str]
) -> list[SourcedBlock]:
    """Return the passages of search hits, without visible lines."""
    if not hits:
        return []
    from pagein.search.snippets import pack  # noqa: PLC0415 - loads where something left

    return [
        SourcedBlock(text, source_of_hit(snippet.hit, unquote_lines(text.partition("\n")[2])))
        for snippet in pack(hits, tokens, view.counter, query)
        if (text := _snippet_block(snippet, view.head, visible_lines))
    ]


def source_of_hit(hit: Hit, shown: str, text: str | None = None, *, kind: BlockKind = "search") -> BlockSource:
    """The source of a block that shows lines of a hit; ``text`` is the whole text, where those are shown."""
    handle = parse_handle(hit.handle)
    part = WHOLE_PART if handle is None or handle.observation is None else handle.observation
    if text is not None:
        lines = number_lines(text, [text] if shown == text else shown.split("\n"))
        return BlockSource(kind, hit.position, part, lines)
    return BlockSource(kind, hit.position, part, number_lines(hit.text, shown.split("\n")), text_checksum(hit.text))


def restore_entry(text: str, head: int, tokens: int) -> ViewEntry:
    """Restore the entry of a page-in that was rendered at this head, from its text and its tokens."""
    item = ContextBlock("recalled", text)
    return ViewEntry(head, head, item, "recalled", WHY, messages_of(item), tokens)


def _texts(entry: ViewEntry) -> Iterator[str]:
    is_extract = isinstance(entry.item, SummaryStep)
    for message in entry.messages:
        text = as_text(message.content or "")
        yield _EXTRACT_MARK.sub("", text) if is_extract else text
        for call in message.tool_calls:
            line = format_call(call.name, call.arguments)
            # The line of a call with one argument is that argument.
            yield from (argument_text(call.arguments), *(() if line.alone else (line.text,)))


def _likely_lines(
    view: View, visible: VisibleContent, tokens: int, query: str, worth: float
) -> tuple[list[SourcedBlock], tuple[str, ...]]:
    """Return the lines that are out of view and worth their tokens, newest first, and the names alone."""
    if tokens < PAGE_IN_MIN_TOKENS // 2:
        return [], ()
    extract = select_lines(
        view.tracker, tokens, view.counter,
        visible=visible, worth=worth, alone=NAME_WORTH, reserves=False, focus=frozenset(identifiers(query)),
    )  # fmt: skip
    groups = [(position, list(group)) for position, group in groupby(extract.lines, key=lambda line: line.position)]
    blocks = [
        SourcedBlock(
            "\n".join((f"[{step_handle(position)}]", *(line.mark + line.text for line in lines))),
            BlockSource("lines", position, WHOLE_PART, tuple(line.order for line in lines)),
        )
        for position, lines in reversed(groups)
    ]
    visible_parts = _delimit_name(". .".join(visible.names))
    names = (name for name in extract.names if _delimit_name(name) not in visible_parts)
    return blocks, tuple(_drop_contained_names(names))


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
