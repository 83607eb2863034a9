"""Google's Gemini, ``generateContent``.

Source: the API reference (``Content``, ``Part``, ``FunctionCall``, ``FunctionResponse``), the guides to function calling and
to thought signatures, and the types of google-genai. Contents of one role in a row become one content. A signature goes
back with its part, and only to Gemini. The result of a call is the text under ``output``, or under ``error`` where it
failed. Calls that came without an id go back without one, paired by their order.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pagein.events import steps
from pagein.events.messages import Message
from pagein.events.tool_call_encoding import parse_arguments, wire_id, wire_name
from pagein.formats import parsing, rendering
from pagein.formats.base import Item, WireFormat
from pagein.formats.gemini import rules
from pagein.formats.result_images import ResultImages, take_back_images

NAME: Final = "gemini"
ID_MAX_CHARS = 64

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""The value that Google documents for calls of another model, which have no signature."""

_WHOLE, _NO_ID = "response", "_no_id"
"""The kind of a result that is a whole response in JSON; the note on a call that came without an id."""

_USER_ROLES = ("user", "function", "tool")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Gemini(WireFormat):
    """Gemini's contents. See ``Format`` for the methods.

    ``skip_signatures``: give the first call of a turn that has no signature the value that skips the check. Gemini 3 refuses
    a run of another model without it.
    """

    skip_signatures: bool = False

    name = NAME
    own_key = "contents"
    problems = staticmethod(rules.problems)
    unify_row = staticmethod(rules.unify_row)

    def parse(self, request: Any) -> tuple[Item, ...]:
        """Parse the system instruction and the contents, in order. Raises FormatError with the path of the fault."""
        system, rows = rules.read_request(request)
        items: list[Item] = []
        if system is not None:
            items.append(steps.SystemPromptStep(tuple(_part(row, path) for row, path in rules.system_parts(system))))
        open_calls: list[tuple[int, steps.ToolCall]] = []
        for index, row in enumerate(rows):
            content = parsing.Fields(row, f"contents[{index}]")
            role = content.text_or_empty("role") or "user"
            if not isinstance(row.get("parts", [] if role == "model" else None), list) or "content" in row:
                raise content.error("parts", f"expected a list of parts, not {parsing.type_name(row.get('parts'))}")
            if role == "model":
                step = _action(content)
                open_calls = list(enumerate(step.tool_calls))
                items.append(step)
            elif role in _USER_ROLES:
                items += _user_items(content, open_calls)
            else:
                raise content.error("role", f"unknown role {role!r}; a content is the user's or the model's")
        return take_back_images(items, has_own_message=False)

    def render(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Render ``messages`` and ``systemInstruction`` (if there is one); one more message only extends the end."""
        system: list[Row] = []
        turns = _Turns(self.skip_signatures)
        for message in rendering.with_wire_ids(messages, lambda call_id: wire_id(call_id, ID_MAX_CHARS)):
            if message.role == "system":
                system += _parts(steps.as_parts(message.content), "system")
            else:
                turns.add(message)
        request: dict[str, Any] = {"messages": turns.rows}
        if system:
            request["systemInstruction"] = {"parts": system}
        return rendering.replace_surrogates(request)

    def keywords(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return ``contents`` and ``config`` for google-genai's ``generate_content``, with bytes where its types have them."""
        keywords: dict[str, Any] = {
            "contents": rendering.with_bytes(request["messages"], rules.BYTE_KEYS, ("args", "response"), urlsafe=True)
        }
        if "systemInstruction" in request:
            keywords["config"] = {"system_instruction": request["systemInstruction"]}
        return keywords

    def render_tool(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool as a declaration; a request has them as ``tools=[{"function_declarations": [...]}]``."""
        named = {key: definition[key] for key in ("name", "description")}
        return {**named, "parametersJsonSchema": definition["parameters"]}

    @staticmethod
    def _count_row_signs(row: Row) -> int:
        return isinstance(row.get("parts"), list)


# -- parsing


def _action(content: parsing.Fields) -> steps.ActionStep:
    usage, model = parsing.parse_usage(content.take("usageMetadata")), content.take("modelVersion")
    rows = [(row, path) for row, path in content.rows("parts") if row != {}]
    return parsing.action_of_rows(rows, _call, _part, model=model if isinstance(model, str) else "", usage=usage)


def _call(row: Any, path: str) -> steps.ToolCall | None:
    if not isinstance(row, dict) or "functionCall" not in row:
        return None
    part = parsing.Fields(row, path)
    function = part.fields("functionCall")
    call_id, name = function.text_or_empty("id"), function.text("name")
    arguments = function.take("args")
    if arguments is not None and not isinstance(arguments, dict):
        raise function.error("args", f"expected an object, not {parsing.type_name(arguments)}")
    beside = part.rest()
    if rest := function.rest():
        beside["functionCall"] = rest
    if not call_id:
        beside[_NO_ID] = 1
    text = "" if arguments is None else parsing.compact_json(arguments)
    return steps.ToolCall(call_id, name, text, extra=parsing.opaque_extra(NAME, "functionCall", beside))


def _user_items(content: parsing.Fields, open_calls: list[tuple[int, steps.ToolCall]]) -> Iterator[Item]:
    """Parse a user's content: each function response is an item, then one item of the other parts."""
    parts: list[steps.Part] = []
    rows = content.rows("parts")
    responses = 0
    for row, path in rows:
        if isinstance(row, dict) and "functionResponse" in row:
            responses += 1
            yield _observation(parsing.Fields(row, path), open_calls)
        elif row != {}:
            parts.append(_part(row, path))
    if parts or not responses:
        only_text = not responses and len(parts) == 1 and isinstance(parts[0], steps.Text) and parts[0].extra is None
        yield steps.TaskStep(parts[0].text if only_text and isinstance(parts[0], steps.Text) else tuple(parts))


def _observation(part: parsing.Fields, open_calls: list[tuple[int, steps.ToolCall]]) -> steps.Observation:
    """Parse a response. One without an id answers the first open call of its name, else the first open one."""
    response = part.fields("functionResponse")
    call_id, name = response.text_or_empty("id"), response.text("name")
    value = response.take("response")
    if not isinstance(value, dict):
        raise response.error("response", f"expected an object, not {parsing.type_name(value)}")
    images = [_response_image(row, path) for row, path in response.rows("parts")]
    content, failed = _response_content(value, images)
    answered = next((call for call in open_calls if call_id and call[1].id == call_id), None)
    if answered is None and not call_id:
        answered = next((call for call in open_calls if call[1].name == name), open_calls[0] if open_calls else None)
    if answered is not None:
        open_calls.remove(answered)
    beside = part.rest()
    if rest := response.rest():
        beside["functionResponse"] = rest
    index = answered[0] if answered is not None and not call_id else None
    extra = parsing.opaque_extra(NAME, "functionResponse", beside)
    return steps.Observation(call_id, content, "error" if failed else "ok", index, extra)


def _response_image(row: Any, path: str) -> steps.Part:
    """Parse a part of a response. It is marked, because other results have their images behind them."""
    image = _parse_image(parsing.Fields(row, path), in_response=True)
    return image if image is not None else parsing.opaque_part(NAME, "responsePart", row)


def _response_content(value: Row, images: list[steps.Part]) -> tuple[steps.Content, bool]:
    """Return a response's content, and True if it failed. Text under ``output`` or ``error`` is the result itself."""
    key = next(iter(value)) if len(value) == 1 else ""
    output = value.get(key)
    if key in ("output", "error") and not images:
        if isinstance(output, str):
            return output, key == "error"
        if isinstance(output, list) and all(isinstance(text, str) for text in output):
            return tuple(steps.Text(text) for text in output), key == "error"
    return (steps.Text(parsing.compact_json(value), steps.Opaque(NAME, _WHOLE, "{}")), *images), "error" in value


def _part(row: Any, path: str) -> steps.Part:
    part = parsing.Fields(row, path)
    if "text" in row or row.keys() == {"thoughtSignature"}:
        text = part.text_or_empty("text")
        if row.get("thought") is True:
            return (
                steps.Opaque(NAME, "thought", parsing.compact_json(row), text)
                if text
                else parsing.opaque_part(NAME, "thought", row)
            )
        return steps.Text(text, parsing.opaque_extra(NAME, "text", part.rest()))
    if image := _parse_image(part, in_response=False):
        return image
    blob = row.get("inlineData")
    if blob is not None:
        cure = "send a PNG, JPEG, WebP, HEIC or HEIF in base64, or leave the part out"
        part.raise_first((f".inlineData{fault}" for fault in rules.blob_problems(blob)), cure)
    return parsing.opaque_part(NAME, next(iter(row)), row)


# -- rendering


@dataclass(slots=True)
class _Turns:
    """The contents so far, and what the calls of the last turn need for their responses."""

    skip_signatures: bool
    rows: list[Row] = field(default_factory=list)
    calls: dict[str, tuple[str, bool]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    responses: list[tuple[int, Row]] = field(default_factory=list)
    images: ResultImages = field(default_factory=ResultImages)

    def add(self, message: Message) -> None:
        """Render one message at the end."""
        match message.role:
            case "assistant":
                self.order, self.responses = [call.id for call in message.tool_calls], []
                rendering.extend_turn(self.rows, "model", "parts", self._model_parts(message))
            case "tool":
                self._add_response(message)
            case _:
                parts = _parts(steps.as_parts(message.content), "user")
                rendering.extend_turn(self.rows, "user", "parts", parts or [{"text": rendering.NO_CONTENT}])
        if shown := self.images.parts_after(message, lambda text: {"text": text}, _shown_image):
            rendering.extend_turn(self.rows, "user", "parts", shown)

    def _add_response(self, message: Message) -> None:
        """Render a result among those of its turn, in the order of the calls."""
        name, has_id = self.calls.get(message.call_id, ("_", True))
        row = _response_part(message, name, has_id=has_id)
        place = self.order.index(message.call_id) if message.call_id in self.order else len(self.order)
        self.responses.append((place, row))
        rendering.extend_turn(self.rows, "user", "parts", [row])
        parts = self.rows[-1]["parts"]
        if place < len(self.order) and "functionResponse" in parts[0]:
            self.responses.sort(key=lambda response: response[0])
            parts[: len(self.responses)] = [response for _, response in self.responses]

    def _model_parts(self, message: Message) -> list[Row]:
        rows: list[Row] = []
        for parts, call in rendering.parts_and_calls(message):
            rows += _parts(parts, "model")
            if call is None:
                break
            row = _call_part(call)
            self.calls[call.id] = (row["functionCall"]["name"], "id" in row["functionCall"])
            is_first = not any("functionCall" in other for other in rows)
            if self.skip_signatures and is_first and "thoughtSignature" not in row:
                row["thoughtSignature"] = SKIP_SIGNATURE
            rows.append(row)
        return rows or [{"text": rendering.NO_CONTENT}]


def _parts(parts: Sequence[steps.Part], place: str) -> list[Row]:
    return [row for part in parts if (row := _part_row(part, place)) is not None]


def _part_row(part: steps.Part, place: str) -> Row | None:
    match part:
        case steps.Text(text=text):
            own = (rendering.own_fields(part.extra, NAME) or {}) if place != "system" else {}
            return {**own, "text": text} if text or "thoughtSignature" in own else None
        case steps.Image():
            row = None if place == "system" else _render_image(part)
            return row or {"text": rendering.image_placeholder(part)}
    row = rendering.own_fields(part, NAME)
    if row is None:
        text = rendering.foreign_text(part)
        return {"text": text} if text else None
    if place == "system" or not row or {"functionCall", "functionResponse"} & row.keys():
        return None
    return row


def _shown_image(image: steps.Image) -> Row | None:
    """Render the image of a result for the content behind it; None if it is refused or stands in the response itself."""
    return None if _is_in_response(image) else _render_image(image)


def _is_in_response(part: steps.Part) -> bool:
    extra = part.extra if isinstance(part, steps.Image) else part if isinstance(part, steps.Opaque) else None
    return extra is not None and (extra.provider, extra.kind) == (NAME, "responsePart")


def _call_part(call: steps.ToolCall) -> Row:
    own = rendering.own_fields(call.extra, NAME) or {}
    beside = {key: value for key, value in own.items() if key not in (_NO_ID, "functionCall")}
    rest = own.get("functionCall")
    function: Row = {} if _NO_ID in own else {"id": call.id}
    function["name"] = _wire_name(call.name)
    if call.arguments:
        function["args"] = parse_arguments(call.arguments)
    return {**beside, "functionCall": {**(rest if isinstance(rest, dict) else {}), **function}}


def _response_part(message: Message, name: str, *, has_id: bool) -> Row:
    own = rendering.own_fields(message.extra, NAME) or {}
    beside = {key: value for key, value in own.items() if key != "functionResponse"}
    rest = own.get("functionResponse")
    function: Row = {**(rest if isinstance(rest, dict) else {}), **({"id": message.call_id} if has_id else {})}
    function |= {"name": name, "response": _response_value(message)}
    parts = [part for part in steps.as_parts(message.content) if _is_in_response(part)]
    rows = [_render_image(part) if isinstance(part, steps.Image) else _part_row(part, "result") for part in parts]
    if any(rows):
        function["parts"] = [row for row in rows if row]
    return {**beside, "functionResponse": function}


def _response_value(message: Message) -> Row:
    """Return the response to a call: the JSON object that came, or the texts under ``output`` or ``error``."""
    key = "error" if message.is_error else "output"
    if isinstance(message.content, str):
        return {key: message.content}
    texts: list[str] = []
    for part in steps.as_parts(message.content):
        whole = part.text if isinstance(part, steps.Text) and part.extra == steps.Opaque(NAME, _WHOLE, "{}") else ""
        if whole and isinstance(value := parse_arguments(whole), dict) and parsing.compact_json(value) == whole:
            return value
        match part:
            case steps.Text(text=text):
                texts.append(text)
            case steps.Image() if not _is_in_response(part):
                texts.append(rendering.image_placeholder(part))
            case steps.Opaque() if rendering.own_fields(part, NAME) is None and (text := rendering.foreign_text(part)):
                texts.append(text)
    return {key: texts}


def _wire_name(name: str) -> str:
    """Return the name if the API takes it, else a rewritten one: a letter or ``_`` comes first."""
    if rules.NAME.fullmatch(name):
        return name
    safe = wire_name(name, rules.NAME_MAX_CHARS)
    return safe if rules.NAME.fullmatch(safe) else f"_{safe}"[: rules.NAME_MAX_CHARS]


# -- images

_TYPE_OF_SUFFIX = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp", "heic": "image/heic",
    "heif": "image/heif",
}  # fmt: skip
_URL_ALPHABET = "_base64url"
"""The note on data that was written with ``-`` and ``_``, as google-genai's JSON is."""


def _parse_image(part: parsing.Fields, *, in_response: bool) -> steps.Image | None:
    """Parse a part with an image; None where rendering would not give back the same part, or there is no image."""
    rest = part.rest()
    kind = "responsePart" if in_response else "image"
    blob, file = rest.pop("inlineData", None), rest.pop("fileData", None)
    image: steps.Image | None = None
    if isinstance(blob, dict) and file is None:
        image, alphabet = _inline_image(blob)
        rest |= alphabet
    elif isinstance(file, dict) and blob is None and file.keys() == {"mimeType", "fileUri"}:
        image = _file_image(file)
    if image is None:
        return None
    extra = parsing.opaque_extra("gemini", kind, rest)
    if extra is None and in_response:
        extra = steps.Opaque("gemini", kind, "{}")
    return steps.Image(image.data, image.media_type, image.url, extra=extra)


def _inline_image(blob: Row) -> tuple[steps.Image | None, Row]:
    media_type, data = blob.get("mimeType"), blob.get("data")
    if blob.keys() != {"mimeType", "data"} or not (isinstance(data, str) and str(media_type).startswith("image/")):
        return None, {}
    content = parsing.decode_exact_base64(data)
    if content is not None:
        return steps.Image(content, str(media_type)), {}
    content = parsing.decode_exact_base64(data.translate(rules.URL_ALPHABET))
    return (None if content is None else steps.Image(content, str(media_type))), {_URL_ALPHABET: 1}


def _file_image(file: Row) -> steps.Image | None:
    media_type, url = file["mimeType"], file["fileUri"]
    if media_type not in rules.IMAGE_TYPES or not isinstance(url, str) or not _is_address(url):
        return None
    return steps.Image(media_type="" if media_type == _type_by_suffix(url) else media_type, url=url)


def _render_image(image: steps.Image) -> Row | None:
    """Render an image; None if the API refuses it."""
    own = rendering.own_fields(image.extra, "gemini") or {}
    beside = {key: value for key, value in own.items() if key != _URL_ALPHABET}
    if image.url:
        media_type = image.media_type or _type_by_suffix(image.url)
        is_taken = _is_address(image.url) and media_type in rules.IMAGE_TYPES
        return {**beside, "fileData": {"mimeType": media_type, "fileUri": image.url}} if is_taken else None
    media_type = rendering.sent_media_type(image)
    if media_type not in rules.IMAGE_TYPES:
        return None
    encode = base64.urlsafe_b64encode if _URL_ALPHABET in own else base64.b64encode
    data = encode(image.data).decode("ascii")
    return {**beside, "inlineData": {"mimeType": media_type, "data": data}}


def _is_address(url: str) -> bool:
    return url.startswith(("https://", "gs://"))


def _type_by_suffix(url: str) -> str:
    """Return the media type that an address ends with, by default JPEG: the API asks for one."""
    path = url.partition("?")[0].partition("#")[0]
    return _TYPE_OF_SUFFIX.get(path.rpartition(".")[2].lower(), "image/jpeg")
