"""The words worlds are made of: much that does not matter around little that does, from one seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagein.evaluation.requests import Wire


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS = _words(
    "ledger harbour kettle lantern ferry orchard meadow cellar bridge garden window parcel copper velvet anchor basket "
    "candle feather glacier hammer island jacket kernel ladder marble needle oven paddle quarry ribbon saddle timber "
    "valley wagon yarn beacon canyon desert ember forest gravel hollow ivory jigsaw kelp lagoon"
)
VERBS = _words(
    "reviewed postponed measured repaired counted described moved replaced compared delivered painted closed"
)
PEOPLE = _words(
    "Mara Ilse Jonas Petra Anders Livia Tomas Greta Oskar Selma Viktor Nadia Hugo Edda Ruben Clara Emil Tove"
)
FAMILIES = _words(
    "Quill Sandoval Brandt Okafor Lindqvist Marchetti Novak Ferreira Castellan Hoyer Ibsen Pryce Adeyemi Kowal"
)
LEVELS = ("INFO", "DEBUG", "INFO", "WARN")


@dataclass(slots=True)
class Writer:
    """Writes by chance, and never gives the same name twice."""

    chance: random.Random
    _taken: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, world: str, length: int, seed: int) -> Writer:
        """The writer of one world; equal arguments write the same."""
        return cls(random.Random(f"{world} {length} {seed}"))  # noqa: S311 - nothing is kept secret by it

    def fresh(self, pattern: str) -> str:
        """A new name: ``9`` becomes a digit, ``A`` a letter, ``*`` a noun, the rest stays."""
        while True:
            made = "".join(self._letter(each) for each in pattern)
            if made not in self._taken:
                self._taken.add(made)
                return made

    def _letter(self, each: str) -> str:
        match each:
            case "9":
                return str(self.chance.randint(1, 9))
            case "A":
                return self.chance.choice("BCDFGHKLMNPRSTVW")
            case "*":
                return self.chance.choice(NOUNS)
            case _:
                return each

    def person(self) -> str:
        """A new person's first and last name; a middle initial where names run out."""
        for middle in ("", *(f" {each}." for each in "ABCDEFGHJKLMNOPRSTUVW")):
            for _ in range(8):
                name = f"{self.chance.choice(PEOPLE)}{middle} {self.chance.choice(FAMILIES)}"
                if name not in self._taken:
                    self._taken.add(name)
                    return name
        raise ValueError("no names are left")

    def sentence(self) -> str:
        """A sentence about nothing."""
        pick = self.chance.choice
        kind = self.chance.randrange(4)
        if kind == 0:
            return f"{pick(PEOPLE)} {pick(VERBS)} the {pick(NOUNS)} beside the {pick(NOUNS)} and left a note."
        if kind == 1:
            return f"Item {self.number()} ({pick(NOUNS)}, {pick(NOUNS)}) was {pick(VERBS)} on the {self.chance.randint(2, 28)}th."
        if kind == 2:
            return (
                f"See {pick(NOUNS)}/{pick(NOUNS)}_{pick(NOUNS)}.txt for the {pick(NOUNS)}, reference {self.number()}."
            )
        return f"The {pick(NOUNS)} of the {pick(NOUNS)} was {pick(VERBS)} again, which nobody had asked for."

    def log_line(self) -> str:
        """A line of a log about nothing."""
        pick = self.chance.choice
        at = f"{self.chance.randrange(24):02}:{self.chance.randrange(60):02}:{self.chance.randrange(60):02}"
        where = f"{pick(NOUNS)}.{pick(NOUNS)}_{pick(NOUNS)}"
        return f"{at} {pick(LEVELS)} {where}: {pick(VERBS)} {pick(NOUNS)} in {self.number()} us, id={self.number()}"

    def number(self) -> int:
        """A number of four to six digits."""
        return self.chance.randint(1_000, 300_000)

    def around(self, lines: Sequence[str], least: int, most: int, *, log: bool = False) -> list[str]:
        """The lines in their order, at chance places among so many that do not matter."""
        write = self.log_line if log else self.sentence
        made = [write() for _ in range(self.chance.randint(least, most))]
        places = sorted((self.chance.randint(0, len(made)) for _ in lines), reverse=True)
        for place, line in zip(places, reversed(lines), strict=True):
            made.insert(place, line)
        return made


@dataclass(slots=True)
class Score:
    """The score of an agent in a world."""

    success: bool = False
    dead_ends: int = 0
    """Attempts that had failed before in the same way."""
    drift: int = 0
    """Actions against the task statement."""
    again: int = 0
    """Look-ups that had been answered before."""


def opening(system: str, task: str) -> tuple[Wire, ...]:
    """The first messages of a run."""
    return {"role": "system", "content": system}, {"role": "user", "content": task}
