"""A client compacts its history: the list that it begins anew with the summary continues its run, and reaches back."""

import json
from itertools import count
from types import MappingProxyType

import pytest

from pagein import AgentMemory
from pagein.testing.provider import Answer
from tests.server.sdk_agents import CHAT_TOOL, FLAT_TOOL, GEMINI_TOOL, TOOL

pytestmark = pytest.mark.slow

RULE = "Never deploy on a Friday, whatever anybody says."
FACT = "The staging database of the billing service listens on port 48213, behind the host amber-falcon."
SUMMARY = """1. Primary request: the user wants the billing service moved to the new cluster, step by step.
2. Files: deploy/billing.yaml was read and changed twice; scripts/migrate.sh was written and tried once.
3. Errors: the first migration failed, as a lock was held; the second one went through without any.
4. Pending: the smoke tests of the billing service, and the removal of the old volumes after that."""
PROMPT = "Your task is to create a detailed summary of the conversation so far, with all that matters."
FILLER = "The migration goes on, and nothing in this sentence is worth a thought of anybody later on. "


def answering():
    """A script: a summary for whoever asks for one, each with a number, Claude's in the frame that it asks for."""
    numbers = count(1)

    def answer(question):
        if PROMPT not in json.dumps(question.body):
            return Answer("Done so far. " + FILLER * 3)
        summary = f"Summary {next(numbers)}.\n{SUMMARY}"
        is_claude = "claude" in question.body.get("model", "")
        return Answer(f"<analysis>\nIn order.\n</analysis>\n<summary>\n{summary}\n</summary>" if is_claude else summary)

    return answer


def user(text):
    return {"role": "user", "content": [{"type": "text", "text": text}]}


class Claude:
    """Claude Code: the summary comes back in the first message of the user, without its frame."""

    path, headers = "/v1/messages", MappingProxyType({"x-claude-code-session-id": "5a1e"})
    name = "claude-code:5a1e"
    beginning = ()

    def body(self, rows):
        return {
            "model": "claude-opus-4-8",
            "max_tokens": 200,
            "system": "You are Claude Code.",
            "messages": rows,
            "tools": [TOOL],
        }

    def user(self, text):
        return user(text)

    def said(self, answer):
        return [{"role": "assistant", "content": answer["content"]}]

    def text_of(self, answer):
        return answer["content"][-1]["text"]

    def compacted(self, first, summary):
        summary = summary.partition("<summary>")[2].partition("</summary>")[0].strip().replace("\n", "\n\n")
        text = (
            f"This session is being continued from a previous conversation that ran out of context. Summary:\n{summary}"
        )
        return [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nToday.\n</system-reminder>"}, {"type": "text", "text": text}]}]  # fmt: skip


class Codex:
    """Codex: the environment and the user's own messages stand before the summary, as they stood in the run."""

    path, headers = "/v1/responses", MappingProxyType({"session-id": "7c0d"})
    name = "codex:7c0d"
    beginning = ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>"}]},)  # fmt: skip

    def body(self, rows):
        return {"model": "gpt-5", "instructions": "You are Codex.", "input": rows, "tools": [FLAT_TOOL]}

    def user(self, text):
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}

    def said(self, answer):
        return answer["output"]

    def text_of(self, answer):
        return answer["output"][-1]["content"][0]["text"]

    def compacted(self, first, summary):
        text = f"Another language model started to solve this problem and produced a summary of its work:\n{summary}"
        return [*self.beginning, self.user(first), self.user(text)]


class Opencode:
    """opencode: the summary is a message of the assistant, behind a question of its own."""

    path, headers = "/v1/chat/completions", MappingProxyType({"x-session-id": "ses_31"})
    name = "session:ses_31"
    beginning = ({"role": "system", "content": "You are opencode."},)

    def body(self, rows):
        return {"model": "gpt-5", "messages": rows, "tools": [CHAT_TOOL]}

    def user(self, text):
        return {"role": "user", "content": text}

    def said(self, answer):
        return [answer["choices"][0]["message"]]

    def text_of(self, answer):
        return answer["choices"][0]["message"]["content"]

    def compacted(self, first, summary):
        return [*self.beginning, self.user("What did we do so far?"), {"role": "assistant", "content": summary}]


