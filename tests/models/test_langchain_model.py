"""A chat model of LangChain as a model: it is recognised, and its messages are read as each integration writes them."""

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage

from pagein.models import ModelRefused, ModelRequest, as_model
from pagein.models.langchain import LangChainModel

pytestmark = pytest.mark.slow


def test_a_chat_model_is_a_model():
    chat = FakeListChatModel(responses=["from LangChain"])
    assert isinstance(as_model(chat), LangChainModel)
    assert as_model(chat).write(ModelRequest.from_text("x")).text == "from LangChain"


@pytest.mark.parametrize(
    ("message", "text", "finish"),
    [
        (AIMessage("plain", response_metadata={"stop_reason": "end_turn"}), "plain", "stop"),
        (AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, "b"]), "ab", "stop"),
        (AIMessage("cut", response_metadata={"done_reason": "length"}), "cut", "length"),
        (AIMessage("cut", response_metadata={"finish_reason": "MAX_TOKENS"}), "cut", "length"),
        (AIMessage("odd", response_metadata={"finish_reason": "tool_calls"}), "odd", "other"),
    ],
)
def test_langchain_messages_of_each_integration_are_read(message, text, finish):
    class Chat:
        model_name = "gpt-4o-mini"

        def invoke(self, messages, **limits):
            assert limits == {"max_tokens": 9}
            return message

    model = LangChainModel(Chat())
    reply = model.write(ModelRequest.from_text("x", max_tokens=9))
    assert (reply.text, reply.finish, model.window) == (text, finish, 128_000)


def test_langchain_withholding_is_a_refusal():
    class Chat:
        def invoke(self, messages, **limits):
            return AIMessage("", response_metadata={"finish_reason": "SAFETY"})

    with pytest.raises(ModelRefused, match="SAFETY"):
        LangChainModel(Chat()).write(ModelRequest.from_text("x"))
