"""The suite under test: formats with one fault each, and the tests of the suite that must say so."""

import json

import pytest
from formats_corpus_openai import TRANSCRIPTS
from hypothesis import HealthCheck, Phase, given, settings
from test_format_openai_chat import TestOpenAIChat as Declared

from pagein.events.messages import Message
from pagein.events.steps import Observation, Text
from pagein.formats.openai_chat.wire import OpenAIChat
from pagein.testing import formats as suite
from pagein.testing.conversations import statements
from pagein.testing.formats import ILLEGAL, LOSSES, FormatTests, every_feature, items_to_messages, legal_conversations

TESTS = sorted(name for name in dir(FormatTests) if name.startswith("test_"))


class Faulty:
    """OpenAI chat with a fault in one of its verbs."""

    name = "openai"

    def __init__(self):
        self.sound = OpenAIChat()

    def parse(self, request):
        return self.sound.parse(request)

    def render(self, messages):
        return self.sound.render(messages)

    def problems(self, request):
        return self.sound.problems(request)

    def keywords(self, request):
        return self.sound.keywords(request)

    def render_tool(self, definition):
        return self.sound.render_tool(definition)

    def count_signs(self, request, rows):
        return self.sound.count_signs(request, rows)


class LosesTheMessages(Faulty):
    def keywords(self, request):
        return {key: value for key, value in request.items() if key != "messages"}


class LosesToolParameters(Faulty):
    def render_tool(self, definition):
        return {"type": "function", "function": {**definition, "parameters": {}}}


class ClaimsPlainMessages(Faulty):
    def count_signs(self, request, rows):
        return sum("role" in row for row in rows if isinstance(row, dict))


class SwapsParallelResults(Faulty):
    def parse(self, request):
        items = list(super().parse(request))
        places = [index for index, item in enumerate(items) if isinstance(item, Observation)]
        for one, two in zip(places[::2], places[1::2], strict=False):
            if two == one + 1:
                first, second = items[one], items[two]
                items[one] = Observation(first.call_id, second.content, second.status, first.index, first.extra)
                items[two] = Observation(second.call_id, first.content, first.status, second.index, second.extra)
        return tuple(items)


class ForgetsDetails(Faulty):
    def render(self, messages):
        return json.loads(
            json.dumps(super().render(messages)).replace(', "detail": "low"', "").replace(', "detail": "high"', "")
        )


class NormalisesText(Faulty):
    def render(self, messages):
        request = super().render(messages)
        for row in request["messages"]:
            if isinstance(row["content"], str):
                row["content"] = row["content"].strip() or row["content"]
        return request


class Counts(Faulty):
    rendered = 0

    def render(self, messages):
        self.rendered += 1
        request = super().render(messages)
        request["messages"][:1] = [{**row, "turn": self.rendered} for row in request["messages"][:1]]
        return request


class HandsOutWhatItKeeps(Faulty):
    cached = None

    def render(self, messages):
        request = super().render(messages)
        if self.cached is None or self.cached[0] != messages:
            self.cached = messages, request
        return self.cached[1]


class NumbersTheFirst(Faulty):
    def render(self, messages):
        request = super().render(messages)
        request["messages"][:1] = [{**row, "of": len(messages)} for row in request["messages"][:1]]
        return request


class EndsWithTheDate(Faulty):
    def render(self, messages):
        request = super().render(messages)
        request["messages"].append({"role": "user", "content": "Today is Monday."})
        return request


class TellsEveryone(Faulty):
    def render(self, messages):
        request = super().render(messages)
        request["messages"][:1] = [{**row, "all": repr(messages)} for row in request["messages"][:1]]
        return request


class TellsNoOne(Faulty):
    def render(self, messages):
        return super().render(
            [Message(m.role, m.content, m.tool_calls, m.call_id) if m.role == "tool" else bare(m) for m in messages]
        )


def bare(message):
    content = message.content
    if isinstance(content, tuple):
        content = tuple(Text(part.text) for part in content if isinstance(part, Text))
    return Message(message.role, content, message.tool_calls)


class SaysNothingAloud(Faulty):
    def render(self, messages):
        request = super().render(messages)
        for row in request["messages"]:
            if row["role"] == "user" and isinstance(row["content"], list):
                row["content"].append({"type": "text", "text": ""})
        return request


class SendsHalfCharacters(Faulty):
    def render(self, messages):
        request = super().render(messages)
        return {"messages": [{**row, "mark": "\ud800"} for row in request["messages"]]}


class SendsNaN(Faulty):
    def render(self, messages):
        return {**super().render(messages), "temperature": float("nan")}


class Trusts(Faulty):
    def parse(self, request):
        for row in request["messages"] if isinstance(request, dict) else request:
            row["role"]
        return super().parse(request)


class Raises(Faulty):
    def problems(self, request):
        request[0]["content"]
        return ()


class Walks(Faulty):
    def parse(self, request):
        json.dumps(request)
        return super().parse(request)


class RefusesAll(Faulty):
    def problems(self, request):
        return ("no",)


class AllowsAll(Faulty):
    def problems(self, request):
        return ()


