"""Where what is known stands in a view: in blocks that stay byte for byte where they first stood, while they are true.

A block that is made afresh behind the run for every request costs a provider's cache its own length each time. So it
stays where it stood, and the run goes on behind it; what matters anew comes in a block of its own at the end, as far as
there is room; and all are made anew, in one block at the end, where one of their facts no longer stands as it was
shown, where a correction or a constraint has no other room, or where most of what matters now is not among them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pagein.facts.block import CLOSE, OPEN, Block, block_of, line_of
from pagein.facts.fact import Fact
from pagein.tokens import TokenCounter

if TYPE_CHECKING:
    from pagein.facts.ranking import Ranked
    from pagein.facts.settings import Settings

FIRST = 0.4
"""Share of the tokens that the first block has where not all facts fit: the rest is for what matters later.

Measured with 200 facts and more on 20 dialogues at 8,000 tokens: the share of a request that is the next one's prefix,
and the share of the eight facts that matter most which stand in it: .982 and .90; with .6, .976 and .87."""

CLEARLY = 0.1
"""How much higher than the least of what stands a fact scores that is added to it."""

FOREMOST, LACKING = 8, 0.75
"""Of so many facts that matter most, the share above which all is made anew where they do not stand and have no room."""

_LINE = re.compile(r"- .*\[(f[tspua]\d+)\](?: \(said .*\))?$")
"""A fact's line in a block, and its id."""

TOO = "Known too, as data:"
"""What a block says that is not the first."""


@dataclass(frozen=True, slots=True)
class Laid:
    """A block, which stands before what was recorded at ``position`` and after; ``lines`` are its facts' by their ids."""

    position: int
    text: str
    tokens: int
    lines: tuple[tuple[str, str], ...]

    @property
    def inner(self) -> str:
        """The text without its tags, which a view adds."""
        return self.text.removeprefix(OPEN).removesuffix(CLOSE).strip()


@dataclass(frozen=True, slots=True)
class Room:
    """Where a new block would stand, and in how many tokens: by which counter, and by which cost of a line."""

    position: int
    tokens: int
    counter: TokenCounter
    cost: Callable[[str], int]


def laid(
    held: tuple[Laid, ...],
    ranked: Sequence[Ranked],
    standing: Callable[[str], Fact | None],
    room: Room,
    settings: Settings,
) -> tuple[Laid, ...]:
    """The blocks as they stand now: ``held`` itself where nothing changes. () where nothing is known.

    ``ranked`` are the facts that hold, best first; ``standing`` gives a fact by its id, None where it holds no longer.
    """
    shown = dict(line for each in held for line in each.lines)
    used = sum(each.tokens for each in held)
    true = all((fact := standing(id)) is not None and line_of(fact) == line for id, line in shown.items())
    if not held or not true or used > room.tokens:
        return _afresh(ranked, room, settings)
    missing = [each for each in ranked if each.fact.id not in shown]
    least = min((each.score for each in ranked if each.fact.id in shown), default=0.0) + CLEARLY
    sure = frozenset(settings.guaranteed)
    wanted = [each for each in missing if each.score >= least or each.fact.category in sure]
    if not wanted:
        return held
    added = _block(wanted, room, room.tokens - used, settings, about=TOO)
    if added.ids:
        return (*held, _laid(added, wanted, room.position))
    afresh = _afresh(ranked, room, settings)
    return afresh if _is_better(afresh, shown, ranked, wanted, sure) else held


def frozen(
    text: str,
    ranked: Sequence[Ranked],
    standing: Callable[[str], Fact | None],
    room: Room,
    settings: Settings,
) -> Block:
    """The one block of a head that says ``text`` so far: the same while it is true, and most of what matters is in it.

    Where there is room for all that is known, all of it is there.
    """
    lines = {found[1]: line for line in text.splitlines() if (found := _LINE.match(line)) is not None}
    whole = _block(ranked, room, room.tokens, settings)
    true = all((fact := standing(id)) is not None and line_of(fact) == line for id, line in lines.items())
    wanted = [each for each in ranked if each.fact.id not in lines]
    afresh = (_laid(whole, ranked, room.position),)
    sure = frozenset(settings.guaranteed)
    some = len(whole.ids) < len(ranked) or not wanted
    stays = lines and true and some and not _is_better(afresh, lines, ranked, wanted, sure)
    tokens = room.counter.text(f"{OPEN}\n{text}\n{CLOSE}")
    return (
        Block(f"{OPEN}\n{text}\n{CLOSE}", tokens, tuple(lines)) if stays and tokens <= room.tokens else whole
    )


def _is_better(
    afresh: tuple[Laid, ...],
    shown: dict[str, str],
    ranked: Sequence[Ranked],
    wanted: Sequence[Ranked],
    sure: frozenset[str],
) -> bool:
    """Whether blocks made anew are worth a prefix: most of what matters most, or something that is sure, does not stand."""
    foremost = ranked[:FOREMOST]
    if sum(each.fact.id not in shown for each in foremost) > LACKING * len(foremost):
        return True
    stands = [each for each in ranked if each.fact.id in shown]
    others = any(each.fact.category not in sure for each in stands)
    least = min((each.score for each in stands if each.fact.category in sure), default=0.0) + CLEARLY
    new = {id for each in afresh for id, _ in each.lines}
    return any(
        each.fact.category in sure and each.fact.id in new and (others or each.score >= least)
        for each in wanted
    )


def _afresh(ranked: Sequence[Ranked], room: Room, settings: Settings) -> tuple[Laid, ...]:
    whole = _block(ranked, room, room.tokens, settings)
    if len(whole.ids) < len(ranked):
        some = _block(ranked, room, int(room.tokens * FIRST), settings)
        sure = {each.fact.id for each in ranked if each.fact.category in settings.guaranteed}
        whole = some if sure.intersection(whole.ids) <= set(some.ids) else whole
    return (_laid(whole, ranked, room.position),) if whole.ids else ()


def _block(
    ranked: Sequence[Ranked], room: Room, tokens: int, settings: Settings, *, about: str | None = None
) -> Block:
    given = {} if about is None else {"about": about}
    return block_of(
        [each.fact for each in ranked], counter=room.counter, max_tokens=max(0, tokens),
        guaranteed=settings.guaranteed, share=settings.guaranteed_share, cost=room.cost, **given,
    )  # fmt: skip


def _laid(block: Block, ranked: Sequence[Ranked], position: int) -> Laid:
    lines = {each.fact.id: line_of(each.fact) for each in ranked}
    return Laid(position, block.text, block.tokens, tuple((id, lines[id]) for id in block.ids))
