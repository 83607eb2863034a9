"""Every text in a log entry, also what no search looks at: keys of arguments, metadata, provider content. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from pagein.events import steps
from pagein.events.entries import Body, Observed, Pin
from pagein.log.base import Entry
from pagein.memory.erasure.repetitions import parse_json, strings_in
from pagein.search.passages import CONTENT_PART


def entry_texts(entry: Entry) -> Iterator[tuple[int, int, str]]:
    """The texts of an entry with the position and the part that they are erased by; none of entries about the record."""
    at, body = entry.position, entry.body
    if isinstance(body, steps.ActionStep):
        for index, observation in enumerate(body.observations):
            yield from ((at, index, text) for text in _observation_texts(observation))
    if isinstance(body, Observed) and not body.late:
        yield from ((body.action, body.index, text) for text in _observation_texts(body.observation))
    else:
        yield from ((at, CONTENT_PART, text) for text in _own_texts(body))


def _own_texts(body: Body) -> Iterator[str]:
    match body:
        case steps.ActionStep():
            yield from (*_content_texts(body.content), *_call_texts(body), *_extra_texts(body.extra))
        case Observed():
            yield from _observation_texts(body.observation)
        case Pin():
            yield body.text
        case steps.SummaryStep():
            yield body.content
        case steps.SystemPromptStep() | steps.TaskStep() | steps.PlanningStep() | steps.FinalAnswerStep():
            yield from (*_content_texts(body.content), *_extra_texts(body.extra))


def _call_texts(step: steps.ActionStep) -> Iterator[str]:
    for call in step.tool_calls:
        yield from _json_texts(call.arguments)
        yield from _extra_texts(call.extra)


def _observation_texts(observation: steps.Observation | None) -> Iterator[str]:
    if observation is not None:
        yield from _content_texts(observation.content)
        yield from _extra_texts(observation.extra)


def _content_texts(content: steps.Content | None) -> Iterator[str]:
    for part in steps.as_parts(content):
        match part:
            case steps.Text(text=text, extra=extra):
                yield text
                yield from _extra_texts(extra)
            case steps.Image(url=url, extra=extra):
                yield f"[image {url or part.digest[:12]}]"
                yield from _extra_texts(extra)
            case steps.Opaque():
                yield from _extra_texts(part)


def _extra_texts(extra: steps.Opaque | None) -> Iterator[str]:
    if extra is not None:
        yield extra.text
        yield from _json_texts(extra.body)


def _json_texts(text: str) -> Iterator[str]:
    """JSON text as it is written, for escapes are copied too, and what it says, with its keys."""
    yield text
    value = parse_json(text)
    if value != text:
        yield "\n".join(strings_in(value))