class Kimi(Opencode):
    """Kimi Code CLI: its session stands in the key of the prompt cache alone; the summary follows the user's first message."""

    key = "session_d60cff75-5876-4aad-93c5-8a5b3d0a0e4e"
    headers, name = MappingProxyType({}), f"session:{key}"

    def body(self, rows):
        return {**super().body(rows), "prompt_cache_key": self.key}

    def compacted(self, first, summary):
        notes = f"The conversation so far has been compacted to free up context.\n{summary}"
        return [*self.beginning, self.user(first), self.user(notes), self.user("Compaction is complete: continue.")]


class Gemini:
    """Gemini CLI: the summary stands behind its context, and words of the model's that nobody said follow."""

    path, headers = "/v1beta/models/gemini-3-pro-preview:generateContent", MappingProxyType({"x-session-id": "9e2b"})
    name = "session:9e2b"
    beginning = ()

    def body(self, rows):
        return {
            "systemInstruction": {"parts": [{"text": "You are Gemini CLI."}]},
            "contents": rows,
            "tools": [GEMINI_TOOL],
        }

    def user(self, text):
        return {"role": "user", "parts": [{"text": text}]}

    def said(self, answer):
        return [answer["candidates"][0]["content"]]

    def text_of(self, answer):
        return answer["candidates"][0]["content"]["parts"][-1]["text"]

    def compacted(self, first, summary):
        context = {"text": "<session_context>\nThis is the Gemini CLI.\n</session_context>"}
        thanks = {"role": "model", "parts": [{"text": "Got it. Thanks for the additional context!"}]}
        return [{"role": "user", "parts": [context, {"text": summary}]}, thanks]


class Play:
    """One client in its session, with the whole list that it hands over."""

    def __init__(self, made, client, **headers):
        self.client, self.http, self.headers = client, made.http(), {**client.headers, **headers}
        self.rows, self.first = list(client.beginning), ""

    def ask(self, *rows):
        """Hand over the list and these rows; returns what was said of it in the answer's header."""
        self.rows += rows
        answer = self.http.post(self.client.path, json=self.client.body(self.rows), headers=self.headers)
        assert answer.status_code == 200, answer.text
        self.rows += self.client.said(answer.json())
        self.newest = self.client.text_of(answer.json())
        return answer.headers["x-pagein"]

    def say(self, text):
        row = self.client.user(text)
        if self.rows and self.rows[-1]["role"] == "user" and isinstance(self.client, Claude):
            row = {
                "role": "user",
                "content": [*self.rows.pop()["content"], *row["content"]],
            }  # one message, as it sends it
        return self.ask(row)

    def work(self, turns=8):
        self.first = f"Move the billing service. {RULE}"
        self.say(self.first)
        self.say(FACT)
        for number in range(turns):
            self.say(f"Step {number}. {FILLER * 6}")

    def compact(self):
        """Ask for a summary through the proxy, and begin anew with it."""
        self.say(PROMPT)
        self.rows = self.client.compacted(self.first, self.newest)


def sent_text(made):
    return json.dumps(made.provider.received[-1].body)


CLIENTS = pytest.mark.parametrize(
    "client", [Claude(), Codex(), Opencode(), Kimi(), Gemini()], ids=["claude", "codex", "opencode", "kimi", "gemini"]
)


@CLIENTS
def test_a_list_with_the_summary_continues_the_run_and_reaches_back(stack, client):
    script = answering()
    made = stack(script, window=4_000)
    play = Play(made, client)
    play.work()
    play.compact()
    said = play.say("Go on with the smoke tests.")
    assert f"run={client.name};" in said
    assert "continues" in said
    assert "Step 3" not in sent_text(made), "what was said before is out of the view"
    assert sent_text(made).count("Pending: the smoke tests") == 1, "the summary stands where the client put it, alone"
    assert PROMPT not in sent_text(made), "the client's request for it is no word of the user's"
    assert RULE in sent_text(made), "the ledger holds"
    assert made.provider.illegal == ()
    said = play.say("Which port has the staging database of the billing service, behind amber-falcon?")
    assert "continues" not in said
    assert f"run={client.name};" in said
    assert FACT in sent_text(made), "it came back for the user's words"
    assert all(reading.tokens <= 4_000 for reading in (request.reading for request in made.provider.received))
    with made.memory(client.name) as memory:
        assert any(FACT in hit.text for hit in memory.recall("port of the staging database"))
        assert memory.verify().ok
        again = memory.request()
        assert not again.problem
        assert [branch.name for branch in memory.branches()] == ["main", "branch-1"]
    with AgentMemory.open(made.store, session=client.name, branch="main", readonly=True) as memory:
        assert PROMPT in str(memory.steps[-2].content), "the run of before is as it was"


