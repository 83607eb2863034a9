"""Random runs with a canary in each text, of which some are erased; and the search for them in all that is left."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import re
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagein.backends.open import open_store
from pagein.context.compaction.registry import POLICIES, policy_named
from pagein.errors import OverBudget
from pagein.events.steps import ActionStep, Image, Observation, Opaque, PlanningStep, Step, TaskStep, Text, ToolCall
from pagein.facts.owners import RESERVED
from pagein.log.branch_log import REGISTRY
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.export import export_session
from pagein.testing.promises import FORMATS
from pagein.testing.scripted_writer import ScriptedModel

STORES = ("file", "encrypted", "server")
"""Where a run is kept. ``server`` is the PostgreSQL that PAGEIN_POSTGRES names; a file where there is none."""

_WORDS = tuple(
    re.findall(r"\w+", "look fix test retry config return door blue paper north read send plan item under heavy seven")
)
_SCRIPTS = (
    "abcdefghjkmnpqrstuvwxyz",
    "абвгдежзиклмнопрст",
    "äöüßéèñçøåæœłđ",
    "的一是在不了有和人这中大为上个国我以要他",
)
_KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
_MIN_PIECE = 6
"""Characters of a piece of a canary that must not be found either."""


@dataclass(frozen=True, slots=True)
class ErasedRun:
    """A random run of a policy in a store, all of it derived from the seed."""

    seed: int
    way: str
    """The policy."""
    format: str
    """The store."""

    @classmethod
    def from_seed(cls, seed: int, policies: tuple[str, ...] = tuple(POLICIES)) -> ErasedRun:
        """Make the run of a seed."""
        return cls(seed, policies[seed % len(policies)], STORES[seed // len(policies) % len(STORES)])


@dataclass(slots=True)
class Player:
    """A run that is being played: its memory, the canaries by branch and position, and those that were erased."""

    run: ErasedRun
    path: Path
    draw: random.Random
    planted: dict[tuple[str, int], tuple[set[str], tuple[Step, ...]]] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    calls: int = 0
    memory: AgentMemory = field(init=False)

    def __post_init__(self) -> None:
        self.memory = self.open()

    @property
    def url(self) -> str:
        """The address of the store."""
        server = os.environ.get("PAGEIN_POSTGRES", "") if self.run.format == "server" else ""
        return server or str(self.path)

    @property
    def store_options(self) -> dict[str, Any]:
        """The tenant, and the key of an encrypted store."""
        return {"tenant": f"fuzz{self.run.seed}"} | ({"key": _KEY} if self.run.format == "encrypted" else {})

    def open(self) -> AgentMemory:
        """Open the run; in a third of the runs a model writes summaries."""
        model = ScriptedModel() if self.run.seed % 3 == 0 else None
        budget = (700, 1_100, 2_500)[self.run.seed % 7 % 3]
        return AgentMemory.open(
            self.url,
            budget=budget,
            policy=policy_named(self.run.way),
            user="ann",
            summarizer=model,
            spend=None,
            **self.store_options,
        )

    # Canaries

    def canary(self) -> str:
        """A word that no other text has: a name, a path, a number, an address, in several scripts, long or short."""
        letters = self.draw.choice((_SCRIPTS[0], _SCRIPTS[0], *_SCRIPTS))
        word = "".join(self.draw.choices(letters, k=self.draw.choice((12, 16, 30, 300))))
        made: str = self.draw.choice(
            (
                word,
                word.capitalize(),
                f"src/{word}.py",
                f"{word}_{self.draw.randrange(10**6)}",
                f"{word}@example.com",
                f"{word[:9]}-{word[9:]}x",
                "".join(self.draw.choices("0123456789", k=12)),
            )
        )
        return made

    def text(self, lines: int = 1) -> tuple[set[str], str]:
        """Some lines, of which one has a canary, or is one: a sentence that nobody else says."""
        others = [" ".join(self.draw.choices(_WORDS, k=6)) for _ in range(lines - 1)]
        if self.draw.random() < 0.2:
            sentence = " ".join(self.draw.choices(_WORDS, k=12))
            others.insert(self.draw.randrange(lines), sentence)
            return {sentence}, "\n".join(others)
        word = self.canary()
        frame = self.draw.choice(("{} is the door", "I decided on {} now", "error: {} failed", "x = {}", "{}"))
        others.insert(self.draw.randrange(lines), frame.format(word))
        return {word}, "\n".join(others)

    def keep(self, position: int, words: Iterable[str]) -> None:
        """Note what was planted at a position of the current branch."""
        self.planted[self.branch, position] = set(words), self.memory.expand(position).steps

    @property
    def branch(self) -> str:
        """The current branch."""
        return next(branch.name for branch in self.memory.branches() if branch.is_current)

    # Moves

    def say(self) -> None:
        """The user speaks; now and then a rule or a fact."""
        words, text = self.text(self.draw.choice((1, 1, 3, 40)))
        word = next(iter(words))
        frames = (text, text, f"Never write to {word}.", f"My favourite editor is {word}.", f"We use {word} for tests.")
        self.keep(self.memory.record(TaskStep(self.draw.choice(frames))).last - 1, words)

    def plan(self) -> None:
        """The model plans."""
        words, text = self.text(3)
        self.keep(self.memory.record(PlanningStep(text)).last - 1, words)

    def act(self) -> None:
        """The model calls tools, and results come with metadata, images and provider content."""
        said_words, said = self.text(self.draw.choice((1, 2)))
        call_words, call = self._call()
        result_words, result = self.text(self.draw.choice((1, 3, 60, 400)))
        content: Any = said
        if self.draw.random() < 0.2:
            hidden = self.canary()
            said_words.add(hidden)
            content = (Opaque("anthropic", "thinking", json.dumps({"t": hidden}), hidden), Text(said))
        at = self.memory.record(ActionStep(content, (call,))).last - 1
        observation: Any = result
        if self.draw.random() < 0.15:
            data, address = self.canary(), f"https://example.com/{self.canary()}.png"
            result_words |= {data, address.rpartition("/")[2]}
            picture = b"\x89PNG\r\n\x1a\n" + data.encode() * self.draw.choice((1, 200))
            observation = (Text(result), Image(picture, "image/png"), Image(url=address))
        metadata: dict[str, Any] = {}
        if self.draw.random() < 0.2:
            beside = self.canary()
            result_words.add(beside)
            metadata = {beside: 1} if self.draw.random() < 0.5 else {"of": beside}
        self.memory.record(Observation.of(call.id, observation, self.draw.choice(("ok", "ok", "error")), **metadata))
        self.keep(at, said_words | call_words | result_words)

    def _call(self) -> tuple[set[str], ToolCall]:
        self.calls += 1
        value, key = self.canary(), self.canary()
        arguments: Any = self.draw.choice(
            (
                {"path": value},
                {key: value},
                {"path": {key: [1, value]}},
                {"content": f"{value}\n" + "blue door\n" * 80},
                {"a": value, key: "paper " * 60},
            )
        )
        text = json.dumps(arguments, ensure_ascii=self.draw.random() < 0.5)
        return {value, key}, ToolCall(f"c{self.calls}", "read", text if self.draw.random() < 0.9 else f"{text}, {key}")

    def look(self) -> None:
        """Build a request."""
        with contextlib.suppress(OverBudget):
            self.memory.to_messages(self.draw.choice(FORMATS))

    def compact(self) -> None:
        """Compact now, and wait for the summary."""
        with contextlib.suppress(OverBudget):
            self.memory.compact(wait=True)

    def mark(self) -> None:
        """Make a checkpoint, and wait for facts and summaries."""
        self.memory.checkpoint(f"mark {self.calls}")
        self.memory.wait()

    def search(self) -> None:
        """The model recalls or expands, and the result is recorded by the host."""
        self.calls += 1
        if self.draw.random() < 0.5:
            name, arguments = "recall", {"query": " ".join(self.draw.choices(_WORDS, k=2))}
        else:
            name, arguments = "expand", {"handle": f"s{self.draw.randrange(self.head() + 1)}"}
        given = json.dumps(arguments)
        result = self.memory.call_tool(name, given)
        call = ToolCall(f"c{self.calls}", name, given)
        self.memory.record(ActionStep(None, (call,)), Observation(call.id, result))

    def pin(self) -> None:
        """Confirm something of the ledger."""
        if entries := self.memory.ledger():
            with contextlib.suppress(OverBudget):  # a pin with which no view fits is refused
                self.memory.pin(self.draw.choice(entries).handle)

    def fork(self) -> None:
        """Go back to an earlier position, on a new branch."""
        if len(self.memory.branches()) < 3:
            self.memory.rewind(self.draw.randrange(self.head() + 1))

    def switch(self) -> None:
        """Go on with another branch."""
        self.memory.switch(self.draw.choice(self.memory.branches()).name)

    def reopen(self) -> None:
        """Close and open; the snapshot is written and read."""
        self.memory.close()
        self.memory = self.open()

    def head(self) -> int:
        """The number of entries on the current branch."""
        return next(branch.head for branch in self.memory.branches() if branch.is_current)

    def erase(self) -> None:
        """Erase a step or two of the current branch."""
        mine = [place for place in self.planted if place[0] == self.branch]
        places = self.draw.sample(mine, min(len(mine), self.draw.choice((1, 1, 2))))
        if not places:
            return
        for place in places:
            self.erased |= self.planted.pop(place)[0]
        erasure = self.memory.erase(*(at for _, at in places))
        assert erasure.scrubbed, "another connection was in the way, and there is none"

    # The search

    def check(self) -> None:
        """Raise AssertionError where an erased canary is in anything that is left, or where more than it is gone."""
        here = self.branch
        # A piece of six letters may stand in a long canary that stays.
        planted = "\n".join(word for words, _ in self.planted.values() for word in words).casefold()
        sought = [(word, needle) for word in self.erased for needle in needles(word) if needle not in planted]
        for name, text in self._everything():
            folded = text.casefold()
            for word, needle in sought:
                assert needle not in folded, f"{needle[:40]!r} of an erased {word[:60]!r} is in {name}"
        self.memory.switch(here)
        for (branch, position), (_, steps) in self.planted.items():
            if branch == here:
                assert self.memory.expand(position).steps == steps, f"s{position} changed, and was not erased"

    def _everything(self) -> Iterator[tuple[str, str]]:
        """All that is left, as texts by name."""
        memory = self.memory
        for branch in memory.branches():
            memory.switch(branch.name)
            assert memory.verify().ok, f"branch {branch.name} is broken"
            for form in FORMATS:
                with contextlib.suppress(OverBudget):
                    yield f"{form} request", str(memory.to_request(form))
            yield "steps", json.dumps(memory.get_full_steps(), ensure_ascii=False)
            yield "ledger", str(memory.ledger())
            yield "status", str(memory.status())
            for word in sorted(self.erased)[:6]:
                for hit in memory.recall(word[:40]):
                    yield "recall", hit.text
        yield "facts", str(list(memory.facts.list())) if memory.has_facts else ""
        yield from self._stored()

    def _stored(self) -> Iterator[tuple[str, str]]:
        with contextlib.closing(open_store(self.url, **self.store_options)) as store:
            for session in store.sessions():
                with contextlib.closing(store.log(session)) as log:
                    for row in log.rows():
                        yield f"row {row.position} ({row.kind}) of {session}", _spelled(row.body)
                    for entry in log.read():
                        yield f"entry {entry.position} of {session}", str(entry.body)
                    if slot := log.snapshot_slot().snapshot:
                        yield f"snapshot of {session}", _spelled(slot.body)
                    if not session.startswith((RESERVED, REGISTRY)):
                        export = self.path.with_suffix(".jsonl")
                        export_session(log, export)
                        yield f"export of {session}", _spelled(export.read_bytes())
                        export.unlink()
        if self.url == str(self.path):
            for file in self.path.parent.glob(f"{self.path.name}*"):
                yield f"bytes of {file.name}", file.read_bytes().decode("utf-8", "ignore")
            yield from _tables(self.path)

    MOVES = ("say", "say", "plan", *("act",) * 6, *("look",) * 4, "compact", "mark", "search", "pin", "reopen")


def needles(word: str) -> Iterator[str]:
    """What is looked for: the canary, as JSON escapes it too, and for one word its beginning and its end."""
    folded = word.casefold()
    yield folded
    yield json.dumps(word)[1:-1].casefold()
    if " " in word:
        words = folded.split()
        yield " ".join(words[:7])
        yield " ".join(words[-7:])
    elif folded.isalpha() and len(folded) > 2 * _MIN_PIECE:
        size = max(_MIN_PIECE, min(12, len(folded) // 3))
        yield folded[:size]
        yield folded[-size:]


def _spelled(body: bytes) -> str:
    """A stored body, inflated where it is deflated, with images' bytes."""
    with contextlib.suppress(zlib.error):
        body = zlib.decompress(body)
    text = body.decode("utf-8", "ignore")
    return text + "".join(_unpacked(text))


