"""Hypothesis strategies and samples of everything that a log may hold, with texts that break stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from pagein.events import entries
from pagein.events.steps import (
    ActionStep,
    FinalAnswerStep,
    Image,
    Observation,
    Opaque,
    PlanningStep,
    SummaryStep,
    SystemPromptStep,
    TaskStep,
    Text,
    ToolCall,
    Usage,
)

HAZARDS: tuple[str, ...] = (
    "",
    " ",
    "\0",
    "a\0b",
    "\n\r\n\t",
    "e\u0301",  # a combining mark, which NFC would join
    "\u00e9",
    "\u2028\u2029",
    "\ufeffbom",
    "\ufffe\uffff",
    "\ufffed83d",  # looks like an escape of the codec
    "\ud83d",  # a lone surrogate, as a cut JSON string leaves it
    "\ud83d\ude00",  # two surrogates, which are not the emoji
    "\U0001f600",
    "\\ud83d\\u0000",
    '{"packed":["s2:00"],"body":{"content":""}}',
    '"quoted" \\ / </script>',
    "'; DROP TABLE entries; --",
    "\x7f\x80\x9f\u200f\u202e",
    "x" * 40_000,
    "\u20ac" * 20_000,
    "\ud800" + "y" * 40_000,
)
"""Texts that some store has changed."""

PICTURE = bytes(range(256)) * 200
EXTRA = Opaque("anthropic", "cache_control", '{"type": "ephemeral"}', "seen")

ONE_OF_EACH: tuple[entries.Body, ...] = (
    SystemPromptStep("Answer briefly.", EXTRA),
    TaskStep((Text("What is this?", EXTRA), Image(PICTURE, "image/png", detail="low", extra=EXTRA))),
    TaskStep((Image(url="https://example.com/a.png"), Image(b"\x89PNG", "image/png")), EXTRA),
    PlanningStep("1. Look.", EXTRA),
    ActionStep(
        (Opaque("anthropic", "thinking", '{"signature": "x"}', "Hm."), Text("I look.")),
        (ToolCall("c1", "read", '{"path": "a', 2, EXTRA), ToolCall("c2", "list"), ToolCall("", "list")),
        (Observation("c1", (Text("no such file"),), "error", 0, EXTRA), None),
        "some-model",
        Usage(1200, 30, 1000),
        EXTRA,
    ),
    ActionStep(),
    ActionStep(""),
    ActionStep(()),
    entries.Observed(4, 1, Observation("c2", "a.py\nb.py", "unknown", 1, EXTRA), late=True),
    SummaryStep("Looked at two files.", "some-model"),
    entries.Compaction(
        (
            entries.Replacement(1, 4, (), "They asked.", "some-model", '{"objective": "asked"}'),
            entries.Replacement(
                4,
                5,
                (entries.Stub("observation", 1, "[a.py ...]", "mask"), entries.Stub("thinking", 0, "", "reasoning")),
            ),
        ),
        "tiers",
        "over the high mark",
        9000,
        4000,
        (entries.RetentionScore("path", 3, 2, 3),),
    ),
    entries.Pin("Never touch production.", "model"),
    entries.Unpin(11),
    entries.Checkpoint("tests pass", '{"done": ["a"]}'),
    entries.Undo(10),
    entries.FactStated(
        "Prefers tabs.",
        "preference",
        0.9,
        "user",
        "alice",
        1.5,
        2e9,
        (entries.Source("web", "s1"),),
        (3,),
        (2,),
        "rules",
        "said",
    ),
    entries.FactRemoved(18, "moved on", "user"),
    entries.FactConfirmed(18, 0.95, (entries.Source("web", "s4"),), "some-model", "said again"),
    entries.FactsUsed((18, 3)),
    entries.FactsExtracted("web", 16, "some-model"),
    entries.FactsShown("- Prefers tabs."),
    entries.Erased(((3, 5),), "asked for", 2),
    FinalAnswerStep("A cat.", EXTRA),
    entries.Mark(3, "low"),
)
"""Every kind of body, with every field set at least once."""


def bodies() -> st.SearchStrategy[entries.Body]:
    """Draw every kind of body; a list of them need not be a legal run."""
    return _values(entries.Body)


def texts() -> st.SearchStrategy[str]:
    """Draw any text of up to 40 characters, lone surrogates included, or one of the hazards."""
    return st.text(st.characters(), max_size=40) | st.sampled_from(HAZARDS)


def _values(kind: Any) -> st.SearchStrategy[Any]:
    """Draw values of a type: of a dataclass by the types of its fields, of a tuple up to three elements."""
    if kind in _OF_TYPE:
        return _OF_TYPE[kind]()
    parts = get_args(kind)
    match get_origin(kind):
        case origin if origin is Literal:
            return st.sampled_from(parts)
        case origin if origin in (Union, UnionType):
            return st.one_of(*map(_values, parts))
        case origin if origin is tuple and parts[-1] is Ellipsis:
            return st.lists(_values(parts[0]), max_size=3).map(tuple)
        case origin if origin is tuple:
            return st.tuples(*map(_values, parts))
        case _:
            return _objects(kind)


def _objects(kind: type[Any], **own: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw objects of a dataclass: each field as ``own`` says, or by its type."""
    types = get_type_hints(kind)
    names = (field.name for field in fields(kind) if field.name not in own)
    return st.builds(kind, **own, **{name: _values(types[name]) for name in names})


