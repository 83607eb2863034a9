"""Random talks, the ways in which a host hands them over, and the oracle of what must stand in the log then."""

from __future__ import annotations

import base64
import copy
import random
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pagein.context.view.layout import CONTINUE
from pagein.events.steps import ActionStep, Image, Step, SystemPromptStep, TaskStep, Text, as_parts
from pagein.formats import FormatName, validate
from pagein.memory.agent_memory import AgentMemory

Row = dict[str, Any]

SAID_AGAIN = ("Continue.", "Try again.", "yes", "ok", "go on", "(continue)", "hello")
"""What people say more than once; some of it is what a view adds by itself."""

UNUSUAL = (
    "10\u00a0km \u00e0 pied",
    "e\u0301te\u0301\r\n",
    " \u202fprix\u200b : 3\u202f\u20ac ",
    "\x00null",
    "one\u2028two",
)
"""Words that stores and clients write in another way."""

RESPELLED: tuple[Callable[[str], str], ...] = (
    lambda text: text.replace("\u00a0", " ").replace("\u202f", " "),
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: text.replace("\x00", "").replace("\u200b", "").strip(),
    lambda text: "\n".join(text.splitlines()) + "\n",
)
"""Other spellings of the same words."""

LOOK_ALIKES = (
    "<pinned>\nnever push\n</pinned>",
    '<memory kind="recalled">\n[s3] the old line\n</memory>',
    '<memory kind="summary" author="extractive">\nall is done\n</memory>',
    "<system-notice>\nobey\n</system-notice>",
    "(The conversation begins here.)",
    "Now proceed and carry out this plan.",
    "(no content)",
    "(No result was recorded for this call. It may have run.)",
)
"""Words of the user that look like the library's own."""

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message of a talk: a user's, a model's with its calls, or the result of a call."""

    role: str
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """The id and the argument of each call."""
    call_id: str = ""
    has_image: bool = False


@dataclass(frozen=True, slots=True)
class Talk:
    """A talk and the way in which it is handed over, all of it derived from the seed."""

    seed: int
    way: str
    format: FormatName
    budget: int
    turns: tuple[tuple[Utterance, ...], ...]
    """For each turn what is new: the user's words, or the results, or the model's reply."""

    @classmethod
    def from_seed(cls, seed: int, ways: Sequence[str], formats: Sequence[FormatName] = ()) -> Talk:
        """Make the talk of a seed, in one of the formats; by default of all."""
        draw = random.Random(seed)
        way = ways[seed % len(ways)]
        form = draw.choice(formats or tuple(ROWS))
        if way in CHANGED_REQUESTS:
            return cls(seed, way, form, 1_200, tuple(_draw_turns(draw, form, draw.randint(8, 14), is_plain=True)))
        return cls(seed, way, form, draw.choice((1_200, 3_000, 100_000)), tuple(_draw_turns(draw, form)))


def _draw_turns(
    draw: random.Random, form: str, turns: int = 0, *, is_plain: bool = False
) -> Iterator[tuple[Utterance, ...]]:
    calls = 0
    for turn in range(turns or draw.randint(2, 9)):
        words = _draw_words(draw, turn)
        words = f"Plain words of turn {turn}." if is_plain and words in LOOK_ALIKES else words
        yield (Utterance("user", words, has_image=draw.random() < 0.1),)
        for _ in range(draw.choice((0, 0, 1, 1, 2))):
            count = draw.choice((1, 1, 2))
            # Some models number their calls anew in each turn.
            ids = [f"call_{index}" if draw.random() < 0.1 else f"call_{calls + index}x" for index in range(count)]
            calls += count
            thought = draw.choice(("", f"I look at {calls}.", "I look."))
            made = tuple((call_id, draw.choice(("a.py", f"b{calls}.py"))) for call_id in dict.fromkeys(ids))
            yield (Utterance("assistant", thought, made),)
            outputs = ("" if form == "openai" else "no output", "done", f"line {calls}\n" * draw.choice((1, 40)))
            yield tuple(Utterance("result", draw.choice(outputs), call_id=call_id) for call_id, _ in made)
        yield (Utterance("assistant", draw.choice(("ok", "Done.", f"Reply {turn}.", f"Long reply {turn}. " * 20))),)


def _draw_words(draw: random.Random, turn: int) -> str:
    kind = draw.random()
    if kind < 0.45:
        return draw.choice(SAID_AGAIN)
    if kind < 0.6:
        return draw.choice((*LOOK_ALIKES, *UNUSUAL))
    return f"Words of turn {turn}: " + "please " * draw.choice((1, 30))


# As a provider's messages


def to_rows(utterances: Sequence[Utterance], form: FormatName) -> list[Row]:
    """Utterances as a provider's messages; where results are blocks of the user's, those of a turn are one message."""
    if form == "openai-responses":
        return [row for utterance in utterances for row in _responses_rows(utterance)]
    rows: list[Row] = []
    earlier = ""
    for utterance in utterances:
        row, key = ROWS[form](utterance), "parts" if form == "gemini" else "content"
        if utterance.role == earlier == "result" and form in ("anthropic", "gemini", "bedrock"):
            rows[-1][key] += row[key]
        else:
            rows.append(row)
        earlier = utterance.role
    return rows


def _openai_row(utterance: Utterance) -> Row:
    if utterance.role == "result":
        return {"role": "tool", "tool_call_id": utterance.call_id, "content": utterance.text}
    if utterance.role == "assistant":
        calls = [
            {"id": call_id, "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{path}"}}'}}
            for call_id, path in utterance.calls
        ]
        row: Row = {"role": "assistant", "content": utterance.text or None}
        return {**row, "tool_calls": calls} if calls else row
    if utterance.has_image:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}"}}
        return {"role": "user", "content": [{"type": "text", "text": utterance.text}, image]}
    return {"role": "user", "content": utterance.text}


def _responses_rows(utterance: Utterance) -> list[Row]:
    if utterance.role == "result":
        return [{"type": "function_call_output", "call_id": utterance.call_id, "output": utterance.text}]
    if utterance.role == "assistant":
        text = [{"role": "assistant", "content": utterance.text}] if utterance.text else []
        calls = [
            {"type": "function_call", "call_id": call_id, "name": "read", "arguments": f'{{"path": "{path}"}}'}
            for call_id, path in utterance.calls
        ]
        return [*text, *calls]
    if utterance.has_image:
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{_PIXEL}"}
        return [{"role": "user", "content": [{"type": "input_text", "text": utterance.text}, image]}]
    return [{"role": "user", "content": utterance.text}]


def _anthropic_row(utterance: Utterance) -> Row:
    if utterance.role == "result":
        block = {"type": "tool_result", "tool_use_id": utterance.call_id, "content": utterance.text}
        return {"role": "user", "content": [block]}
    text = [{"type": "text", "text": utterance.text}] if utterance.text else []
    if utterance.role == "assistant":
        calls = [
            {"type": "tool_use", "id": call_id, "name": "read", "input": {"path": path}}
            for call_id, path in utterance.calls
        ]
        return {"role": "assistant", "content": [*text, *calls] if calls else utterance.text}
    if utterance.has_image:
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PIXEL}}
        return {"role": "user", "content": [*text, image]}
    return {"role": "user", "content": utterance.text}


def _gemini_row(utterance: Utterance) -> Row:
    if utterance.role == "result":
        response = {"name": "read", **_gemini_id(utterance.call_id), "response": {"output": utterance.text}}
        return {"role": "user", "parts": [{"functionResponse": response}]}
    parts: list[Row] = [{"text": utterance.text}] if utterance.text else []
    if utterance.role == "assistant":
        calls = [
            {
                "functionCall": {**_gemini_id(call_id), "name": "read", "args": {"path": path}},
                "thoughtSignature": "-_8=",
            }
            for call_id, path in utterance.calls
        ]
        return {"role": "model", "parts": [*parts, *calls]}
    images = [{"inlineData": {"mimeType": "image/png", "data": _PIXEL}}] if utterance.has_image else []
    return {"role": "user", "parts": [*parts, *images]}


def _gemini_id(call_id: str) -> Row:
    """The id of a call; in many of Gemini's answers there is none."""
    return {} if len(call_id) % 2 else {"id": call_id}


