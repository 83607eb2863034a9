"""Context-length errors in the wording of each provider, and what only looks like one."""

import time
from types import SimpleNamespace

import pytest

from pagein.events.steps import Usage
from pagein.models.errors import ModelOverflow
from pagein.models.overflow import Overflow, detect_overflow, http_status, is_silent_overflow

# Maker, HTTP status, what it says, the window and the request in it.
SAID = [
    ("anthropic", 400, "prompt is too long: 213462 tokens > 200000 maximum", 200_000, 213_462),
    ("anthropic with the answer", 400, ("input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, "
     "decrease input length or `max_tokens` and try again"), 200_000, 199_000),
    ("anthropic by bytes", 413, "Request exceeds the maximum size", None, None),
    ("openai", 400, ("This model's maximum context length is 128000 tokens. However, your messages resulted in 130112 "
     "tokens. Please reduce the length of the messages."), 128_000, 130_112),
    ("openai with the answer", 400, ("This model's maximum context length is 8192 tokens. However, you requested 10346 "
     "tokens (8346 in the messages, 2000 in the completion)."), 8_192, 10_346),
    ("openai responses", 400, ("Your input exceeds the context window of this model. Please adjust your input and try "
     "again."), None, None),
    ("openai by characters", 400, "Invalid 'messages[1].content': string too long. string_above_max_length", None, None),
    ("openai by the minute", 429, ("Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit "
     "30000, Requested 40210. The input or output tokens must be reduced in order to run successfully."), 30_000, 40_210),
    ("gemini", 400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
     1_048_576, 1_196_265),
    ("gemini without a count", 400, "The input token count exceeds the maximum number of tokens allowed 1,048,576.",
     1_048_576, None),
    ("bedrock claude", 400, ("An error occurred (ValidationException) when calling the Converse operation: The model "
     "returned the following errors: Input is too long for requested model."), None, None),
    ("bedrock nova", 400, "Too many input tokens. Max input tokens: 128000, request input token count: 150000",
     128_000, 150_000),
    ("xai", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812),
    ("groq", 400, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
     8_192, 9_000),
    ("groq without numbers", 400, "Please reduce the length of the messages or completion.", None, None),
    ("groq by the minute", 413, ("Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier "
     "`on_demand` on tokens per minute (TPM): Limit 6000, Requested 9044, please reduce your message size"), 6_000, 9_044),
    ("openrouter", 400, ("This endpoint's maximum context length is 32768 tokens. However, you requested about 40960 "
     "tokens (38000 of text input, 2960 in the output)."), 32_768, 40_960),
    ("llama.cpp", 400, "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
     4_096, 5_000),
    ("llama.cpp before", 400, "the request exceeds the available context size, try increasing it", None, None),
    ("llama-cpp-python", 400, ("This model's maximum context length is 8192 tokens. However, you requested 9100 tokens "
     "(9000 in the messages, 100 in the completion). Please reduce the length of the messages or completion."),
     8_192, 9_100),
    ("vllm", 400, ("This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in "
     "the messages, 10000 in the completion)."), 16_384, 122_946),
    ("vllm by the answer", 400, ("'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context "
     "length is 4096 tokens and your request has 20 input tokens (5000 > 4096 - 20)."), 4_096, None),
    ("vllm decoder", 400, ("The decoder prompt (length 17772) is longer than the maximum model length of 16384. Make sure "
     "that `max_model_len` is no smaller"), 16_384, 17_772),
    ("vllm before", 400, "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
     4_096, 25_938),
    ("vllm scheduler", 400, "Input prompt (35247 tokens) is too long and exceeds limit of 32768", 32_768, 35_247),
    ("sglang", 400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4_096, 5_000),
    ("tgi", 422, ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens "
     "and 512 `max_new_tokens`"), 4_096, 5_000),
    ("mistral", 400, ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context "
     "length"), 32_768, 40_000),
    ("kimi", 400, "Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)", 131_072, 140_000),
    ("copilot", 400, "prompt token count of 140000 exceeds the limit of 128000", 128_000, 140_000),
    ("cohere", 400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4100.",
     4_081, 4_100),
    ("fireworks", 400, "The prompt is too long: 140000, model maximum context length: 131071", 131_071, 140_000),
    ("qwen", 400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", 129_024, None),
    ("lm studio", 400, ("Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with "
     "context length of only 4096 tokens, which is not enough."), 4_096, 5_000),
    ("ollama", 400, "prompt too long; exceeded max context length by 300 tokens", None, None),
    ("ollama embeddings", 400, "the input length exceeds the context length", None, None),
    ("minimax", 400, "invalid params, context window exceeds limit (2013)", None, None),
    ("deepseek", 400, ("This model's maximum context length is 131072 tokens. However, you requested 140100 tokens (136000 "
     "in the messages, 4100 in the completion)."), 131_072, 140_100),
    ("zhipu", 400, "Prompt exceeds max length", None, None),
    ("cerebras", 413, "", None, None),
]  # fmt: skip