def _opaques() -> st.SearchStrategy[Opaque]:
    written = st.dictionaries(st.text(max_size=5), st.text(max_size=10), max_size=3).map(json.dumps)
    return _objects(Opaque, provider=st.sampled_from(("openai", "anthropic")), body=written)


def _images() -> st.SearchStrategy[Image]:
    """Draw images by their bytes, small and large, and by URL."""
    data = st.binary(min_size=1, max_size=2_000) | st.binary(min_size=1, max_size=64).map(lambda seed: seed * 300)
    media = st.sampled_from(("image/png", "image/jpeg", ""))
    urls = st.text(min_size=1, max_size=20).map("https://example.com/".__add__)
    return _objects(Image, data=data, media_type=media, url=st.just("")) | _objects(Image, data=st.just(b""), url=urls)


def _tool_calls() -> st.SearchStrategy[ToolCall]:
    """Draw calls with arguments that are JSON or not."""
    arguments = st.sampled_from(("", "{}", '{"path": "a.py"}', '{"path": "a', "[1,", "\ud83d")) | texts()
    return _objects(ToolCall, arguments=arguments)


@st.composite
def _actions(draw: st.DrawFn) -> ActionStep:
    """Draw actions with none, some or all of their calls answered."""
    count = draw(st.integers(0, 4))
    calls = tuple(draw(st.lists(_tool_calls(), min_size=count, max_size=count)))
    observations = draw(st.lists(_values(Observation | None), max_size=len(calls)).map(tuple))
    step: ActionStep = draw(_objects(ActionStep, tool_calls=st.just(calls), observations=st.just(observations)))
    return step


_OF_TYPE: Mapping[Any, Callable[[], st.SearchStrategy[Any]]] = {
    str: texts,
    int: lambda: st.integers(0, 2**40),
    float: lambda: st.floats(0, 4e9),
    bool: st.booleans,
    NoneType: st.none,
    Opaque: _opaques,
    Image: _images,
    ToolCall: _tool_calls,
    ActionStep: _actions,
    entries.Checkpoint: lambda: _objects(entries.Checkpoint, state=st.sampled_from(("{}", '{"done": ["a"]}'))),
}
"""The strategies of the types that are not drawn by their fields alone."""


def bodies_with_text_everywhere(text: str) -> list[entries.Body]:
    """Return a body of each kind that takes a text, with it in every field that does, and content also as parts."""
    kinds = (kind for kind in get_args(entries.Body) if _fill(kind, "a") != _fill(kind, "b"))
    extra = Opaque(text, text, text, text)
    parts = (Text(text, extra), extra, Image(b"\1", text, "", text, extra), Image(url=text))
    return [*(_fill(kind, text) for kind in kinds), TaskStep(parts), ActionStep(parts)]


def _fill(kind: Any, text: str) -> Any:
    """Return a value of a type, with the text wherever it takes one; a tuple has one element."""
    parts = get_args(kind)
    if kind is str or str in parts:
        return text
    if parts and get_origin(kind) is tuple:
        return tuple(_fill(part, text) for part in parts if part is not Ellipsis)
    if parts:
        return parts[0] if get_origin(kind) is Literal else _fill(parts[0], text)
    if kind in (int, float, bool):
        return kind()
    types = get_type_hints(kind)
    values = {field.name: _fill(types[field.name], text) for field in fields(kind)}
    return kind(**values | ({"last": 1} if kind is entries.Replacement else {}))  # it replaces an entry at least