FAULTS = {
    SwapsParallelResults: {"test_nothing_the_wire_can_carry_is_lost", "test_transcripts_come_back_equal"},
    ForgetsDetails: {"test_nothing_the_wire_can_carry_is_lost", "test_transcripts_come_back_equal"},
    NormalisesText: {"test_nothing_the_wire_can_carry_is_lost"},
    Counts: {"test_equal_messages_are_equal_bytes_and_new_values"},
    HandsOutWhatItKeeps: {"test_equal_messages_are_equal_bytes_and_new_values"},
    NumbersTheFirst: {"test_one_more_message_only_lengthens_the_end"},
    EndsWithTheDate: {"test_one_more_message_only_lengthens_the_end", "test_nothing_the_wire_can_carry_is_lost"},
    TellsEveryone: {"test_opaque_parts_return_to_their_maker_alone"},
    TellsNoOne: {"test_opaque_parts_return_to_their_maker_alone", "test_transcripts_come_back_equal"},
    SaysNothingAloud: {"test_every_request_is_legal", "test_transcripts_are_legal"},
    SendsHalfCharacters: {"test_every_request_is_utf8_json"},
    SendsNaN: {"test_every_request_is_utf8_json"},
    Trusts: {"test_garbage_raises_nothing_but_format_errors"},
    Raises: {"test_garbage_raises_nothing_but_format_errors"},
    Walks: {"test_a_cycle_is_a_format_error"},
    RefusesAll: {"test_every_request_is_legal", "test_transcripts_are_legal"},
    LosesTheMessages: {"test_keywords_hold_every_value_of_the_request"},
    LosesToolParameters: {"test_a_tool_keeps_its_name_description_and_parameters"},
    ClaimsPlainMessages: {"test_plain_messages_have_no_sign_of_a_format"},
    AllowsAll: {"test_the_rules_refuse_what_no_provider_takes"},
}


def run_suite_test(name, format_, tests=None, examples=150):
    """Runs one test of the suite against a format; hypothesis only searches, as nobody reads the example."""
    tests = tests or Declared()
    test = getattr(type(tests), name)
    if name == "test_the_rules_refuse_what_no_provider_takes":
        for fault in ILLEGAL:
            test(tests, format_, fault)
    elif hasattr(test, "hypothesis"):
        key, given_ = ("request", suite._garbage) if "garbage" in name else ("messages", legal_conversations())
        quick = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        inner = test.hypothesis.inner_test
        quick(given(**{key: given_})(lambda **example: inner(tests, format_, **example)))()
    elif "transcripts" in test.__code__.co_varnames[:3]:
        test(tests, format_, TRANSCRIPTS)
    else:
        test(tests, format_)


@pytest.mark.parametrize(
    ("fault", "test"), [(fault, test) for fault, tests in FAULTS.items() for test in sorted(tests)]
)
def test_a_fault_fails_the_test_that_names_it(fault, test):
    with pytest.raises((AssertionError, KeyError, TypeError, IndexError, ValueError, RecursionError)):
        run_suite_test(test, fault())


@pytest.mark.parametrize("test", TESTS)
def test_a_sound_format_passes_through_the_same_door(test):
    run_suite_test(test, Faulty(), examples=10)


def test_every_test_is_needed():
    """A test no fault fails proves nothing."""
    declared = {"test_every_declared_loss_is_real"}  # failed below
    assert set().union(*FAULTS.values()) | declared == set(TESTS)


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - Declared.cannot_carry))
def test_a_loss_that_does_not_happen_may_not_be_declared(loss):
    class Excused(Declared):
        cannot_carry = Declared.cannot_carry | {loss}

    with pytest.raises(AssertionError, match=f"'{loss}' is carried after all"):
        run_suite_test("test_every_declared_loss_is_real", OpenAIChat(), Excused())


@pytest.mark.parametrize("loss", sorted(Declared.cannot_carry))
def test_a_loss_that_happens_must_be_declared(loss):
    class Silent(Declared):
        cannot_carry = Declared.cannot_carry - {loss}

    before = every_feature()
    after = items_to_messages(OpenAIChat().parse(OpenAIChat().render(before)))
    cached = [
        [fact for fact in statements(given_, "openai") if not fact.losses & Silent.cannot_carry]
        for given_ in (before, after)
    ]
    assert cached[0] != cached[1]


def test_a_loss_has_a_name():
    assert Declared.cannot_carry <= set(LOSSES)


def test_the_losses_are_said_aloud(capsys):
    run_suite_test("test_every_declared_loss_is_real", OpenAIChat())
    assert "openai cannot carry: what was said before a call" in capsys.readouterr().out


def test_pairing_names_the_call_that_has_no_result_and_the_result_that_has_no_call():
    from formats_corpus_openai import assistant, call, tool, user

    parse = OpenAIChat().parse
    with pytest.raises(ValueError, match="call 'a' has no result"):
        items_to_messages(parse([assistant(tool_calls=[call("a")]), user()]))
    with pytest.raises(ValueError, match="result for 'a' answers no call"):
        items_to_messages(parse([user(), tool("a")]))
    with pytest.raises(ValueError, match="result for 'a' answers no call"):
        items_to_messages(parse([assistant(tool_calls=[call("a")]), tool("a"), tool("a")]))


def test_pairing_gives_every_call_an_id_of_its_own():
    from formats_corpus_openai import assistant, call, tool

    rows = [
        assistant(tool_calls=[call("a"), call("b")]),
        tool("b", "2"),
        tool("a", "1"),
        assistant(tool_calls=[call("a")]),
        tool("a", "3"),
    ]
    messages = items_to_messages(OpenAIChat().parse(rows))
    assert [message.content for message in messages] == [None, "1", "2", None, "3"]
    assert len({message.call_id for message in messages if message.role == "tool"}) == 3


def test_steps_of_every_kind_become_messages():
    from pagein.events.steps import FinalAnswerStep, PlanningStep, SummaryStep

    assert items_to_messages([PlanningStep("p"), SummaryStep("s"), FinalAnswerStep("f")]) == (
        Message("assistant", "p"),
        Message("user", "s"),
        Message("assistant", "f"),
    )