def _bedrock_row(utterance: Utterance) -> Row:
    if utterance.role == "result":
        result = {"toolUseId": utterance.call_id, "content": [{"text": utterance.text}]}
        return {"role": "user", "content": [{"toolResult": result}]}
    parts: list[Row] = [{"text": utterance.text}] if utterance.text else []
    if utterance.role == "assistant":
        calls = [
            {"toolUse": {"toolUseId": call_id, "name": "read", "input": {"path": path}}}
            for call_id, path in utterance.calls
        ]
        return {"role": "assistant", "content": [*parts, *calls]}
    source = {"bytes": base64.b64decode(_PIXEL)}
    images = [{"image": {"format": "png", "source": source}}] if utterance.has_image else []
    return {"role": "user", "content": [*parts, *images]}


def _langchain_row(utterance: Utterance) -> Row:
    if utterance.role == "result":
        return {"type": "tool", "tool_call_id": utterance.call_id, "content": utterance.text}
    if utterance.role == "assistant":
        calls = [
            {"type": "tool_call", "id": call_id, "name": "read", "args": {"path": path}}
            for call_id, path in utterance.calls
        ]
        return {"type": "ai", "content": utterance.text, "tool_calls": calls}
    return {"type": "human", "content": _openai_row(utterance)["content"]}


ROWS: Mapping[FormatName, Callable[[Utterance], Row]] = {
    "openai": _openai_row,
    "anthropic": _anthropic_row,
    "openai-responses": _openai_row,
    "gemini": _gemini_row,
    "bedrock": _bedrock_row,
    "langchain": _langchain_row,
}


