"""One agent for several users: nobody is shown what another said."""

import asyncio

import owners_play
import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from pagein.errors import ConfigurationError
from pagein.integrations import _threads
from pagein.integrations.pydantic_ai.capability import Pagein

pytestmark = pytest.mark.slow


def recorder():
    sent = []

    def answer(messages, _):
        sent.append(ModelMessagesTypeAdapter.dump_json(list(messages)).decode())
        return ModelResponse(parts=[TextPart("Noted.")])

    return FunctionModel(answer), lambda: sent[-1]


@pytest.mark.parametrize("owner", ["user", "project", "tenant"])
def test_users_of_an_agent_never_see_each_other_s_words(tmp_path, owner):
    model, sent = recorder()
    pages = Pagein(tmp_path / "run.db", conversation="chat", budget=4_000, facts=True, **{owner: lambda ctx: ctx.deps})
    agent, states = Agent(model, deps_type=str, capabilities=[pages]), {}

    def say(user, text):
        done = asyncio.run(agent.run(text, deps=user, message_history=states.get(user)))
        states[user] = done.all_messages()

    owners_play.talk(say, sent=sent)
    for user in owners_play.USERS:
        assert owners_play.SECRETS[user] in str(pages.history(**{owner: user}))
        assert len(pages.history(**{owner: user})) == 2 * owners_play.TURNS
    with pytest.raises(ConfigurationError, match=f"{owner}="):
        pages.memory()
    pages.close()


def test_a_call_of_nobody_is_refused(tmp_path):
    model, _ = recorder()
    pages = Pagein(tmp_path / "run.db", budget=4_000, user=lambda ctx: ctx.deps)
    agent = Agent(model, deps_type=str, capabilities=[pages])
    with pytest.raises(ConfigurationError, match="user= names nobody"):
        asyncio.run(agent.run("Hi", deps=None))
    pages.close()


@pytest.mark.parametrize("owner", ["user", "project", "task", "tenant"])
def test_notes_of_one_owner_are_shown_to_no_other(tmp_path, owner):
    shown = {}

    def answer(messages, _):
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            return ModelResponse(parts=[TextPart("Noted.")])
        name = str(messages[-1].parts[-1].content)
        shown[name] = ModelMessagesTypeAdapter.dump_json(list(messages)).decode()
        return ModelResponse(parts=[ToolCallPart("note", {"text": f"{name} keeps herons"})])

    pages = Pagein(tmp_path / "run.db", conversation="chat", budget=4_000, facts=True, **{owner: lambda ctx: ctx.deps})
    agent, names = Agent(FunctionModel(answer), deps_type=str, capabilities=[pages]), ("ann", "bob")
    states = {}
    for name in names * 2:
        states[name] = asyncio.run(agent.run(name, deps=name, message_history=states.get(name))).all_messages()
    for name in names:
        assert [other for other in names if f"{other} keeps herons" in shown[name]] == [name]
    pages.close()


def test_a_run_stays_its_user_s_and_more_users_than_are_kept_open_find_their_own(tmp_path, monkeypatch):
    """A tool signs another user in: the run that called it goes on as the first one's."""

    def answer(messages, _):
        last = messages[-1].parts[-1]
        sent.append(ModelMessagesTypeAdapter.dump_json(list(messages)).decode())
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"So: {last.content}")])
        name = next((name for name in ("sign_in", "recall") if name in str(last.content)), None)
        calls = {"sign_in": {"user": "bob/../ann"}, "recall": {"query": "password"}}
        return ModelResponse(parts=[ToolCallPart(name, calls[name]) if name else TextPart("Noted.")])

    monkeypatch.setattr(_threads, "MAX_OPEN", 2)
    sent, states = [], {}
    pages = Pagein(tmp_path / "run.db", conversation="chat", budget=4_000, user=lambda ctx: ctx.deps["user"])
    agent = Agent(FunctionModel(answer), deps_type=dict, capabilities=[pages])

    @agent.tool
    def sign_in(ctx: RunContext[dict], user: str) -> str:
        ctx.deps["user"] = user
        return "done"

    def say(user, text):
        done = asyncio.run(agent.run(text, deps={"user": user}, message_history=states.get(user)))
        states[user] = done.all_messages()
        return done.output

    for user in owners_play.USERS:
        say(user, owners_play.SECRETS[user])
    say("ann", "sign_in")
    for user in owners_play.USERS:
        found = say(user, "recall")
        assert [other for other in owners_play.USERS if owners_play.SECRETS[other] in found] == [user]
    for text in sent:
        assert sum(secret in text for secret in owners_play.SECRETS.values()) == 1
    assert [len(pages.history(user=user)) for user in owners_play.USERS] == [10, 6, 6]
    assert len(pages._conversations._open) == 2
    with pytest.raises(ConfigurationError, match="answers to another user"):
        asyncio.run(agent.run("Hello.", deps={"user": "carl"}, message_history=states["ann"]))
    pages.close()
