"""Writers with the real SDKs' structured outputs, against a provider that enforces the schema of a request."""

import json

import pytest
from writing_runs import NAMES, served

from pagein.models import ModelRequest
from pagein.models.anthropic import AnthropicModel
from pagein.models.openai_chat import OpenAIModel
from pagein.summaries.reply_parser import REPLY_SCHEMA
from pagein.testing.provider import serve_app
from pagein.testing.provider.scripts import Answer
from tests._support.schema_provider import SchemaProvider, find_misfit, find_schema, find_schema_problems

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.slow

ENTRY = {"note": "seen in this part", "handles": []}
RECORD = {name: None if "anyOf" in part else [] for name, part in REPLY_SCHEMA["properties"].items()} | {
    "state": {"text": "the header tests are being mended", "note": "", "handles": []},
    "artifacts": [{"text": name, **ENTRY} for name in NAMES],
    "dead_ends": [{"text": "raising max_retries", "note": "it fails as before", "handles": []}],
}


def build_openai(url, **options):
    return OpenAIModel("gpt-4o-mini", base_url=f"{url}/v1", key_variable="TEST_MODEL_KEY", **options)


def build_anthropic(url, **options):
    return AnthropicModel("claude-x", window=200_000, base_url=url, key_variable="TEST_MODEL_KEY", **options)


def build_langchain(url, *, structured, **_):
    openai = pytest.importorskip("langchain_openai")
    from pagein.models.langchain import LangChainModel

    chat = openai.ChatOpenAI(model="gpt-4o-mini", base_url=f"{url}/v1", api_key="sk-x", max_retries=0)
    return LangChainModel(chat, structured=structured)


BUILDERS = pytest.mark.parametrize("build", [build_openai, build_anthropic, build_langchain])


@pytest.fixture
def provider():
    provider = SchemaProvider(lambda question: Answer(json.dumps(RECORD)))
    with serve_app(provider) as url:
        yield provider, url


@BUILDERS
def test_a_record_whose_form_the_provider_enforces_is_taken(host, provider, build):
    scripted, url = provider
    memory = host(summarizer=build(url, structured=True))
    memory.turns(0, 30)
    view = served(memory)
    text = "\n".join(str(message.content) for message in view.messages())
    assert "the header tests are being mended" in text
    assert "raising max_retries" in text
    assert scripted.illegal == ()
    protocols = {"/v1/messages": "messages"}
    schemas = [find_schema(protocols.get(row.path, "chat"), row.body) for row in scripted.received]
    assert schemas
    assert all(schema["properties"] == REPLY_SCHEMA["properties"] for schema in schemas)
    (writer,) = memory.report().writers
    assert (writer.refused, writer.taken > 0) == (0, True)


@BUILDERS
def test_without_the_option_no_schema_is_sent(provider, build):
    scripted, url = provider
    request = ModelRequest.from_text("Write.", max_tokens=500)
    assert json.loads(build(url, structured=False).write(request).text) == RECORD
    assert json.loads(build(url, structured=True).write(request).text) == RECORD  # a request without a schema
    assert [find_schema("messages", row.body) or find_schema("chat", row.body) for row in scripted.received] == [
        None
    ] * 2


@pytest.mark.parametrize("build", [build_openai, build_anthropic])
def test_a_streamed_answer_has_the_form_too(provider, build):
    scripted, url = provider
    model = build(url, structured=True, stream=True)
    request = ModelRequest.from_text("Write.", max_tokens=500)
    request = ModelRequest(request.messages, 500, schema=REPLY_SCHEMA)
    assert json.loads(model.write(request).text) == RECORD
    assert scripted.received[0].body["stream"] is True
    assert scripted.illegal == ()


def test_the_provider_refuses_what_real_ones_refuse(provider):
    scripted, url = provider
    assert list(find_schema_problems(REPLY_SCHEMA)) == []
    assert find_misfit(REPLY_SCHEMA, RECORD) == ""
    assert find_misfit(REPLY_SCHEMA, RECORD | {"done": ["x"]}) == "answer.done[0]"
    loose = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}, "required": []}
    with pytest.raises(Exception, match=r"additionalProperties|default"):
        build_openai(url, structured=True).write(ModelRequest(ModelRequest.from_text("x").messages, 50, schema=loose))
    assert len(scripted.received[0].problems) == 3