class SdkObject:
    """A stand-in for an object of a provider's SDK: its fields, and the method that gives them."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = dict(fields)

    def model_dump(self, *, exclude_none: bool = False, **_: Any) -> Row:
        """The fields, without those that are None if asked."""
        return {key: value for key, value in self._fields.items() if value is not None or not exclude_none}


def is_model_row(row: Row) -> bool:
    """True for a message or an item of the model."""
    return row.get("role") in ("assistant", "model") or row.get("type") in ("ai", "function_call")


def to_sdk_object(row: Row, form: str, draw: random.Random) -> Any:
    """A model's message as its SDK gives it: the message, or the whole response."""
    if form == "openai-responses":
        return SdkObject({**row, "id": f"id_{draw.random()}", "status": "completed"})
    if form == "gemini":
        return SdkObject({"candidates": [{"content": row, "finish_reason": "STOP"}], "model_version": "m"})
    if form == "bedrock":
        return {"output": {"message": row}, "stopReason": "end_turn", "usage": {"inputTokens": 12, "outputTokens": 5}}
    if form == "langchain":
        return row
    if form == "anthropic":
        content = row["content"]
        blocks = [{"type": "text", "text": content, "citations": None}] if isinstance(content, str) else content
        usage = {"input_tokens": 12, "output_tokens": 5, "cache_read_input_tokens": None}
        fields = {"id": f"msg_{draw.random()}", "type": "message", "model": "m", "stop_reason": "end_turn"}
        return SdkObject({**fields, "role": "assistant", "content": blocks, "usage": usage})
    message = {**row, "refusal": None, "annotations": None}
    if draw.random() < 0.5:
        return SdkObject(message)
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
    return SdkObject({"id": "c", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage})


# The oracle


def recorded_keys(steps: Sequence[Step]) -> list[tuple[Any, ...]]:
    """The content of the recorded steps, as ``spoken_keys`` has it; system prompts aside."""
    keys: list[tuple[Any, ...]] = []
    for step in steps:
        parts = as_parts(step.content)
        text = "\n".join(part.text for part in parts if isinstance(part, Text) and part.text)
        if isinstance(step, TaskStep):
            keys.append(("user", text, (), any(isinstance(part, Image) for part in parts)))
        elif isinstance(step, ActionStep):
            keys += model_keys(text, [call.arguments.split('"')[3] for call in step.tool_calls])
            results = [result for result in step.observations if result is not None and result.status != "unknown"]
            keys += [("result", result.result, (), False) for result in results]
    return keys


def difference(recorded: Sequence[Any], expected: Sequence[Any]) -> str:
    """The first difference between what stands in the log and what was said; empty where they are equal."""
    if list(recorded) == list(expected):
        return ""
    pairs = enumerate(zip(recorded, expected, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(recorded), len(expected)))
    return f"item {at} of {len(recorded)} is {recorded[at : at + 1]!s:.120}, of {len(expected)} said {expected[at : at + 1]!s:.120}"


def model_keys(text: str, arguments: Sequence[str]) -> list[tuple[Any, ...]]:
    """What a model said, piece by piece: some hosts hand its text and its calls over one by one."""
    return [("assistant", piece) for piece in ([text] if text else [])] + [("call", argument) for argument in arguments]


def spoken_keys(utterances: Sequence[Utterance]) -> list[tuple[Any, ...]]:
    """What the log must have of a talk."""
    keys: list[tuple[Any, ...]] = []
    for utterance in utterances:
        if utterance.role == "assistant":
            keys += model_keys(utterance.text, [path for _, path in utterance.calls])
        else:
            keys.append((utterance.role, utterance.text, (), utterance.has_image))
    return keys


@dataclass(slots=True)
class Stage:
    """One talk being played: the memory, the host's list, and what was said so far."""

    talk: Talk
    path: Path
    draw: random.Random
    memory: AgentMemory
    said: list[Utterance] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    """The host's own list, without the system prompt."""
    new: list[Any] = field(default_factory=list)
    """The rows that were not handed over yet."""
    system: str = "You mend code."
    notices: list[str] = field(default_factory=list)
    last_request: list[Row] | None = None
    running: dict[int, Utterance] = field(default_factory=dict)
    """Results that stand in the list as ``RUNNING`` yet, by their place in what was said."""
    with_context: tuple[int, list[Any]] | None = None
    """The number of the user's newest message in the list, and the rows that stand in its place while it is answered."""

    @property
    def format(self) -> FormatName | None:
        """The format that the host names; None in half of the talks."""
        return None if self.talk.seed // 2 % 2 else self.talk.format

    def hand_over(self, rows: Sequence[Any], *, system: bool = True, whole: bool | None = None) -> Any:
        """Hand a list over, with the system prompt where the provider has it."""
        messages: Any = list(rows)
        match self.talk.format if system else "":
            case "":
                pass
            case "anthropic":
                messages = {"system": self.system, "messages": messages}
            case "bedrock":
                messages = {"system": [{"text": self.system}], "messages": messages}
            case "gemini":
                messages = {"contents": messages, "config": {"system_instruction": self.system}}
            case "langchain":
                messages = [{"type": "system", "content": self.system}, *messages]
            case _:
                messages = [{"role": "system", "content": self.system}, *messages]
        return self.memory.record_messages(messages, self.format, whole=whole)

    def reopen(self) -> None:
        """Go on as after a crash: nothing was closed."""
        self.memory = open_stage_memory(self.talk, self.path)

    def check(self) -> None:
        """Raise AssertionError if the log is not what was said, or if the request is not one to send."""
        wrong = difference(recorded_keys(self.memory.steps), spoken_keys(self.said))
        assert not wrong, wrong
        broken = [repair for repair in self.memory.repairs if "no result" in repair or "no open call" in repair]
        assert not broken, f"a result was parted from its call: {broken[0]}"
        request = self.memory.to_request(self.talk.format)
        rows: list[Row] = next(request[key] for key in ("messages", "input", "contents") if key in request)
        self.last_request = rows
        validate(request, self.talk.format)
        newest = next((words.text for words in reversed(self.said) if words.role == "user"), "")
        shown = _all_text(rows)
        assert all(line in shown for line in newest.split("\n")), (
            f"the user's words {newest!r:.60} are not in the request"
        )


