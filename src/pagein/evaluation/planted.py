"""Planted statements: rules, limits, decisions, goals, promises, preferences and values said in a made-up talk.

``plant`` draws items, ``build_session`` buries them in small talk, ``count_survivors`` says which of them stand in a
request. The wording is drawn from sentences as people of many trades write them; nothing of it is read by the recogniser.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from importlib import resources
from typing import Any

PLANTS_PER_SET = 20
ALONE_SHARE = 0.5
"""Share of the plants that are a message of their own; the others stand inside a longer one."""

ASSISTANT_SHARE = 0.5
"""Share of decisions that have a form for the assistant and are said by it."""


@dataclass(frozen=True, slots=True)
class PlantedItem:
    """A statement to plant: the sentences in the order they are said, and what must and must not stand in a request."""

    kind: str
    domain: str
    sentences: tuple[str, ...]
    """The first form, then its revisions."""
    speaker: str
    keys: tuple[str, ...]
    """Texts that must stand in a request; ``a|b`` for one or the other. The case of letters does not matter."""
    old_keys: tuple[str, ...]
    """Texts of the old forms, of which none may stand in a request as an old form."""
    is_safety: bool

    def survives(self, request: str) -> bool:
        """True where every key stands in one line of the request."""
        lines = request.lower().splitlines()
        return any(all(any(form in line for form in key.lower().split("|")) for key in self.keys) for line in lines)

    def is_stale(self, request: str) -> bool:
        """True where an old form stands in the request: its value, with half of the words that it was said with."""
        lines = request.lower().splitlines()
        keys = [key.lower() for key in self.old_keys]
        forms = [(key, old) for old in map(str.lower, self.sentences[:-1]) for key in keys if key in old]
        return any(_repeats(line, key, old) for key, old in forms for line in lines)


@dataclass(frozen=True, slots=True)
class PlantedSession:
    """A talk with planted items: OpenAI-style messages, and by item the positions of the messages that say it."""

    items: tuple[PlantedItem, ...]
    messages: tuple[Mapping[str, Any], ...]
    positions: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class PlantedCounts:
    """The items of a session in one request: counts of all, survivors, safety rules, surviving ones, stale ones."""

    items: int = 0
    survivors: int = 0
    safety: int = 0
    safety_survivors: int = 0
    revised: int = 0
    stale: int = 0

    def __add__(self, other: PlantedCounts) -> PlantedCounts:
        return PlantedCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def count_survivors(session: PlantedSession, request: str) -> PlantedCounts:
    """Count the items that stand in a request, and the old forms that still do."""
    items = session.items
    return PlantedCounts(
        len(items),
        sum(item.survives(request) for item in items),
        sum(item.is_safety for item in items),
        sum(item.is_safety and item.survives(request) for item in items),
        sum(bool(item.old_keys) for item in items),
        sum(item.is_stale(request) for item in items),
    )


@dataclass(frozen=True, slots=True)
class _Scene:
    """Sentences for one thing: ``{v}`` is the value, ``{w}`` its new one; ``keys`` of the first form and the revised one."""

    kind: str
    domain: str
    forms: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[str, ...] = ("",)
    revisions: tuple[str, ...] = ()
    new_keys: tuple[str, ...] = ("{w}",)
    old_keys: tuple[str, ...] = ("{v}",)
    is_safety: bool = False
    by_assistant: tuple[str, ...] = ()


@cache
def _material() -> Mapping[str, Sequence[Any]]:
    """The scenes, the small talk of both speakers, and what leads over to a planted sentence."""
    text = resources.files("pagein.evaluation").joinpath("recorded", "planted.json").read_text("utf-8")
    material = json.loads(text)
    for row in material["scenes"]:
        row.update((name, tuple(value)) for name, value in row.items() if isinstance(value, list))
    return {**material, "scenes": tuple(_Scene(**row) for row in material["scenes"])}


def plant(seed: int) -> tuple[PlantedItem, ...]:
    """Draw items of all kinds, of which about a third are revised later, some twice."""
    chance = random.Random(f"planted:{seed}")  # noqa: S311 - a drawing, no secret
    every, scenes = _material()["scenes"], list[_Scene]()
    while len(scenes) < PLANTS_PER_SET:
        scenes += chance.sample(every, min(len(every), PLANTS_PER_SET - len(scenes)))
    return tuple(_item(scene, chance) for scene in scenes)


def _repeats(line: str, key: str, sentence: str) -> bool:
    words = {word for word in re.findall(r"[\w.]+", sentence) if len(word) > 3}
    here = set(re.findall(r"[\w.]+", line))
    return bool(re.search(rf"(?<![\w.,]){re.escape(key)}(?!\w)", line)) and 2 * len(words & here) >= len(words)


def _item(scene: _Scene, chance: random.Random) -> PlantedItem:
    values = chance.sample(scene.values, len(scene.values))
    by_assistant = bool(scene.by_assistant) and chance.random() < ASSISTANT_SHARE
    form = chance.choice(scene.by_assistant if by_assistant else scene.forms)
    sentences, old_keys, keys = [_fill(form, values[0], "")], [], [_fill(key, values[0], "") for key in scene.keys]
    if scene.revisions and chance.random() < 0.6:
        times = 2 if len(values) > 2 and chance.random() < 0.2 else 1
        forms = chance.sample(scene.revisions, min(times, len(scene.revisions)))
        for number, revision in enumerate(forms):
            old, new = values[number], values[number + 1] if len(values) > number + 1 else ""
            sentences.append(_fill(revision, old, new))
            old_keys += [_fill(key, old, new) for key in scene.old_keys]
            keys = [_fill(key, old, new) for key in scene.new_keys]
        old_keys = [key for key in old_keys if key.lower() not in sentences[-1].lower()]
    return PlantedItem(
        scene.kind, scene.domain, tuple(sentences), "assistant" if by_assistant else "user", tuple(keys),
        tuple(old_keys), scene.is_safety and len(sentences) == 1,
    )  # fmt: skip


def _fill(text: str, old: str, new: str) -> str:
    text = text.replace("{v}", old).replace("{w}", new)
    return text[0].upper() + text[1:] if old and text.startswith(old) else text


def build_session(seed: int, turns: int = 24) -> PlantedSession:
    """Build a talk of at least ``turns`` turns of the user, each with an answer, that says the items in random order.

    Half of the statements stand inside a longer message.
    """
    items, talk, answers = plant(seed), _material()["user_talk"], _material()["assistant_talk"]
    chance = random.Random(f"session:{seed}")  # noqa: S311 - a drawing, no secret
    said = _order(items, chance)
    turns = max(turns, len(said))
    slots = sorted(chance.sample(range(turns), len(said)))
    by_turn = dict(zip(slots, said, strict=True))
    messages: list[Mapping[str, Any]] = []
    positions: list[list[int]] = [[] for _ in items]
    for turn in range(turns):
        number, sentence = by_turn.get(turn, (-1, ""))
        is_answer = number >= 0 and items[number].speaker == "assistant" and not positions[number]
        if number >= 0:
            positions[number].append(len(messages) + is_answer)
        messages.extend(
            (
                {"role": "user", "content": _message("" if is_answer else sentence, talk, chance)},
                {"role": "assistant", "content": _message(sentence if is_answer else "", answers, chance)},
            )
        )
    return PlantedSession(items, tuple(messages), tuple(map(tuple, positions)))


def _order(items: Iterable[PlantedItem], chance: random.Random) -> list[tuple[int, str]]:
    """Return the sentences of all items in random order, the revisions behind what they revise, not right behind it."""
    places: list[tuple[float, int, str]] = []
    for number, item in enumerate(items):
        times = sorted(chance.random() for _ in item.sentences)
        places += [(time, number, sentence) for time, sentence in zip(times, item.sentences, strict=True)]
    return [(number, sentence) for _, number, sentence in sorted(places)]


def _message(sentence: str, talk: Sequence[str], chance: random.Random) -> str:
    if sentence and chance.random() < ALONE_SHARE:
        return sentence
    parts = [chance.choice(talk) for _ in range(chance.choice((1, 1, 2, 2, 3)))]
    if sentence:
        bridge = chance.choice(_material()["bridges"])
        ending = "" if sentence[-1] in ".!?" else "."
        parts.insert(chance.randint(0, len(parts)), f"{bridge}{sentence}{ending}")
    return " ".join(parts)
