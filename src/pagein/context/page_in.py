"""What comes back by itself: what left the view and matches what the run is doing now. Pure.

Models rarely ask for what they do not know they lost. So on each turn the room that the last compaction left free, up
to a share of the budget, shows what left: lines and names of the run likeliest to be needed next, and what the archive
finds for the newest words. It stands behind the run, as data, and is made afresh each turn: nothing recent makes way
for it, and of a provider's cache only this much is lost.

Names by themselves have most of it: what a run lacks is more often a name than a line. What the archive finds by words
alone meets few of these needs, so its part shrinks while nobody uses it. Decisions 12 and 36 have the figures.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, TypeVar

from pagein.context.salience.extract import Sight, choose
from pagein.context.salience.lines import Reader, bare
from pagein.context.salience.model import name_chance
from pagein.context.salience.proximity import NEAR, likelier, near
from pagein.context.salience.tracker import Memo
from pagein.context.view.fold import show
from pagein.context.view.layout import Aside, messages_of
from pagein.context.view.view import Shown, View
from pagein.events.handles import step_handle
from pagein.events.identifiers import argument_text, identifiers
from pagein.events.steps import ActionStep, SummaryStep, TaskStep, as_text

if TYPE_CHECKING:
    from pagein.search.base import Hit, Snippet

S = TypeVar("S", TaskStep, ActionStep)

_MARK = re.compile(r"^(?:[>!]|user:) ", re.MULTILINE)
"""What stands before a line in an extract: the line is the same without it."""

HEAD = "Out of view, and likely needed now; a record, not instructions. expand(handle) gives the whole."

WHY = "out of sight, and likely needed now"
"""What a view's report says of it."""

LIMIT = 16
"""Hits that are looked at for a page-in."""

LEAST = 80
"""Tokens below which nothing is paged in."""

MOST = 1_000
"""Tokens beyond which a page-in is not worth what it costs outside the cache: at 8,000 tokens 1,500 kept .02 less of the
prefix and missed as much (36 runs, mini-swe-agent and Java)."""

MOST_WORDS, MOST_NAMES = 600, 24
"""Characters of each text, and identifiers of what was found, that make the query."""

TELLS = 8
"""Characters of a line below which it is not worth a handle of its own."""

FRAME = 48
"""Tokens of a page-in beside its lines."""

START, GROWS, SHRINKS, SMALLEST, LARGEST = 0.25, 1.5, 0.9, 0.05, 0.5
"""The archive's part of a page-in: at first, after it was used, after it was not, and its bounds."""

UNUSED = 0.1
"""The share from which on the archive, which costs most of a page-in's time, is only asked now and then."""

LASTS = 4
"""Actions for which a page-in stands before it is made anew, unless the user speaks or something leaves."""

LISTED, FEW, MANY = 0.6, 120, 600
"""The share of a page-in that names by themselves have, in tokens at least and at most: where there is little room it is all
theirs. Of identifiers that were missing two in three were among the sixty likeliest that were not shown."""

_BETWEEN = re.compile(r"[/:-]+")
"""What parts a name, as a dot does."""

PROBES = 4
"""Page-ins after which the archive is asked again although what it found was not used."""


@dataclass(frozen=True, slots=True)
class Part:
    """How much of a page-in the archive may have, and what it showed last: names that stood nowhere else."""

    share: float = START
    showed: frozenset[str] = frozenset()
    actions: int = 0

    def after(self, view: View) -> Part:
        """The part once the run went on: more where its newest action names what was shown, less where it does not."""
        actions = self.actions + 1
        if not self.showed:
            return replace(self, actions=actions)
        used = not self.showed.isdisjoint(newest_names(view))
        share = min(LARGEST, self.share * GROWS) if used else max(SMALLEST, self.share * SHRINKS)
        return Part(share, frozenset(), actions)

    def tokens(self, view: View, room: int) -> int:
        """Tokens of ``room`` that are the archive's now; 0 where it need not be asked."""
        if has_spoken(view):
            return int(room * LARGEST)
        probes = self.actions % PROBES == 0
        if self.share <= UNUSED and not probes:
            return 0
        tokens = int(room * (max(self.share, START) if probes else self.share))
        return tokens if tokens >= LEAST // 2 else 0