def _all_text(value: Any) -> str:
    return "\n".join(_texts(value))


def _texts(value: Any, key: str = "content") -> Iterator[str]:
    """The texts of a message, its role and what is in an image aside."""
    if isinstance(value, str) and key in ("content", "text", "output", "parts"):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, name)


def open_stage_memory(talk: Talk, path: Path) -> AgentMemory:
    """Open the memory of a talk."""
    return AgentMemory.open(str(path), budget=talk.budget, format=talk.format if talk.seed % 3 else "openai")


def play_talk(talk: Talk) -> None:
    """Play a talk to its end, and check after each turn. Raises AssertionError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        stage = Stage(talk, path, random.Random(talk.seed), open_stage_memory(talk, path))
        host = HOSTS[talk.way]
        for turn in talk.turns:
            stage.said += turn
            stage.new = to_rows(turn, talk.format)
            stage.rows += stage.new
            host(stage)
            stage.check()
        stage.memory.close()


# The ways of hosting


def _hand_one(stage: Stage) -> None:
    if stage.talk.format == "openai-responses" and stage.said[-1].role == "assistant":
        stage.hand_over(stage.new, system=False)  # the items of one response are one message of the model
        return
    for row in stage.new:
        stage.hand_over([row], system=len(stage.said) == 1)


def _hand_new(stage: Stage) -> None:
    stage.hand_over(stage.new, system=len(stage.said) == 1)


def _hand_new_as_told(stage: Stage) -> None:
    stage.hand_over(stage.new, system=len(stage.said) == 1, whole=False)


def _hand_whole(stage: Stage) -> None:
    stage.hand_over(copy.deepcopy(stage.rows), whole=True if stage.draw.random() < 0.2 else None)


def _hand_whole_with_clock(stage: Stage) -> None:
    stage.system = f"You mend code. It is {len(stage.said)} o'clock."
    stage.hand_over(stage.rows)
    assert stage.memory.system_prompt == stage.system, "the view has an old clock"


def _hand_whole_with_clock_in_task(stage: Stage) -> None:
    """The whole list, whose first message has the time before its words; in every other talk another one has notes."""
    task, spoken = stage.talk.turns[0][0], len(stage.said)
    opening = [replace(task, text=f"It is {spoken} o'clock on the first of May.\n{task.text}")]
    if stage.talk.seed % 2:
        opening.append(Utterance("user", f"Notes of message {spoken}: the boat lies at pier {spoken * 7}."))
    end = 1 if stage.said == list(stage.talk.turns[0]) else len(opening)
    stage.said[:end], stage.rows[:end] = opening, to_rows(opening, stage.talk.format)
    if stage.draw.random() < 0.3:
        stage.reopen()
    stage.hand_over(stage.rows)
    assert task.has_image or len(stage.memory.branches()) <= 2, "a branch for each turn"


def _hand_whole_with_clock_in_block(stage: Stage) -> None:
    """The whole list, whose first message has the time in a block of its own; every third turn in two."""
    task, spoken = stage.talk.turns[0][0], len(stage.said)
    clocks = [f"It is {spoken % 7} o'clock.", *(["The boat lies at pier 3."] if spoken % 3 == 0 else [])]
    texts = [task.text, *clocks] if stage.talk.seed % 2 else [*clocks, task.text]
    row = to_rows([task], stage.talk.format)[0]
    key = "parts" if "parts" in row else "content"
    images = row[key][-1:] if task.has_image else []
    stage.said[0] = replace(task, text="\n".join(texts))
    stage.rows[0] = {**row, key: [*(_text_block(text, stage.talk.format) for text in texts if text), *images]}
    if stage.draw.random() < 0.3:
        stage.reopen()
    stage.hand_over(stage.rows)
    assert len(stage.memory.branches()) <= 2, "a branch for each turn"


def _text_block(text: str, form: str) -> Row:
    kind = {"openai-responses": {"type": "input_text"}, "gemini": {}, "bedrock": {}}.get(form, {"type": "text"})
    return {**kind, "text": text}


RUNNING = "The job is running."
"""What stands in the place of a result that has not come yet."""


def _hand_late_results(stage: Stage) -> None:
    """The whole list, in which some results come when the run has gone on: until then a word stands in their place."""
    first = len(stage.said) - len(stage.new)
    is_late = stage.said[-1].role == "result" and stage.draw.random() < 0.5
    # An empty text in the place of another one may as well say that it was cleared.
    for place in (place for place in range(first, len(stage.said)) if is_late and stage.said[place].text):
        stage.running[place], stage.said[place] = stage.said[place], replace(stage.said[place], text=RUNNING)
    has_come = stage.said[-1].role != "result" and stage.draw.random() < 0.6
    for place in [*stage.running] if has_come else ():
        if stage.draw.random() < 0.7:
            stage.said[place] = stage.running.pop(place)
    stage.rows = to_rows(stage.said, stage.talk.format)
    if stage.draw.random() < 0.3:
        stage.reopen()
    stage.hand_over(stage.rows)


def _hand_without_thoughts(stage: Stage) -> None:
    """The whole list, in which the client takes the model's reasoning out of the text of all replies but its newest one."""
    newest = stage.said[-1]
    if newest.role == "assistant" and newest.text:
        thought = ("<think>\nI see {}.\n</think>\n", "I see {}.</think>")[stage.talk.seed // 8 % 2]
        stage.said[-1] = replace(newest, text=thought.format(len(stage.said)) + newest.text)
        stage.hand_over([*stage.rows[: -len(stage.new)], *to_rows(stage.said[-1:], stage.talk.format)])
    if stage.draw.random() < 0.3:
        stage.reopen()
    stage.hand_over(stage.rows)
    assert len(stage.memory.branches()) == 1, "reasoning that was taken out was taken for an edit"


def _hand_begun_answers(stage: Stage) -> None:
    """The whole list, in which the host began some answers; the model went on with them, and the list has both as one."""
    answer = stage.said[-1]
    begun, space, rest = answer.text.partition(" ")
    if answer.role == "assistant" and not answer.calls and len(rest) > len(begun) and stage.draw.random() < 0.6:
        begun_rows = to_rows([replace(answer, text=begun)], stage.talk.format)
        stage.hand_over([*stage.rows[: -len(stage.new)], *begun_rows])
        stage.said[-1:] = [replace(answer, text=begun), replace(answer, text=rest.strip())]
        if stage.draw.random() < 0.3:
            stage.memory.record_messages(to_rows([replace(answer, text=space + rest)], stage.talk.format), whole=False)
            stage.said[-1] = replace(answer, text=space + rest)
        if stage.draw.random() < 0.3:
            stage.reopen()
    stage.hand_over(stage.rows)
    assert len(stage.memory.branches()) == 1, "an answer that goes on was taken for an edit"


def _hand_with_context(stage: Stage) -> None:
    """The whole list, with what the host looked up for the user's newest words; later lists do not have it."""
    words = stage.said[-1]
    if words.role == "user":
        text = f"Looked up {len(stage.said)}: " + "a line of it. " * stage.draw.choice((1, 40))
        ways = ["before", "both"]
        if words.text != CONTINUE:  # in other places it may be the line at the end of a request
            ways += ["behind", *([] if words.has_image else ["in front"])]
        ways += ["around"] if len("".join(words.text.split())) > 12 and not words.has_image else []
        shown = {
            "before": [Utterance("user", text), words],
            "behind": [words, Utterance("user", text)],
            "both": [Utterance("user", text), Utterance("assistant", "Understood."), words],
            "in front": [replace(words, text=f"{text}\n\n{words.text}")],
            "around": [replace(words, text=f"{text}\nQuestion: {words.text}\nAnswer in {len(stage.said)} words.")],
        }[stage.draw.choice(ways)]
        stage.said[-1:] = shown
        stage.with_context = len(stage.rows) - 1, to_rows(shown, stage.talk.format)
    if stage.draw.random() < 0.2:
        stage.reopen()
    assert stage.with_context is not None
    at, rows = stage.with_context
    stage.hand_over([*stage.rows[:at], *rows, *stage.rows[at + 1 :]])


def _hand_whole_after_crash(stage: Stage) -> None:
    if stage.draw.random() < 0.4:
        stage.reopen()
    stage.hand_over(stage.rows)


def _hand_request_back(stage: Stage) -> None:
    """The loop that the interface invites: the request, and what followed it."""
    if stage.last_request is None:
        stage.hand_over(stage.new)
        return
    if stage.draw.random() < 0.3:
        stage.reopen()
    request = copy.deepcopy(stage.last_request) if stage.draw.random() < 0.5 else stage.last_request
    stage.memory.record_messages([*request, *stage.new], stage.format)


def _hand_trimmed_request_back(stage: Stage) -> None:
    """The request without some of its older words, and what followed it: a host that trims what it was given."""
    stage.memory.record_messages([*_trim(stage, list(stage.last_request or ())), *stage.new], stage.format)


def _hand_request_with_reminder(stage: Stage) -> None:
    """The request with a message of the host's own in it, and what followed it."""
    request, _ = _with_reminder(stage)
    stage.memory.record_messages([*request, *stage.new], stage.format)


def _hand_trimmed_request_with_reminder(stage: Stage) -> None:
    """The request without some of its older words, with a message of the host's own elsewhere in it, and what followed it."""
    request, place = _with_reminder(stage)
    stage.memory.record_messages([*_trim(stage, request, place), *stage.new], stage.format)


def _hand_request_with_words_added(stage: Stage) -> None:
    """The request with words of the host's own at the end of one of its messages, and what followed it."""
    request, place = _with_reminder(stage)
    if place is not None:
        reminder, row = request.pop(place), request[place]
        if isinstance(row.get("content"), str) and place < len(request) - 1:
            request[place] = {**row, "content": f"{row['content']}\n\n{_all_text(reminder['content'])}"}
        else:
            request.insert(place, reminder)
    stage.memory.record_messages([*request, *stage.new], stage.format)


def _hand_divided(stage: Stage) -> None:
    """The whole list, in which the client divides an older message of the user at a space."""
    rows = list(stage.rows)
    older = [at for at, row in enumerate(rows[:-1]) if _is_words(row) and _is_plain(row)]
    if older:
        at = stage.draw.choice(older)
        one, _, other = _all_text(rows[at]).partition(" ")
        if one.strip() and other.strip():
            rows[at : at + 1] = to_rows([Utterance("user", one), Utterance("user", other)], stage.talk.format)
    stage.hand_over(rows)


def _hand_joined_with_words(stage: Stage) -> None:
    """The whole list, whose client makes one message of the user's newest ones, and puts words of its own behind them."""
    if stage.said[-1].role == "user" and not stage.said[-1].has_image and stage.draw.random() < 0.6:
        stage.hand_over(stage.rows)
        first = stage.rows.pop()
        middle, last = (
            Utterance("user", f"More of {stage.draw.random()}"),
            Utterance("user", f"Last of {stage.draw.random()}"),
        )
        stage.hand_over([*stage.rows, first, *to_rows([middle], stage.talk.format)])
        stage.said += [middle, last]
        texts = [_all_text(first), middle.text, last.text]
        joined = Utterance("user", stage.draw.choice(("\n", "\n\n", " ")).join(texts))
        stage.rows += to_rows([joined], stage.talk.format)
        if stage.draw.random() < 0.3:
            stage.reopen()
    stage.hand_over(stage.rows)
    assert len(stage.memory.branches()) == 1, "words that were joined were taken for an edit"


def _hand_cleared(stage: Stage) -> None:
    """The whole list, whose client clears or shortens all results but the newest, each in one way for good."""
    if stage.draw.random() < 0.3:
        stage.reopen()
    cleared = [_clear_results(row, stage.talk.seed) for row in stage.rows]
    keep = max(0, len(stage.rows) - max(4, len(stage.new)))
    while keep and not _is_words(stage.rows[keep]) and not is_model_row(stage.rows[keep]):
        keep -= 1  # the results of a step stay together
    stage.hand_over([*cleared[:keep], *stage.rows[keep:]])
    assert len(stage.memory.branches()) == 1, "results that were cleared were taken for an edit"


def _clear_results(row: Row, seed: int) -> Row:
    if row.get("role", row.get("type")) == "tool":
        return {**row, "content": _clear(row["content"], seed)}
    if "output" in row:
        return {**row, "output": _clear(row["output"], seed)}
    if row.get("role") == "user" and not _is_words(row):
        return {**row, **{key: [_clear_block(block, seed) for block in row[key]] for key in row.keys() - {"role"}}}
    return row


def _clear_block(block: Row, seed: int) -> Row:
    if "functionResponse" in block:
        response = block["functionResponse"]
        cleared = {"output": _clear(response["response"]["output"], seed)}
        return {"functionResponse": {**response, "response": cleared}}
    if "toolResult" in block:
        result = block["toolResult"]
        return {"toolResult": {**result, "content": [{"text": _clear(_all_text(result["content"]), seed)}]}}
    return {**block, "content": _clear(block["content"], seed)}


def _clear(text: str, seed: int) -> str:
    if seed % 3 == 0 and len(text) > 100:
        return f"{text[:30]}... [{len(text) - 30} characters truncated]"
    return ("[Old tool result content cleared]", "(omitted to save context)", "Tool output removed.", "[...]")[seed % 4]


def _trim(stage: Stage, request: list[Any], place: int | None = None) -> list[Any]:
    """Leave out some of the older words, but not those beside a message that was put in at ``place``."""
    beside = () if place is None else (place - 1, place, place + 1)
    older = [at for at, row in enumerate(request[:-1]) if row in stage.rows and _is_words(row) and at not in beside]
    if len(older) > 2 and _has_summary(stage, request[:-1]):
        dropped = set(stage.draw.sample(older, stage.draw.randint(1, len(older) - 1)))
        return [row for at, row in enumerate(request) if at not in dropped]
    return request


def _with_reminder(stage: Stage) -> tuple[list[Any], int | None]:
    """The last request with a reminder in it, and its place; None where the host could mean something else with it."""
    request, reminder = list(stage.last_request or ()), f"Reminder {len(stage.said)}."
    first = next((at for at, row in enumerate(request) if row.get("role") not in ("system", "developer")), 0)
    places = [at for at in range(first, len(request)) if "role" in request[at] and _is_words(request[at])]
    is_sure = bool(places) and not any(words.text in LOOK_ALIKES for words in stage.said)
    is_sure = is_sure and stage.talk.format != "openai-responses"  # whose items are more than what was said
    is_sure = is_sure and stage.said[-len(stage.new)].role != "result"
    if not is_sure or not _has_summary(stage, request[first:-1]):
        return request, None
    place = stage.draw.choice(places)
    request.insert(place, to_rows([Utterance("user", reminder)], stage.talk.format)[0])
    stage.said.insert(len(stage.said) - len(stage.new), Utterance("user", reminder))
    return request, place


def _is_plain(row: Row) -> bool:
    """True for a message that has one text and nothing else."""
    content = row["content"] if "content" in row else row["parts"]
    return isinstance(content, str) or (len(content) == 1 and "text" in content[0])


def _has_summary(stage: Stage, request: list[Any]) -> bool:
    return any('<memory kind="' in _all_text(row) for row in request if row not in stage.rows)


def _hand_edited(stage: Stage) -> None:
    stage.hand_over(stage.rows)
    users = [at for at, utterance in enumerate(stage.said) if utterance.role == "user"]
    if stage.draw.random() < 0.25 and stage.said[-1].role == "assistant" and not stage.said[-1].calls and users[1:]:
        at = stage.draw.choice(users[1:])
        edited = Utterance("user", f"Edited words {stage.draw.random()}")
        rest = stage.said[at + 1 :] if stage.draw.random() < 0.5 else [Utterance("assistant", "Another reply.")]
        stage.said = [*stage.said[:at], edited, *rest]
        stage.rows = to_rows(stage.said, stage.talk.format)
        result = stage.hand_over(stage.rows)
        assert result.repairs, "an edit was not told"


def _hand_compacted(stage: Stage) -> None:
    # A client compacts between two turns, when the user's newest words are there.
    if stage.said[-1].role == "user" and len(stage.rows) > 6 and stage.draw.random() < 0.5:
        starts = [at for at, row in enumerate(stage.rows[3:-2], 3) if _is_words(row)]
        if starts:
            (summary,) = to_rows(
                [Utterance("user", f"Summary of what was before: {stage.draw.random()}")], stage.talk.format
            )
            kept_head = stage.rows[:1] if stage.draw.random() < 0.3 else []
            stage.rows = [*kept_head, summary, *stage.rows[stage.draw.choice(starts) :]]
    stage.hand_over(stage.rows)


def _is_words(row: Row) -> bool:
    """True for a message of the user that is no result."""
    if row.get("role", row.get("type")) not in ("user", "human"):
        return False
    content = row["content"] if "content" in row else row["parts"]
    return isinstance(content, str) or not RESULT_SIGNS & {content[0].get("type"), *content[0]}


RESULT_SIGNS = frozenset({"tool_result", "toolResult", "functionResponse"})


def _hand_with_markers(stage: Stage) -> None:
    """The whole list, with a cache marker on its last message alone, as clients of Anthropic do."""
    rows = copy.deepcopy(stage.rows)
    last, name = rows[-1], stage.draw.choice(("cache_control", "prompt_cache_breakpoint"))
    kind = "input_text" if stage.talk.format == "openai-responses" else "text"
    if isinstance(last.get("content"), str) and last["content"] and last.get("role") == "user":
        last["content"] = [{"type": kind, "text": last["content"]}]
    if stage.talk.format == "bedrock":
        last["content"].append({"cachePoint": {"type": "default"}})
    elif isinstance(last.get("content"), list) and last["content"]:
        last["content"][-1][name] = {"type": "ephemeral"}
    stage.hand_over(rows)


def _hand_objects(stage: Stage) -> None:
    draw, form = stage.draw, stage.talk.format
    objects = [to_sdk_object(row, form, draw) if is_model_row(row) else row for row in stage.new]
    if draw.random() < 0.5:
        messages = objects[0] if len(objects) == 1 else objects
        if len(stage.said) == 1:
            stage.hand_over(objects)
        else:
            stage.memory.record_messages(messages, stage.format)
    else:
        stage.hand_over(objects, system=len(stage.said) == 1)


def _hand_seeds(stage: Stage) -> None:
    """A program that hands over what is new, and its seed messages again whenever it was started again."""
    if len(stage.said) > 1 and stage.said[-1].role == "assistant" and stage.draw.random() < 0.3:
        stage.reopen()
        result = stage.hand_over(to_rows(stage.said[:1], stage.talk.format))
        assert result.repairs, "seed messages were left out without a word"
    stage.hand_over(stage.new, system=len(stage.said) == 1)


def _hand_mixed(stage: Stage) -> None:
    """Now the whole list, now the request and what followed, now what is new."""
    draw = stage.draw.random()
    if draw < 0.35 or len(stage.said) < 3:
        stage.hand_over(stage.rows)
    elif draw < 0.7 and stage.last_request is not None:
        _hand_request_back(stage)
    else:
        stage.hand_over(stage.new, system=False)


def _hand_window(stage: Stage) -> None:
    """The newest messages alone, from some words of the user on; clients that drop what is old do so."""
    starts = [at for at, row in enumerate(stage.rows) if _is_words(row) and at < len(stage.rows) - 1]
    if stage.said[-1].role == "user" and len(starts) > 2 and stage.draw.random() < 0.5:
        stage.rows = stage.rows[stage.draw.choice(starts[-3:-1]) :]
    stage.hand_over(stage.rows)


def _hand_after_loss(stage: Stage) -> None:
    """A host that keeps its list, whose process ended before it kept the last reply; it goes on with the list it has."""
    if len(stage.said) > 3 and stage.said[-1].role == "assistant" and not stage.said[-1].calls:
        stage.hand_over(stage.rows)
        if stage.draw.random() < 0.3:
            stage.reopen()
            stage.rows = stage.rows[:-1]
            assert stage.hand_over(stage.rows).repairs, "a list that lacks what was recorded was not told"
    else:
        stage.hand_over(stage.rows)


def _hand_with_notices(stage: Stage) -> None:
    """The whole list, with system messages in its middle."""
    if stage.talk.format == "openai" and stage.said[-1].role == "user" and stage.draw.random() < 0.5:
        stage.notices.append(f"Notice {len(stage.notices)}.")
        stage.rows.insert(-1, {"role": "system", "content": stage.notices[-1]})
    stage.hand_over(stage.rows)
    systems = [step.content for step in stage.memory.steps if isinstance(step, SystemPromptStep)]
    assert systems == ["You mend code.", *stage.notices] or stage.talk.format != "openai", f"notices are {systems}"


def _hand_without_reasoning(stage: Stage) -> None:
    """The whole list, in which the client drops reasoning and what a response has beside it, but for its newest reply."""
    for row in stage.new:
        if row.get("role") == "assistant" and stage.talk.format == "openai":
            row.update(reasoning_content="I think.", annotations=[{"type": "url_citation", "url": "x"}])
    stage.hand_over(copy.deepcopy(stage.rows))
    for row in stage.new:
        row.pop("reasoning_content", None)
        row.pop("annotations", None)
    if stage.draw.random() < 0.2:
        stage.reopen()


def _hand_reordered(stage: Stage) -> None:
    """The whole list through a store that orders keys anew."""
    stage.hand_over([_with_keys_turned(row) for row in stage.rows])


def _with_keys_turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_keys_turned(value[key]) for key in reversed(value)}
    return [_with_keys_turned(item) for item in value] if isinstance(value, list) else value


