"""Hypothesis strategies and samples of everything that a log may hold, with texts that break stores."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from pagein.events import entries
from pagein.events.steps import (
    ActionStep,
    Content,
    FinalAnswerStep,
    Image,
    Observation,
    Opaque,
    Part,
    PlanningStep,
    Step,
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

_NUMBERS = st.integers(0, 2**40)


def texts(*, max_size: int = 40) -> st.SearchStrategy[str]:
    """Draw any text of up to ``max_size`` characters, lone surrogates included, or one of the hazards."""
    return st.text(st.characters(), max_size=max_size) | st.sampled_from(HAZARDS)


def opaques() -> st.SearchStrategy[Opaque]:
    """Draw opaque provider content with a JSON body."""
    bodies = st.dictionaries(st.text(max_size=5), st.text(max_size=10), max_size=3).map(json.dumps)
    return st.builds(Opaque, provider=st.sampled_from(("openai", "anthropic")), kind=texts(), body=bodies, text=texts())


def _extras() -> st.SearchStrategy[Opaque | None]:
    return st.none() | opaques()


def images() -> st.SearchStrategy[Image]:
    """Draw images by their bytes, small and large, and by URL."""
    data = st.binary(min_size=1, max_size=2_000) | st.binary(min_size=1, max_size=64).map(lambda seed: seed * 300)
    media = st.sampled_from(("image/png", "image/jpeg", ""))
    return st.builds(Image, data=data, media_type=media, extra=_extras()) | st.builds(
        Image,
        url=st.text(min_size=1, max_size=20).map("https://example.com/".__add__),
        detail=st.sampled_from(("", "low")),
    )


def parts() -> st.SearchStrategy[Part]:
    """Draw text, images and opaque parts."""
    return st.builds(Text, text=texts(), extra=_extras()) | images() | opaques()


def contents() -> st.SearchStrategy[Content]:
    """Draw plain text, or up to three parts."""
    return texts() | st.lists(parts(), max_size=3).map(tuple)


def tool_calls() -> st.SearchStrategy[ToolCall]:
    """Draw calls with arguments that are JSON or not."""
    arguments = st.sampled_from(("", "{}", '{"path": "a.py"}', '{"path": "a', "[1,", "\ud83d")) | texts()
    return st.builds(
        ToolCall, id=texts(max_size=8), name=texts(max_size=8), arguments=arguments, at=st.none() | st.integers(0, 9),
        extra=_extras(),
    )  # fmt: skip


def observations() -> st.SearchStrategy[Observation]:
    """Draw results of every status."""
    return st.builds(
        Observation, call_id=texts(max_size=8), content=contents(), status=st.sampled_from(("ok", "error", "unknown")),
        index=st.none() | st.integers(0, 9), extra=_extras(),
    )  # fmt: skip


@st.composite
def actions(draw: st.DrawFn) -> ActionStep:
    """Draw actions with none, some or all of their calls answered."""
    calls = draw(st.lists(tool_calls(), max_size=4).map(tuple))
    observations_drawn = draw(st.lists(st.none() | observations(), max_size=len(calls)).map(tuple))
    usage = st.none() | st.builds(Usage, input_tokens=_NUMBERS, output_tokens=_NUMBERS, cached_tokens=_NUMBERS)
    return ActionStep(
        draw(st.none() | contents()), calls, observations_drawn, draw(texts(max_size=8)), draw(usage), draw(_extras())
    )


def steps() -> st.SearchStrategy[Step]:
    """Draw single steps of every kind; a list of them need not be a legal run."""
    return st.one_of(
        actions(),
        *(
            st.builds(kind, content=contents(), extra=_extras())
            for kind in (SystemPromptStep, TaskStep, PlanningStep, FinalAnswerStep)
        ),
        st.builds(SummaryStep, content=texts(), author=texts(max_size=8)),
    )


def compactions() -> st.SearchStrategy[entries.Compaction]:
    """Draw compactions with summaries and stubs."""
    stubs = st.builds(
        entries.Stub, slot=st.sampled_from(("content", "thinking", "arguments", "observation")), index=st.integers(0, 9),
        text=texts(), tier=st.sampled_from(("clip", "mask", "reasoning", "summary", "dropped", "floor")),
    )  # fmt: skip
    replacements = st.builds(
        entries.Replacement, first=_NUMBERS, last=_NUMBERS, stubs=st.lists(stubs, max_size=3).map(tuple),
        summary=st.none() | texts(), author=texts(max_size=8), record=texts(),
    )  # fmt: skip
    survivals = st.builds(
        entries.RetentionScore, kind=texts(max_size=8), total=_NUMBERS, in_sight=_NUMBERS, reachable=_NUMBERS
    )
    return st.builds(
        entries.Compaction, replacements=st.lists(replacements, max_size=3).map(tuple), policy=texts(max_size=8),
        reason=texts(), tokens_before=_NUMBERS, tokens_after=_NUMBERS, fidelity=st.lists(survivals, max_size=2).map(tuple),
    )  # fmt: skip


def bodies() -> st.SearchStrategy[entries.Body]:
    """Draw every kind of body."""
    return st.one_of(
        steps(),
        st.builds(
            entries.Observed, action=_NUMBERS, index=st.integers(0, 9), observation=observations(), late=st.booleans()
        ),
        compactions(),
        st.builds(entries.Pin, text=texts()),
        st.builds(entries.Unpin, position=_NUMBERS),
        st.builds(entries.Mark, position=_NUMBERS, importance=st.sampled_from(("high", "normal", "low"))),
        st.builds(entries.Checkpoint, name=texts(), state=st.sampled_from(("{}", '{"done": ["a"]}'))),
        st.builds(entries.Undo, position=_NUMBERS),
        *facts(),
    )


def facts() -> tuple[st.SearchStrategy[entries.Body], ...]:
    """Return a strategy for each entry about facts, and for Erased."""
    times, shares = st.none() | st.floats(0, 4e9), st.floats(0, 1)
    sources = st.lists(st.builds(entries.Source, session=texts(max_size=8), handle=texts(max_size=8)), max_size=2).map(
        tuple
    )
    positions = st.lists(_NUMBERS, max_size=2).map(tuple)
    return (
        st.builds(
            entries.FactStated, content=texts(), category=texts(max_size=8), confidence=shares, owner=texts(max_size=8),
            scope=st.sampled_from(("task", "session", "project", "user", "tenant")), valid_from=times,
            valid_until=times, sources=sources, supersedes=positions, disputes=positions, author=texts(max_size=8),
            reason=texts(max_size=8),
        ),
        st.builds(entries.FactRemoved, fact=_NUMBERS, reason=texts(), author=texts(max_size=8)),
        st.builds(entries.FactConfirmed, fact=_NUMBERS, confidence=st.none() | shares, sources=sources),
        st.builds(entries.FactsUsed, facts=positions),
        st.builds(entries.FactsExtracted, session=texts(max_size=8), upto=_NUMBERS, author=texts(max_size=8)),
        st.builds(entries.FactsShown, text=texts()),
        st.builds(
            entries.Erased, spans=st.lists(st.tuples(_NUMBERS, _NUMBERS), max_size=2).map(tuple), reason=texts(), gone=_NUMBERS
        ),
    )  # fmt: skip


def bodies_with_text_everywhere(text: str) -> list[entries.Body]:
    """Return bodies with the text in every field that takes one."""
    extra = Opaque(text, text, text, text)
    image = Image(b"\1", text, "", text, extra)
    observation = Observation(text, text, "ok", None, extra)
    return [
        *(step(text, extra) for step in (SystemPromptStep, TaskStep, PlanningStep, FinalAnswerStep)),
        TaskStep((Text(text, extra), extra, image, Image(url=text))),
        ActionStep(text, (ToolCall(text, text, text, None, extra),), (observation,), text, None, extra),
        entries.Observed(0, 0, Observation(text, (Text(text),))),
        SummaryStep(text, text),
        entries.Compaction(
            (entries.Replacement(0, 1, (entries.Stub("content", 0, text, "clip"),), text, text, text),),
            text,
            text,
            2,
            1,
            (entries.RetentionScore(text, 1, 1, 1),),
        ),
        entries.Pin(text),
        entries.Checkpoint(text, text),
        entries.FactStated(
            text, text, 0.5, "user", text, None, None, (entries.Source(text, text),), (), (), text, text
        ),
        entries.FactRemoved(0, text, text),
        entries.FactConfirmed(0, None, (entries.Source(text, text),), text, text),
        entries.Erased((), text),
        entries.FactsExtracted(text, 0, text),
        entries.FactsShown(text),
    ]