@CLIENTS
def test_a_second_compaction_continues_too_and_so_does_a_server_that_was_started_again(stack, client):
    script = answering()
    made = stack(script, window=4_000)
    play = Play(made, client)
    play.work(4)
    play.compact()
    assert "continues" in play.say("Go on.")
    made = stack(script, window=4_000, store=made.store)
    play.http = made.http()
    said = play.say(f"Another fact: the volume is called velvet-harbour-17. {FILLER * 4}")
    assert "continues" not in said, "the list is known by what it says"
    play.compact()
    assert "continues" in play.say("Go on again.")
    play.say("Which port has the staging database of the billing service, behind amber-falcon?")
    assert FACT in sent_text(made), "before both compactions"
    with made.memory(client.name) as memory:
        assert [branch.name for branch in memory.branches()] == ["main", "branch-1", "branch-2"]
        texts = [str(step.content) for step in memory.steps]
    assert sum("velvet-harbour-17" in text for text in texts) == 1, "recorded once"
    assert RULE in sent_text(made)


def test_a_retry_of_the_first_list_is_the_same_again(stack):
    script = answering()
    made = stack(script, window=4_000)
    play = Play(made, Claude())
    play.work(3)
    play.compact()
    rows = play.rows
    bodies = []
    for _ in range(2):
        play.rows = list(rows)
        play.ask()
        bodies.append(made.provider.received[-1].body["messages"])
    assert bodies[0] == bodies[1]


def test_a_title_a_short_answer_and_another_name_begin_anew(stack):
    script = answering()
    made = stack(script, window=4_000)
    play = Play(made, Claude())
    play.work(2)
    play.compact()
    title = Play(made, Claude())
    assert "run=claude-code:5a1e~2;" in title.say(f"Write a title for this: Move the billing service. {RULE}")
    play.first, other = "", Play(made, Claude(), **{"x-claude-code-session-id": "ffff"})
    other.rows = list(play.rows)
    said = other.say("Go on.")
    assert "continues" not in said
    assert "run=claude-code:ffff;" in said


def test_no_tenant_continues_anothers_run(stack):
    script = answering()
    made = stack(script, window=4_000, tenant_secret="secret")
    play = Play(made, Claude(), **{"x-api-key": "one"})
    play.work(2)
    play.compact()
    stranger = Play(made, Claude(), **{"x-api-key": "two"})
    stranger.rows = list(play.rows)
    assert "continues" not in stranger.say("Go on.")
    assert "continues" in play.say("Go on.")


def test_observing_continues_too(stack):
    script = answering()
    made = stack(script, window=4_000, mode="observe")
    play = Play(made, Claude())
    play.work(2)
    play.compact()
    assert "continues" in play.say("Go on.")
    with made.memory("claude-code:5a1e") as memory:
        assert [branch.name for branch in memory.branches()] == ["main", "branch-1"]


def test_a_note_behind_the_newest_message_is_no_compaction(stack):
    # The second list has the first answer, and not the note before it: that had been taken for a summary of the run.
    made = stack(answering(), window=4_000)
    play, rows = Play(made, Opencode()), []
    for number in range(4):
        rows.append(play.client.user(f"Question {number}: which step comes next?"))
        play.rows = [*rows, play.client.user("[note] The user likes short answers, and sails on Thursdays.")]
        said = play.ask()
        assert "continues" not in said
        assert said.endswith("whole"), "it goes out as it came"
        rows.append(play.rows[-1])
    with made.memory(play.client.name) as memory:
        assert len(memory.branches()) == 1