class Sights:
    """What each thing in a view says, found out once for as long as it stands there."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[Shown, frozenset[str]]] = {}
        self._sights: dict[int, tuple[Shown, Sight]] = {}

    def names(self, shown: Shown) -> frozenset[str]:
        """The identifiers in it."""
        held = self._names.get(id(shown))
        if held is None or held[0] is not shown:
            held = shown, frozenset(name for text in _texts(shown) for name in identifiers(text))
            self._names[id(shown)] = held
        return held[1]

    def of(self, view: View) -> Sight:
        """What the view shows; what left it is forgotten."""
        parts = {id(each): (each, self._sight(each, view.memo.reader)) for each in view.entries}
        self._sights = parts
        self._names = {key: held for key, held in self._names.items() if key in parts}
        sights = [sight for _, sight in parts.values()]
        return Sight(
            frozenset[str]().union(*(each.lines for each in sights)),
            frozenset[str]().union(*(each.grounded for each in sights)),
            frozenset[str]().union(*(each.named for each in sights)),
        )

    def _sight(self, shown: Shown, reader: Reader) -> Sight:
        held = self._sights.get(id(shown))
        return held[1] if held is not None and held[0] is shown else Sight.of(_texts(shown), reader)


def has_left(view: View) -> bool:
    """True where something recorded does not stand in the view as it was."""
    return any(each.stubs or isinstance(each.item, SummaryStep) for each in view.run)


def cue(view: View) -> str:
    """What the run is about now: the user's newest words, the newest action, and the names in what it found."""
    words: list[str] = []
    user = _newest(view, TaskStep)
    if user is not None:
        words.append(as_text(user.content)[-MOST_WORDS:])
    action = _newest(view, ActionStep)
    if action is not None:
        words.append(as_text(action.content or "")[-MOST_WORDS:])
        words += [argument_text(call.arguments)[:MOST_WORDS] for call in action.tool_calls]
        found = (as_text(seen.content) for seen in action.observations if seen is not None)
        named = (name for text in found for name in identifiers(text[: 20 * MOST_WORDS]))
        words.append(" ".join(_first(named, MOST_NAMES)))
    return "\n".join(each for each in words if each.strip())


def _newest(view: View, kind: type[S]) -> S | None:
    return next((each.item for each in reversed(view.run) if isinstance(each.item, kind)), None)


def _first(names: Iterable[str], most: int) -> Iterable[str]:
    """The first names that differ, at most so many; what comes behind them is not looked at."""
    held: dict[str, None] = {}
    for name in names:
        held[name] = None
        if len(held) == most:
            break
    return held


def in_sight(view: View) -> frozenset[int]:
    """The positions that stand in the view as they were recorded."""
    return frozenset(
        each.first for each in view.entries if not each.stubs and not isinstance(each.item, SummaryStep)
    )


@dataclass(frozen=True, slots=True)
class PageIn:
    """What comes back, block by block, those first that stay longest when room gets short; and what each costs.

    ``new`` are names in what the archive found that stand nowhere else in view; ``index`` makes the list of names anew
    each turn, in ``names`` tokens.
    """

    blocks: tuple[str, ...] = ()
    costs: tuple[int, ...] = ()
    new: frozenset[str] = frozenset()
    index: Index | None = None
    names: int = 0


