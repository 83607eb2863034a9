"""Native Anthropic transcripts. They come back equal up to ``canonical``, which says the documented equivalences."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
MARK = {"cache_control": {"type": "ephemeral"}}


def text(content, **more):
    return {"type": "text", "text": content, **more}


def use(call_id, name="bash", arguments=None, **more):
    return {
        "type": "tool_use",
        "id": call_id,
        "name": name,
        "input": {"command": "ls"} if arguments is None else arguments,
        **more,
    }


def result(call_id, content="ok", **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def user(*blocks):
    return {"role": "user", "content": list(blocks) or "Go on."}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks) or "Done."}


def thinking(content="Hm.", signature="c2lnbmF0dXJl"):
    return {"type": "thinking", "thinking": content, "signature": signature}


REDACTED = {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "url": "https://example.org",
            "title": "Rain",
            "encrypted_content": "ZW5j",
            "page_age": None,
        }
    ],
}
CITATION = {
    "type": "char_location",
    "cited_text": "Ship.",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 5,
}
DOCUMENT = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "Ship."},
    "title": "Plan",
    "citations": {"enabled": True},
}

NAMED = {
    "a question": {"messages": [user()]},
    "a question in one block": {"messages": [user(text("Hello"))]},
    "instructions as text": {"system": "Be brief.", "messages": [user(), assistant(), user()]},
    "instructions as blocks": {"system": [text("One."), text("Two.", **MARK)], "messages": [user()]},
    "a call": {"messages": [user(), assistant(text("I look."), use("toolu_01")), user(result("toolu_01"))]},
    "a call without words": {"messages": [user(), assistant(use("toolu_01")), user(result("toolu_01"), text("And then?"))]},
    "parallel calls": {
        "messages": [
            user(),
            assistant(text("Both."), use("toolu_a"), use("toolu_b", "read", {"path": "é.py", "lines": [1, None, 2.5, True, {"a": {}}]})),
            user(result("toolu_a", "1"), result("toolu_b", [text("2"), IMAGE])),
        ]
    },
    "words between and behind calls": {
        "messages": [
            user(),
            assistant(text("One"), use("toolu_a"), text("two"), text("three"), use("toolu_b"), use("toolu_c"), text("four")),
            user(result("toolu_a"), result("toolu_b"), result("toolu_c"), text("Good.")),
        ]
    },
    "a call before all words": {"messages": [user(), assistant(use("toolu_a"), text("Sent.")), user(result("toolu_a"))]},
    "an input of nothing": {"messages": [user(), assistant(use("toolu_a", "now", {})), user(result("toolu_a"))]},
    "results of every kind": {
        "messages": [
            user(),
            assistant(*(use(f"toolu_{number}") for number in range(8))),
            user(
                result("toolu_0", "text"),
                result("toolu_1", [text("text", **MARK), IMAGE, DOCUMENT]),
                result("toolu_2", "exit 1", is_error=True),
                result("toolu_3", [text("exit 2")], is_error=True),
                {"type": "tool_result", "tool_use_id": "toolu_4"},
                result("toolu_5", None, is_error=False),
                result("toolu_6", [{"type": "search_result", "source": "https://e.org", "title": "T", "content": [text("found")]}], **MARK),
                result("toolu_7", [{"type": "tool_reference", "tool_name": "bash"}], toolset_name="browser"),
            ),
        ]
    },
    "images": {
        "messages": [
            user(
                IMAGE,
                {**IMAGE, **MARK},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/b.png", "more": 1}},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ"}},
                {**IMAGE, "transformations": {"oversized": "resize"}},
                text("Compare."),
            )
        ]
    },
    "documents": {
        "messages": [
            user(
                DOCUMENT,
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, "context": None, **MARK},
                {"type": "document", "source": {"type": "content", "content": [text("one"), text("two")]}},
                {"type": "container_upload", "file_id": "file_1"},
                text("Summarise."),
            ),
            assistant(text("Ship", citations=[CITATION]), text(" soon.", citations=[])),
            user(),
        ]
    },
    "thinking before a call": {
        "messages": [user(), assistant(thinking(), use("toolu_a")), user(result("toolu_a")), assistant(thinking("So."), text("Two.")), user()]
    },
    "thinking not shown": {"messages": [user(), assistant(thinking(""), text("Look."), use("toolu_a")), user(result("toolu_a"))]},
    "redacted thinking": {"messages": [user(), assistant(thinking(), REDACTED, text("Look."), use("toolu_a")), user(result("toolu_a"))]},
    "thinking between calls": {
        "messages": [user(), assistant(thinking("1"), text("a"), thinking("2"), use("toolu_a"), use("toolu_b")), user(result("toolu_a"), result("toolu_b"))]
    },
    "the provider's own tools": {
        "messages": [user(), assistant(thinking(), SEARCH, FOUND, text("It rained.", citations=[]), use("toolu_a")), user(result("toolu_a"))]
    },
    "the provider's tools of tomorrow": {
        "messages": [
            user(),
            assistant(
                {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "m", "input": {"a": None}},
                {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": [text("a")]},
                {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
                {"type": "from_tomorrow", "nested": {"deep": [None, 1.5]}},
                text("Done."),
            ),
            user(),
        ]
    },
    "the provider's own compaction": {
        "messages": [
            user(),
            assistant({"type": "compaction", "content": "Earlier: a plan.", "signature": "c2ln", "encrypted_content": None}, text("On we go.")),
            user(),
        ]
    },
    "a call with a caller": {
        "messages": [
            user(),
            assistant(use("toolu_a", caller={"type": "direct"}, toolset_name="computer", **MARK)),
            user(result("toolu_a")),
        ]
    },
    "two of one role in a row": {
        "messages": [
            user(),
            user(text("Wait."), text("No.")),
            assistant(text("A")),
            assistant(text("B"), use("toolu_a")),
            user(result("toolu_a")),
            user(text("Thanks.")),
        ]
    },
    "a whole response": {
        "messages": [
            user(),
            {
                "id": "msg_01",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5",
                "content": [text("Hello.", citations=None)],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 3},
            },
            user(),
        ]
    },
    "every script": {"messages": [user(text("Ünïcödé 漢字 🙂 \u2028 e\u0301 \x00 </system> {{braces}}"))]},
}  # fmt: skip

TRANSCRIPTS = list(NAMED.values())


def canonical(request):
    """Strings are one block, messages of one role in a row are one, nulls and defaults are absent, silence is marked."""
    messages = []
    for message in request["messages"]:
        content = [block(row) for row in as_blocks(message["content"])]
        if messages and messages[-1]["role"] == message["role"]:
            messages[-1]["content"] += content
        else:
            messages.append({"role": message["role"], "content": content})
    system = [block(row) for row in as_blocks(request.get("system", []))]
    return {"system": system, "messages": messages} if system else {"messages": messages}


def as_blocks(content):
    return [text(content)] if isinstance(content, str) else content


def block(row):
    if row["type"] not in {"text", "image", "tool_use", "tool_result"}:
        return row
    fields = {key: value for key, value in row.items() if value is not None and (key, value) != ("is_error", False)}
    return {**fields, "content": fields.get("content", "(no output)")} if row["type"] == "tool_result" else fields
