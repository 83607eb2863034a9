"""A real model over the OpenAI protocol, on loopback. Fetched once (118 MB); see decision 0006."""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest

from pagein.errors import ConfigurationError
from pagein.models import ModelOverflow, ModelRequest, RetryingModel, RetryPolicy
from pagein.models.openai_chat import OpenAIModel
from tests._support.local_model import LocalModel

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def local() -> Iterator[LocalModel]:
    try:
        model = LocalModel.installed()
    except ConfigurationError as error:
        if os.environ.get("PAGEIN_LOCAL_MODEL") == "required":
            raise
        pytest.skip(str(error))
    with model as served:
        yield served


def model_of(local: LocalModel, **options: Any) -> OpenAIModel:
    return OpenAIModel(local.name, base_url=local.openai, window=local.window, options={"temperature": 0}, **options)


RUN = "\n".join(f"step {n}: ran pytest tests/test_{n}.py, {n} failed, opened src/app_{n}.py" for n in range(12))


def test_it_writes_in_both_colours_and_says_what_it_cost(local: LocalModel) -> None:
    ask = ModelRequest.from_text(f"Summarise this run in two sentences.\n\n{RUN}", max_tokens=48, timeout=120)
    for reply in (model_of(local).write(ask), asyncio.run(model_of(local).awrite(ask))):
        assert reply.text.strip()
        assert reply.usage is not None
        assert reply.usage.input_tokens >= local.tokens(RUN)
        assert 0 < reply.usage.output_tokens <= 48 + 2


def test_what_does_not_fit_is_an_overflow_and_teaches_the_window(local: LocalModel) -> None:
    mistaken = OpenAIModel(local.name, base_url=local.openai, window=100_000)
    patient = RetryingModel(mistaken, retry=RetryPolicy(attempts=2))
    with pytest.raises(ModelOverflow) as caught:
        patient.write(ModelRequest.from_text(RUN * 12, timeout=120))
    assert caught.value.window == patient.window == local.window
    assert caught.value.requested is not None
    assert caught.value.requested >= local.tokens(RUN * 12)


def test_a_wait_that_is_given_up_leaves_the_server_well(local: LocalModel) -> None:
    long = ModelRequest.from_text("Count to a thousand.", max_tokens=200, timeout=60)

    async def give_up() -> None:
        task = asyncio.ensure_future(model_of(local).awrite(long))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert model_of(local).write(ModelRequest.from_text("Say yes.", max_tokens=4, timeout=200)).text