def _unpacked(text: str) -> Iterator[str]:
    """The texts that stand in base64 in JSON, such as an image's bytes and the blobs of an export."""
    for line in text.splitlines():
        value: Any = ""
        with contextlib.suppress(ValueError):
            value = json.loads(line) if line.startswith("{") else ""
        for encoded in _strings(value):
            if len(encoded) >= 16:
                with contextlib.suppress(ValueError):
                    raw = base64.b64decode(encoded, validate=True)
                    with contextlib.suppress(zlib.error):
                        raw = zlib.decompress(raw)
                    yield raw.decode("utf-8", "ignore")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(item)


def _tables(path: Path) -> Iterator[tuple[str, str]]:
    """Every value in every table of a file, inflated."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'").fetchall():
            for row in database.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 - the file's own names
                for value in row:
                    if isinstance(value, str | bytes):
                        raw = value.encode("utf-8", "ignore") if isinstance(value, str) else value
                        yield f"table {table}", _spelled(raw)


def play_erased_run(run: ErasedRun) -> None:
    """Play a run, erase some of it twice, and search what is left. Raises AssertionError."""
    with tempfile.TemporaryDirectory() as folder:
        player = Player(run, Path(folder) / "run.db", random.Random(run.seed))
        moves: list[str] = [*Player.MOVES, *(("fork", "switch") if run.seed % 2 else ())]
        player.say()
        try:
            for number in range(player.draw.choice((12, 24, 40))):
                move: Callable[[], None] = getattr(player, player.draw.choice(moves))
                move()
                if number % 11 == 10:
                    player.erase()
            player.look()
            player.erase()
            player.check()
        finally:
            player.memory.close()