NOT_ONE = [
    "Too many tokens, please wait before trying again.",
    "ThrottlingException: Too many tokens per minute",
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Try again in 2s.",
    "You exceeded your current quota, please check your plan and billing details.",
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude",
    "Incorrect API key provided",
    "messages: roles must alternate",
    "Unsupported value: 'temperature' does not support 0.2 with this model.",
    "The server had an error while processing your request",
    "",
]


@pytest.mark.parametrize(
    ("status", "message", "window", "requested"), [row[1:] for row in SAID], ids=[row[0] for row in SAID]
)
def test_each_provider_is_understood(status, message, window, requested):
    overflow = detect_overflow(message, status)
    assert overflow is not None
    assert overflow.window == window
    assert requested is None or overflow.requested == requested


@pytest.mark.parametrize("message", NOT_ONE)
def test_what_only_looks_like_one_is_none(message):
    assert detect_overflow(message, 429) is None


def test_it_is_found_wherever_an_exception_keeps_it():
    class Odd(Exception):
        pass

    body = Odd("Error code: 400")
    body.status_code = 400
    body.body = {
        "error": {"message": "no", "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}
    }
    assert detect_overflow(body) == Overflow(4_096, 5_000)
    response = Odd("bad request")
    response.response = SimpleNamespace(status_code=400, text="prompt is too long: 9000 tokens > 8192 maximum")
    assert detect_overflow(response) == Overflow(8_192, 9_000)
    aws = Odd("failed")
    aws.response = {"Error": {"Message": "Max input tokens: 128000, request input token count: 150000"},
                    "ResponseMetadata": {"HTTPStatusCode": 400}}  # fmt: skip
    assert detect_overflow(aws) == Overflow(128_000, 150_000)
    assert http_status(aws) == 400
    outer = RuntimeError("the chain failed")
    outer.__cause__ = ValueError("maximum context length is 8192 tokens")
    assert detect_overflow(outer) == Overflow(8_192)
    assert detect_overflow(ModelOverflow("x", window=7, requested=8)) == Overflow(7, 8)


def test_a_bare_400_is_one_and_any_other_is_not():
    bare = Exception("Error code: 400")
    bare.status_code = 400
    assert detect_overflow(bare) == Overflow()
    explained = Exception("Error code: 400 - {'error': 'unknown field'}")
    explained.status_code = 400
    assert detect_overflow(explained) is None


def test_it_raises_nothing_whatever_it_is_given():
    class Hostile(Exception):
        def __str__(self):
            raise ValueError("no")

        @property
        def body(self):
            raise RuntimeError("not read yet")

        @property
        def response(self):
            raise RuntimeError("not read yet")

    assert detect_overflow(Hostile()) is None
    loop = ValueError("a")
    other = ValueError("b")
    loop.__cause__, other.__cause__ = other, loop
    assert detect_overflow(loop) is None
    cyclic = Exception("x")
    cyclic.body = {}
    cyclic.body["self"] = cyclic.body
    assert detect_overflow(cyclic) is None


@pytest.mark.parametrize(
    "unit", ["maximum context length is 9 ", "request too large ", "keep the first 1 tokens ", "9,", "("]
)
def test_a_long_text_is_read_quickly(unit):
    started = time.process_time()
    detect_overflow(unit * 200_000)
    assert time.process_time() - started < 30  # a square of six million takes hours


@pytest.mark.parametrize("number", ["0", "7", "99999999999999", "1,0,0"])
def test_a_number_that_is_no_window_is_not_learnt(number):
    assert detect_overflow(f"maximum context length is {number} tokens") == Overflow()


def test_more_input_than_window_is_an_overflow_without_a_word():
    assert is_silent_overflow(Usage(8_193), 8_192)
    assert not is_silent_overflow(Usage(8_192), 8_192)
    assert not is_silent_overflow(None, 8_192)
