"""Conformance suite for wire formats: a subclass of ``FormatTests`` with two fixtures::

    class TestMyFormat(FormatTests):
        cannot_carry = frozenset({"error flag"})

        @pytest.fixture
        def format(self): return MyFormat()

        @pytest.fixture
        def transcripts(self): return [...]  # native ones, which must come back equal

Declare in ``cannot_carry`` what the wire cannot carry, by the names of ``LOSSES``. The suite fails for a loss that is
not declared, and for a declared loss that does not happen.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Sequence
from typing import Any, ClassVar

import hypothesis
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import Opaque, Text
from pagein.formats.base import Format
from pagein.testing.conversations import (
    ILLEGAL,
    LOSSES,
    every_feature,
    items_to_messages,
    legal_conversations,
    statements,
)

__all__ = [
    "ILLEGAL",
    "LOSSES",
    "FormatTests",
    "every_feature",
    "statements",
    "legal_conversations",
    "items_to_messages",
]

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ("role", "content", "type", "text", "tool_calls", "function", "arguments", "name", "id", "image_url", "url",
         "source", "data", "tool_use_id", "input", "messages", "system", "tool_call_id", "is_error")), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
_roles = st.sampled_from(("system", "developer", "user", "assistant", "tool", "function", "nobody"))
_garbage = _json | st.lists(st.builds(lambda row, role: {**row, "role": role}, st.dictionaries(st.sampled_from(
    ("content", "tool_calls", "function_call", "refusal", "tool_call_id", "audio")), _json, max_size=3), _roles), max_size=4)  # fmt: skip

_checked = settings(
    max_examples=min(30, settings().max_examples), deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


class FormatTests:
    """The contract of ``pagein.formats.Format``: subclass it, and give the fixtures ``format`` and ``transcripts``."""

    cannot_carry: ClassVar[frozenset[str]] = frozenset()
    """The names of ``LOSSES`` that this wire does not carry."""

    def canonical(self, request: Any) -> Any:
        """Return a native transcript as the format renders it, where the wire allows several forms."""
        return request

    def test_every_declared_loss_is_real(self, format: Format) -> None:
        description = "; ".join(LOSSES[name] for name in sorted(self.cannot_carry)) or "nothing"
        print(f"\n{format.name} cannot carry: {description}")  # noqa: T201 - the report shows each opt-out
        before = every_feature()
        after = items_to_messages(format.parse(format.render(before)))
        for loss in self.cannot_carry:
            others = self.cannot_carry - {loss}
            assert _carried_statements(before, format, others) != _carried_statements(after, format, others), (
                f"{loss!r} is carried after all"
            )

    @_checked
    @hypothesis.given(messages=legal_conversations())
    def test_nothing_the_wire_can_carry_is_lost(self, format: Format, messages: tuple[Message, ...]) -> None:
        after = items_to_messages(format.parse(format.render(messages)))
        assert _carried_statements(after, format, self.cannot_carry) == _carried_statements(
            messages, format, self.cannot_carry
        )

    def test_transcripts_come_back_equal(self, format: Format, transcripts: list[Any]) -> None:
        assert transcripts, "a format without a transcript is not tested"
        for transcript in transcripts:
            given_back = format.render(items_to_messages(format.parse(copy.deepcopy(transcript))))
            assert given_back == self.canonical(transcript)

    def test_transcripts_are_legal(self, format: Format, transcripts: list[Any]) -> None:
        for transcript in transcripts:
            assert format.problems(format.render(items_to_messages(format.parse(transcript)))) == ()

    @_checked
    @hypothesis.given(messages=legal_conversations())
    def test_every_request_is_legal(self, format: Format, messages: tuple[Message, ...]) -> None:
        assert format.problems(format.render(messages)) == ()

    @pytest.mark.parametrize("fault", ILLEGAL)
    def test_the_rules_refuse_what_no_provider_takes(self, format: Format, fault: str) -> None:
        assert format.problems(format.render(ILLEGAL[fault])), fault

    @_checked
    @hypothesis.given(messages=legal_conversations())
    def test_equal_messages_are_equal_bytes_and_new_values(self, format: Format, messages: tuple[Message, ...]) -> None:
        first, second = format.render(messages), format.render(copy.deepcopy(messages))
        spelled = json.dumps(second)
        assert json.dumps(first) == spelled
        for row in first["messages"]:
            row.clear()
        first.clear()
        assert json.dumps(second) == spelled == json.dumps(format.render(messages))

    @_checked
    @hypothesis.given(messages=legal_conversations())
    def test_one_more_message_only_lengthens_the_end(self, format: Format, messages: tuple[Message, ...]) -> None:
        for length in range(1, len(messages)):
            shorter, longer = format.render(messages[:length]), format.render(messages[: length + 1])
            for part in ("system", "messages"):
                beginning = json.dumps(shorter.get(part, [])).rstrip("]}")
                assert json.dumps(longer.get(part, [])).startswith(beginning)

    @_checked
    @hypothesis.given(messages=legal_conversations())
    def test_every_request_is_utf8_json(self, format: Format, messages: tuple[Message, ...]) -> None:
        json.dumps(format.render(messages), ensure_ascii=False, allow_nan=False).encode("utf-8")

    def test_opaque_parts_return_to_their_maker_alone(self, format: Format) -> None:
        for provider, expected in ((format.name, True), ("somebody-else", False)):
            body = json.dumps({"type": "kept", "secret": "s3cret", "signature": "c2ln"})
            content = (Text("Hello."), Opaque(provider, "kept", body, "s3cret"))
            marked = Text("Hello.", Opaque(provider, "text", '{"beside": "b3side"}'))
            request = json.dumps(format.render((Message("user", content), Message("user", (marked, Text("."))))))
            assert ("s3cret" in request, "b3side" in request) == (expected, expected)

    @_checked
    @hypothesis.given(request=_garbage)
    def test_garbage_raises_nothing_but_format_errors(self, format: Format, request: Any) -> None:
        assert isinstance(format.problems(request), tuple)
        try:
            format.parse(request)
        except FormatError as error:
            assert str(error)

    def test_a_cycle_is_a_format_error(self, format: Format) -> None:
        message: dict[str, Any] = {"role": "user"}
        message["content"] = [message]
        with pytest.raises(FormatError, match="contains itself"):
            format.parse([message])
        assert format.problems([message])

    def test_keywords_hold_every_value_of_the_request(self, format: Format) -> None:
        request = format.render(every_feature())
        keywords = format.keywords(copy.deepcopy(request))
        text = json.dumps(keywords, default=lambda data: base64.b64encode(data).decode())  # some SDKs take bytes
        assert all(json.dumps(value) in text for value in request.values())
        assert all(key.isidentifier() for key in keywords)

    def test_a_tool_keeps_its_name_description_and_parameters(self, format: Format) -> None:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        definition = {"name": "read_file", "description": "Read a file.", "parameters": schema}
        before = copy.deepcopy(definition)
        tool = json.dumps(format.render_tool(definition))
        assert all(json.dumps(value) in tool for value in before.values())
        assert definition == before, "the definition was changed"

    def test_plain_messages_have_no_sign_of_a_format(self, format: Format) -> None:
        plain = [{"role": role, "content": "Hello."} for role in ("user", "assistant")]
        odd: list[Any] = [None, 7, "text", [], {}, {"role": 7, "content": [None, {"type": []}]}]
        for rows in ([], plain, odd):
            assert format.count_signs(rows, rows) == 0


def _carried_statements(messages: Sequence[Message], format: Format, losses: frozenset[str]) -> list[Any]:
    return [fact.value for fact in statements(messages, format.name) if not fact.losses & losses]
