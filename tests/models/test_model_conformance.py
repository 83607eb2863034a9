"""Each model that ships keeps the contract, over real HTTP where it speaks HTTP. Both are an SdkModel."""

import asyncio
import threading

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from pagein.models.anthropic import AnthropicModel
from pagein.models.callables import CallableModel
from pagein.models.langchain import LangChainModel
from pagein.models.openai_chat import OpenAIModel
from pagein.models.retrying import RetryingModel, RetryPolicy
from pagein.testing.models import DOWN, EMPTY, HANG, LEAK, OVERFLOW, REFUSED, SECRET, ModelTests

pytestmark = pytest.mark.slow


class TestOpenAI(ModelTests):
    @pytest.fixture(params=[False, True], ids=["whole", "stream"])
    def make_model(self, request, start_server):
        return lambda *outcomes: OpenAIModel(
            "fake", base_url=start_server(*outcomes).openai, key_variable="TEST_MODEL_KEY", stream=request.param
        )


class TestAnthropic(ModelTests):
    @pytest.fixture(params=[False, True], ids=["whole", "stream"])
    def make_model(self, request, start_server):
        return lambda *outcomes: AnthropicModel(
            "fake", base_url=start_server(*outcomes).anthropic, key_variable="TEST_MODEL_KEY", stream=request.param
        )


def outcome_text(outcome, lock=threading.Lock()):  # noqa: B008 - one lock for all
    """Return or raise what a provider's SDK would for an outcome."""
    if outcome == DOWN:
        raise ConnectionError("no route to host")
    if outcome == OVERFLOW:
        raise ValueError("prompt is too long: 9000 tokens > 8192 maximum")
    if outcome == REFUSED:
        raise ValueError("temperature: expected at most 1")
    if outcome == LEAK:
        raise ValueError(f"api_key={SECRET}")
    return "" if outcome == EMPTY else outcome


class TestCallable(ModelTests):
    @pytest.fixture
    def make_model(self):
        def build(*outcomes):
            outcomes_left, lock = list(outcomes), threading.Lock()

            def call(prompt):
                with lock:
                    outcome = outcomes_left.pop(0)
                if outcome == HANG:
                    threading.Event().wait(5)
                return outcome_text(outcome)

            return CallableModel(call)

        return build


class TestAwaitedCallable(ModelTests):
    @pytest.fixture
    def make_model(self):
        def build(*outcomes):
            outcomes_left, lock = list(outcomes), threading.Lock()

            async def call(prompt):
                with lock:
                    outcome = outcomes_left.pop(0)
                if outcome == HANG:
                    await asyncio.sleep(5)
                return outcome_text(outcome)

            return CallableModel(call)

        return build


class Chat(BaseChatModel):
    """A LangChain chat model that follows a script."""

    outcomes: list
    requests: list = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.requests.append((messages, kwargs))
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, AIMessage):
            message = outcome
        else:
            if outcome == HANG:
                threading.Event().wait(5)
            usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
            message = AIMessage(
                outcome_text(outcome), usage_metadata=usage, response_metadata={"finish_reason": "stop"}
            )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        if self.outcomes[0] == HANG:
            await asyncio.sleep(5)
        return self._generate(messages, stop, run_manager, **kwargs)


class TestLangChain(ModelTests):
    @pytest.fixture
    def make_model(self):
        return lambda *outcomes: LangChainModel(Chat(outcomes=list(outcomes)), name="fake")


class TestRetryingModel(ModelTests):
    @pytest.fixture
    def make_model(self, start_server):
        once = RetryPolicy(attempts=1)
        return lambda *outcomes: RetryingModel(OpenAIModel("fake", base_url=start_server(*outcomes).openai), retry=once)


class TestRetryingModelOnAnAsyncModel(ModelTests):
    methods = ("awrite",)

    @pytest.fixture
    def make_model(self, start_server):
        class Awaited:
            """Async only."""

            def __init__(self, model):
                self.name, self.window, self.awrite = model.name, model.window, model.awrite

        once = RetryPolicy(attempts=1)
        return lambda *outcomes: RetryingModel(
            Awaited(OpenAIModel("fake", base_url=start_server(*outcomes).openai)), retry=once
        )