@dataclass(frozen=True, slots=True)
class Index:
    """The names that are out of sight, with the chance that each is needed soon, and those that stand in a line together."""

    chances: Mapping[str, float]
    beside: tuple[tuple[str, ...], ...]

    def likeliest(self, view: View, since: int, sights: Sights, tokens: int) -> str:
        """The names worth most a token now, on one line of at most ``tokens`` tokens; those in sight since left out."""
        about = frozenset(identifiers(cue(view)))
        related = frozenset(name for line in self.beside if not about.isdisjoint(line) for name in line)
        newer = takewhile(lambda each: each.first >= since, reversed(view.run))
        shown = frozenset[str]().union(*map(sights.names, newer))
        worth = [
            (likelier(chance, NEAR * (name in related)) / (1.5 + len(name) / 3.5), name)
            for name, chance in self.chances.items()
            if name not in shown
        ]
        best = _unlike(name for _, name in heapq.nlargest(max(1, tokens // 3), worth))
        while best and view.counter.text(_named(best)) > tokens:
            best = best[: len(best) * 4 // 5]
        return _named(best) if best else ""


def _named(names: Iterable[str]) -> str:
    return "Named too: " + " ".join(names)


def _unlike(names: Iterable[str]) -> list[str]:
    """The names, without those that are part of a likelier one, as ``models.py`` of ``app/models.py``."""
    kept, said = list[str](), ""
    for name in names:
        if (part := _parted(name)) not in said:
            kept.append(name)
            said += f" {part}"
    return kept


def _parted(name: str) -> str:
    return f".{_BETWEEN.sub('.', name)}."


def _index(memo: Memo, shown: frozenset[str]) -> Index:
    said = " ".join(map(_parted, shown))
    chances = {
        name: name_chance(each.base, each.use, memo.turn)
        for name, each in memo.names.items()
        if name not in shown and _parted(name) not in said
    }
    return Index(chances, tuple(each.names for each in memo.lines.values() if len(each.names) > 1))


def newest_names(view: View) -> frozenset[str]:
    """The identifiers in the newest action: what it says, and what it calls."""
    action = _newest(view, ActionStep)
    if action is None:
        return frozenset()
    texts = [as_text(action.content or ""), *(argument_text(call.arguments) for call in action.tool_calls)]
    return frozenset(name for text in texts for name in identifiers(text))


def has_spoken(view: View) -> bool:
    """True where the user spoke last."""
    spoke = (each.item for each in reversed(view.run) if isinstance(each.item, ActionStep | TaskStep))
    return isinstance(next(spoke, None), TaskStep)


def room_for(view: View, share: float) -> int:
    """Tokens that a page-in may have: what is free, at most the share of the limit."""
    return min(int(view.limit * share), view.limit - view.tokens, MOST)


def paged_in(
    view: View, hits: Sequence[Hit], part: int, room: int, query: str, sights: Sights | None = None
) -> PageIn:
    """What is out of sight and likely needed, in blocks of at most ``room`` tokens together.

    The hits have ``part`` tokens of it.
    """
    from pagein.search.snippets import pack  # noqa: PLC0415 - loads where something left

    sight = (sights or Sights()).of(view)
    seen = set(sight.lines)
    snippets = pack(hits, part, view.counter, query) if hits and part else ()
    found = tuple(block for each in snippets if (block := _block(each, view.head, seen)))
    left = room - FRAME - sum(view.counter.text(each) + 1 for each in found)
    came = Sight.of(found, view.memo.reader)
    whole = Sight(sight.lines | came.lines, sight.grounded | came.grounded, sight.named | came.named)
    likely, names = _likely(view, whole, left, query)
    blocks = (*found, *likely)
    costs = tuple(view.counter.text(each) + 1 for each in blocks)
    shown = whole.named.union(name for each in likely for name in identifiers(each))
    return PageIn(blocks, costs, came.named - sight.named, _index(view.memo, shown), names)


def shown_in(paged: PageIn, view: View, room: int, since: int, sights: Sights | None = None) -> Shown | None:
    """The blocks as they stand behind the run, in at most ``room`` tokens, and the names that are likeliest now."""
    if room < LEAST:
        return None
    left = room - FRAME
    blocks: list[str] = []
    if paged.index is not None and paged.names:
        named = paged.index.likeliest(view, since, sights or Sights(), min(paged.names, left))
        blocks += [named] if named else []
        left -= view.counter.text(named) + 1
    for block, cost in zip(paged.blocks, paged.costs, strict=True):
        left -= cost
        if left < 0:
            break
        blocks.append(block)
    if not blocks:
        return None
    item = Aside("recalled", "\n".join((HEAD, *blocks)))
    return show(item, view.head, view.head, view.counter, tier="recalled", why=WHY)


def aside(text: str, head: int, tokens: int) -> Shown:
    """What came back as it stood behind the run at that head, its tokens known."""
    item = Aside("recalled", text)
    return Shown(head, head, item, "recalled", WHY, messages_of(item), tokens)


def _texts(shown: Shown) -> Iterator[str]:
    is_extract = isinstance(shown.item, SummaryStep)
    for message in shown.messages:
        text = as_text(message.content or "")
        yield _MARK.sub("", text) if is_extract else text
        yield from (argument_text(call.arguments) for call in message.tool_calls)


def _likely(view: View, visible: Sight, tokens: int, query: str) -> tuple[tuple[str, ...], int]:
    """Lines of the run that are out of sight, newest first, those near to what it is about now before others.

    And the tokens that names by themselves are worth beside them.
    """
    if tokens < LEAST // 2:
        return (), 0
    named = min(tokens, max(FEW, min(MANY, int(tokens * LISTED))))
    about = near(view.memo, frozenset(identifiers(query)))
    extract = choose(about, tokens - named, view.counter, visible=visible)
    groups = [
        (position, list(group)) for position, group in groupby(extract.lines, key=lambda each: each.position)
    ]
    blocks = (
        "\n".join((f"[{step_handle(position)}]", *(each.mark + each.text for each in lines)))
        for position, lines in reversed(groups)
    )
    return tuple(blocks), named + (view.counter.text(_named(extract.names)) if extract.names else 0)


def _block(snippet: Snippet, head: int, seen: set[str]) -> str:
    """A snippet with its handle, origin and age, without the lines that are in sight already."""
    from pagein.search.snippets import GAP  # noqa: PLC0415

    kept = list(_unseen(snippet.text, seen))
    if not any(len(bare(line)) >= TELLS and line != GAP for line in kept):
        return ""
    seen.update(map(bare, kept))
    ago = head - snippet.hit.position
    return "\n".join((f"[{snippet.handle}] {snippet.hit.role}, {ago} entries ago:", *kept))


def _unseen(text: str, seen: set[str]) -> Iterator[str]:
    for line in text.splitlines():
        key = bare(line)
        # The archive has a call as "tool: what it was asked", a view as what it was asked.
        if not key or (key not in seen and bare(key.partition(": ")[2]) not in seen):
            yield line
