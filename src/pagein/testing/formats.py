"""The conformance suite for wire formats. A format of your own proves itself with two fixtures::

    class TestMyFormat(FormatTests):
        cannot_carry = frozenset({"error flag"})

        @pytest.fixture
        def format(self): return MyFormat()

        @pytest.fixture
        def transcripts(self): return [...]  # native ones, that must come back equal

What a wire cannot carry is declared in ``cannot_carry``, in the words of ``LOSSES``; a declared loss that does not
happen fails the suite as one that was not declared does.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import Opaque, Text
from pagein.formats.base import Format
from pagein.testing.conversations import (
    ILLEGAL,
    LOSSES,
    Fact,
    every_feature,
    facts,
    legal_conversations,
    paired,
)

__all__ = ["ILLEGAL", "LOSSES", "FormatTests", "every_feature", "facts", "legal_conversations", "paired"]

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

_checked = settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))


class FormatTests:
    """What every wire format promises. Subclass it with the fixtures ``format`` and ``transcripts``."""

    cannot_carry: ClassVar[frozenset[str]] = frozenset()
    """The losses of this wire, by their names in ``LOSSES``."""

    def canonical(self, request: Any) -> Any:
        """A native transcript as the format spells it, where one thing has several spellings."""
        return request

    def test_every_declared_loss_is_real(self, format: Format) -> None:
        told = "; ".join(LOSSES[name] for name in sorted(self.cannot_carry)) or "nothing"
        print(f"\n{format.name} cannot carry: {told}")  # noqa: T201 - an opt-out is said aloud
        before = every_feature()
        after = paired(format.parse(format.render(before)))
        for loss in self.cannot_carry:
            others = self.cannot_carry - {loss}
            assert _kept(before, format, others) != _kept(after, format, others), (
                f"{loss!r} is carried after all"
            )

    @_checked
    @given(messages=legal_conversations())
    def test_nothing_the_wire_can_carry_is_lost(self, format: Format, messages: tuple[Message, ...]) -> None:
        after = paired(format.parse(format.render(messages)))
        assert _kept(after, format, self.cannot_carry) == _kept(messages, format, self.cannot_carry)

    def test_transcripts_come_back_equal(self, format: Format, transcripts: list[Any]) -> None:
        assert transcripts, "a format without a transcript is not tested"
        for transcript in transcripts:
            given_back = format.render(paired(format.parse(copy.deepcopy(transcript))))
            assert given_back == self.canonical(transcript)

    def test_transcripts_are_legal(self, format: Format, transcripts: list[Any]) -> None:
        for transcript in transcripts:
            assert format.problems(format.render(paired(format.parse(transcript)))) == ()

    @_checked
    @given(messages=legal_conversations())
    def test_every_request_is_legal(self, format: Format, messages: tuple[Message, ...]) -> None:
        assert format.problems(format.render(messages)) == ()

    @pytest.mark.parametrize("fault", ILLEGAL)
    def test_the_rules_refuse_what_no_provider_takes(self, format: Format, fault: str) -> None:
        assert format.problems(format.render(ILLEGAL[fault])), fault

    @_checked
    @given(messages=legal_conversations())
    def test_equal_messages_are_equal_bytes_and_new_values(
        self, format: Format, messages: tuple[Message, ...]
    ) -> None:
        first, second = format.render(messages), format.render(copy.deepcopy(messages))
        spelled = json.dumps(second)
        assert json.dumps(first) == spelled
        for row in first["messages"]:
            row.clear()
        first.clear()
        assert json.dumps(second) == spelled == json.dumps(format.render(messages))

    @_checked
    @given(messages=legal_conversations())
    def test_one_more_message_only_lengthens_the_end(
        self, format: Format, messages: tuple[Message, ...]
    ) -> None:
        for length in range(1, len(messages)):
            shorter, longer = format.render(messages[:length]), format.render(messages[: length + 1])
            for part in ("system", "messages"):
                begun = json.dumps(shorter.get(part, [])).rstrip("]}")
                assert json.dumps(longer.get(part, [])).startswith(begun)

    @_checked
    @given(messages=legal_conversations())
    def test_every_request_is_utf8_json(self, format: Format, messages: tuple[Message, ...]) -> None:
        json.dumps(format.render(messages), ensure_ascii=False, allow_nan=False).encode("utf-8")

    def test_opaque_parts_return_to_their_maker_alone(self, format: Format) -> None:
        for provider, expected in ((format.name, True), ("somebody-else", False)):
            body = json.dumps({"type": "kept", "secret": "s3cret", "signature": "c2ln"})
            said = (Text("Hello."), Opaque(provider, "kept", body, "s3cret"))
            marked = Text("Hello.", Opaque(provider, "text", '{"beside": "b3side"}'))
            request = json.dumps(format.render((Message("user", said), Message("user", (marked, Text("."))))))
            assert ("s3cret" in request, "b3side" in request) == (expected, expected)

    @_checked
    @given(request=_garbage)
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


def _kept(messages: Sequence[Message], format: Format, losses: frozenset[str]) -> list[Fact]:
    return [fact for fact in facts(messages, format.name) if not fact.losses & losses]
