"""A model by its name, a key by its variable, and what is said when one is missing."""

import importlib.util

import pytest

from pagein.errors import ConfigurationError, PageinError
from pagein.models import ModelError, ModelRefused, ModelRequest, as_model, model_named
from pagein.models.callables import CallableModel
from pagein.models.environment import redact_keys
from pagein.models.openai_chat import OpenAIModel
from pagein.testing.models import SECRET


def test_a_name_finds_its_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    small = model_named("openai:gpt-4o-mini")
    assert (small.name, small.window) == ("gpt-4o-mini", 128_000)
    assert model_named("anthropic:claude-haiku-4-5").window == 200_000
    routed = model_named("openrouter:meta-llama/llama-3.3-70b-instruct:free")
    assert routed.name == "meta-llama/llama-3.3-70b-instruct:free"
    assert routed.base_url == "https://openrouter.ai/api/v1"
    assert SECRET not in f"{small!r} {routed!r}"


def test_a_local_server_needs_no_key():
    local = model_named("ollama:qwen3:8b")
    assert (local.name, local.window) == ("qwen3:8b", 4_096)
    assert model_named("vllm:my-model", base_url="http://gpu:8000/v1", window=32_000).window == 32_000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai:gpt-4o-mini", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
        ("gpt-4o-mini", "maker:model"),
        ("openai:", "maker:model"),
        (":gpt-4o", "maker:model"),
        ("", "maker:model"),
        ("nobody:model", "anthropic, deepseek"),
    ],
)
def test_what_is_missing_is_named(name, message):
    with pytest.raises(ConfigurationError, match=message):
        model_named(name)


@pytest.mark.parametrize("maker", ["openai", "anthropic"])
def test_a_missing_sdk_is_named_with_its_cure(maker, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == maker else real(name, *rest))
    with pytest.raises(ConfigurationError, match=rf"pip install 'pagein\[{maker}\]'"):
        model_named(f"{maker}:x")


def test_an_option_that_does_not_exist_is_named():
    with pytest.raises(ConfigurationError, match="temprature"):
        model_named("ollama:qwen3", temprature=0)
    with pytest.raises(ConfigurationError, match="window"):
        model_named("ollama:qwen3", window=-1)


def test_a_key_is_read_when_it_is_needed(start_server, monkeypatch):
    server = start_server()
    model = OpenAIModel("fake", base_url=server.openai, key_variable="TEST_MODEL_KEY")
    monkeypatch.setenv("TEST_MODEL_KEY", "another-key")
    model.write(ModelRequest.from_text("x"))
    assert "another-key" in server.heard[0].headers["authorization"]
    monkeypatch.delenv("TEST_MODEL_KEY")
    with pytest.raises(ConfigurationError, match="TEST_MODEL_KEY"):
        model.write(ModelRequest.from_text("x"))


def test_whatever_can_write_is_a_model():
    assert isinstance(as_model(str.upper), CallableModel)
    assert as_model(str.upper).write(ModelRequest.from_text("x")).text == "X"
    mine = CallableModel(str.upper)
    assert as_model(mine) is mine
    with pytest.raises(ConfigurationError, match="int is no model"):
        as_model(3)
    with pytest.raises(ConfigurationError, match="maker:model"):
        as_model("gpt-4o")


def test_a_callable_that_returns_no_text_is_refused():
    for value in (3, b"x", ["x"], {"text": "x"}):
        with pytest.raises(ModelRefused, match="not text"):
            CallableModel(lambda prompt, value=value: value).write(ModelRequest.from_text("x"))
    with pytest.raises(ModelError):
        CallableModel(lambda prompt: None).write(ModelRequest.from_text("x"))


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-Ab12-_cd34EF. You can find",
        "x-api-key: sk-ant-api03-AAAA_bbbb-cccc",
        "{'Authorization': 'Bearer Ab12-_cd34EF.gh'}",
        "Authorization: Basic QWxhZGRpbjpPcGVuU2VzYW1l",
        "https://example.org/v1?api_key=Ab12cd34EF&x=1",
        "key AIzaSyA1234567890abcdefghij",
        "gsk_Ab12cd34EF56gh78 was refused",
        "AKIAIOSFODNN7EXAMPLE",
        "proxy http://user:Ab12cd34EF@proxy:3128 failed",
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.Ab12cd34EF",
        '"api_key": "Ab12cd34EF"',
        "password=Ab12cd34EF",
    ],
)
def test_keys_of_every_make_are_scrubbed(text):
    clean = redact_keys(text)
    secrets = ("Ab12", "AAAA_bbbb", "QWxhZG", "AIzaSy", "AKIAIOS", "eyJhbG", "cd34EF")
    assert not [secret for secret in secrets if secret in clean], clean
    assert "[key]" in clean


def test_what_is_no_key_stays():
    text = "model gpt-4o-mini: prompt is too long: 213462 tokens > 200000 maximum (request req_011abc)"
    assert redact_keys(text) == text
    assert len(redact_keys("x" * 100_000)) == 500
    assert redact_keys("a\ud83db") == "a?b"


def test_every_error_of_the_room_is_of_the_one_tree():
    assert issubclass(ModelError, PageinError)