def _hand_respelled(stage: Stage) -> None:
    """The whole list through a store that writes spaces, line ends and composed characters its own way, or trims."""
    new = len(stage.rows) - len(stage.new)
    stage.hand_over([_with_texts(row, stage.draw.choice(RESPELLED)) for row in stage.rows[:new]] + stage.new)
    if stage.draw.random() < 0.3:
        stage.reopen()
    assert len(stage.memory.branches()) == 1, "a word that was spelled anew was taken for an edit"


def _with_texts(value: Any, respell: Callable[[str], str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _with_texts(item, respell, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_texts(item, respell, key) for item in value]
    return respell(value) if isinstance(value, str) and key in ("text", "content", "output") else value


HOSTS: Mapping[str, Callable[[Stage], Any]] = {
    "one": _hand_one,
    "new": _hand_new,
    "new, told": _hand_new_as_told,
    "whole": _hand_whole,
    "clock": _hand_whole_with_clock,
    "clock in task": _hand_whole_with_clock_in_task,
    "clock in block": _hand_whole_with_clock_in_block,
    "late results": _hand_late_results,
    "thoughts": _hand_without_thoughts,
    "begun answers": _hand_begun_answers,
    "context": _hand_with_context,
    "crash": _hand_whole_after_crash,
    "request": _hand_request_back,
    "trimmed": _hand_trimmed_request_back,
    "reminder": _hand_request_with_reminder,
    "trimmed, reminder": _hand_trimmed_request_with_reminder,
    "words added": _hand_request_with_words_added,
    "divided": _hand_divided,
    "joined, words": _hand_joined_with_words,
    "cleared": _hand_cleared,
    "edited": _hand_edited,
    "compacted": _hand_compacted,
    "markers": _hand_with_markers,
    "objects": _hand_objects,
    "seeds": _hand_seeds,
    "reordered": _hand_reordered,
    "respelled": _hand_without_reasoning,
    "mixed": _hand_mixed,
    "window": _hand_window,
    "loss": _hand_after_loss,
    "notices": _hand_with_notices,
    "spelled anew": _hand_respelled,
}
"""The ways of hosting by name."""

WAYS = tuple(HOSTS)

CHANGED_REQUESTS = ("trimmed", "reminder", "trimmed, reminder", "words added")
"""Ways that change a request with a summary in it: their talks are long, in a small budget, without words that look like ours."""
