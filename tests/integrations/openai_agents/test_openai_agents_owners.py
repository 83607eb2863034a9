"""One session object for several users: nobody is shown what another said."""

import asyncio
import json

import owners_play
import pytest
from agents import Runner
from openai_agents_play import Model, agent_of, function_call

from pagein.errors import ConfigurationError
from pagein.integrations.openai_agents.session import PageinSession

pytestmark = pytest.mark.slow


def recorder(script=lambda _: "Noted."):
    sent = []

    def answer(items):
        sent.append(json.dumps(items, ensure_ascii=False))
        return script(items)

    return Model(answer), lambda: sent[-1]


@pytest.mark.parametrize("owner", ["user", "project", "tenant"])
def test_users_of_an_agent_never_see_each_other_s_words(tmp_path, owner):
    model, sent = recorder()
    sessions = PageinSession("chat", tmp_path / "run.db", budget=4_000, facts=True, **{owner: lambda context: context})
    agent = agent_of(model, *sessions.tools())

    async def run(user, text):
        session = sessions.bind(user)
        await Runner.run(agent, text, session=session, context=user, run_config=sessions.run_config())

    owners_play.talk(lambda user, text: asyncio.run(run(user, text)), sent=sent)
    for user in owners_play.USERS:
        assert len(asyncio.run(sessions.bind(user).get_items(-1))) == 2 * owners_play.TURNS
        assert owners_play.SECRETS[user] in str(sessions.bind(user).memory.steps)
    sessions.close()


def test_the_tools_serve_the_context_that_calls_them(tmp_path):
    def script(items):
        if items[-1].get("type") == "function_call_output":
            return str(items[-1]["output"])
        if "find" not in json.dumps(items[-1]):
            return "Noted."
        return [function_call("recall", {"query": "password"}, call_id=f"call-{len(items)}")]

    model, _ = recorder(script)
    sessions = PageinSession("chat", tmp_path / "run.db", budget=4_000, user=lambda context: context)
    agent = agent_of(model, *sessions.tools())

    async def run(user, text):
        session = sessions.bind(user)
        done = await Runner.run(agent, text, session=session, context=user, run_config=sessions.run_config())
        return done.final_output

    for user in owners_play.USERS:
        asyncio.run(run(user, owners_play.SECRETS[user]))
    for user in owners_play.USERS:
        found = asyncio.run(run(user, "find it"))
        assert owners_play.SECRETS[user] in found
        assert not any(owners_play.SECRETS[other] in found for other in owners_play.USERS if other != user)
    sessions.close()


def test_the_tools_work_in_a_run_without_a_session(tmp_path):
    """Nobody holds the user's session then but the tool."""

    def script(items):
        is_result = items[-1].get("type") == "function_call_output"
        return str(items[-1]["output"]) if is_result else [function_call("recall", {"query": "password"}, call_id="c")]

    sessions = PageinSession("chat", tmp_path / "run.db", budget=4_000, user=lambda context: context)
    bound = sessions.bind("ann")
    asyncio.run(bound.add_items([{"role": "user", "content": owners_play.SECRETS["ann"]}]))
    del bound
    agent = agent_of(Model(script), *sessions.tools())
    assert owners_play.SECRETS["ann"] in asyncio.run(Runner.run(agent, "Find it.", context="ann")).final_output
    sessions.close()


def test_a_session_of_nobody_and_of_another_is_refused(tmp_path):
    model, _ = recorder()
    sessions = PageinSession("chat", tmp_path / "run.db", budget=4_000, user=lambda context: context["id"])
    for use in (lambda: sessions.memory, lambda: asyncio.run(sessions.get_items())):
        with pytest.raises(ConfigurationError, match="use session"):
            use()
    for context in (None, {}, {"id": ""}, {"id": None}):
        with pytest.raises(ConfigurationError, match="user="):
            sessions.bind(context)
    ann, agent = sessions.bind({"id": "ann"}), agent_of(model)
    assert sessions.bind({"id": "ann"}) is ann
    with pytest.raises(ConfigurationError, match="another owner"):
        asyncio.run(Runner.run(agent, "Hi", session=ann, context={"id": "bob"}, run_config=ann.run_config()))
    sessions.close()


@pytest.mark.parametrize("owner", ["user", "project", "task", "tenant", None])
def test_notes_of_one_conversation_are_in_no_other(tmp_path, owner):
    """Facts of a session: their owner is the conversation, also where the log is read as an edited one."""
    names, options = ("ann", "bob"), {} if owner is None else {owner: lambda context: context}
    opened = [
        PageinSession("chat" if owner else name, tmp_path / "run.db", budget=4_000, facts=True, **options)
        for name in names
    ]
    sessions = [session.bind(name) if owner else session for session, name in zip(opened, names, strict=True)]
    for session, name in zip(sessions, names, strict=True):
        session.memory.call_tool("note", {"text": f"{name} keeps herons"})
    for session, name in zip(sessions, names, strict=True):
        shown = str(session.memory.to_messages()) + str(session.memory.facts.search("herons"))
        assert [other for other in names if f"{other} keeps herons" in shown] == [name]
    for session in (*sessions, *opened):
        session.close()
