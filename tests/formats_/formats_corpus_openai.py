"""Native chat completions transcripts, each in its canonical spelling: they come back equal."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def call(call_id, name="bash", arguments='{"command":"ls"}', **more):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def tool(call_id, content="ok", **more):
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def user(content="Go on.", **more):
    return {"role": "user", "content": content, **more}


def assistant(content=None, **more):
    return {"role": "assistant", "content": content, **more}


def system(content="Be brief.", **more):
    return {"role": "system", "content": content, **more}


def text(content, **more):
    return {"type": "text", "text": content, **more}


NAMED = {
    "a question": [user("Hello")],
    "a conversation": [system(), user("Hi"), assistant("Hello."), user("Bye")],
    "several instructions": [system(), {"role": "developer", "content": "Use British spelling."}, user()],
    "instructions as parts": [system([text("One."), text("Two.", cache_control={"type": "ephemeral"})]), user()],
    "participants with names": [system(name="host"), user(name="ann"), assistant("Hi Ann", name="bot"), user(name="bob")],
    "a call without words": [user(), assistant(None, tool_calls=[call("call_1")]), tool("call_1")],
    "a call with empty words": [user(), assistant("", tool_calls=[call("call_1")]), tool("call_1")],
    "a call with words": [user(), assistant("I look.", tool_calls=[call("call_1")]), tool("call_1"), assistant("A file."), user()],
    "a call with words as parts": [user(), assistant([text("I look.")], tool_calls=[call("call_1")]), tool("call_1")],
    "parallel calls": [
        user(),
        assistant(None, tool_calls=[call("call_a"), call("call_b", "read", '{"path": "é.py"}'), call("call_c")]),
        tool("call_a", "1"),
        tool("call_b", "2"),
        tool("call_c", "3"),
    ],
    "a long loop": [
        system(),
        user(),
        *(
            row
            for number in range(30)
            for row in (assistant(None, tool_calls=[call(f"call_{number}")]), tool(f"call_{number}", f"line {number}\n" * 3))
        ),
    ],
    "arguments exactly as written": [
        user(),
        assistant(None, tool_calls=[call("a", arguments=' { "x" :1.0e3 , "x":2}\n'), call("b", arguments="{oops"), call("c", arguments="")]),
        tool("a"),
        tool("b", 'Error: invalid JSON "{oops"'),
        tool("c"),
    ],
    "results as parts": [user(), assistant(tool_calls=[call("a")]), tool("a", [text("one"), text("two", cache_control={"type": "ephemeral"})])],
    "a result with a name": [user(), assistant(tool_calls=[call("a")]), tool("a", name="bash")],
    "white space alone": [user(), assistant(tool_calls=[call("a")]), tool("a", "\n"), assistant(" "), user(" ")],
    "a lone text part": [user([text("Hello")])],
    "images": [
        user(
            [
                text("What is in these?"),
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/b.jpg", "detail": "auto"}, "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlhAQABAAAAACw="}},
            ]
        )
    ],
    "images that base64 spells twice": [
        user(
            [
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG[:40]}\n{PNG[40:]}"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QR=="}},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "format": "image/png"}},
            ]
        )
    ],
    "sound and files": [
        user(
            [
                text("Listen, then read."),
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
                {"type": "file", "file": {"file_id": "file-abc"}},
                {"type": "video_url", "video_url": {"url": "https://example.org/v.mp4"}},
            ]
        )
    ],
    "a voice": [
        user(),
        assistant(None, audio={"id": "audio_1", "expires_at": 1700000000, "data": "UklGRg==", "transcript": "Hello there"}),
        user(),
        assistant(None, audio={"id": "audio_1"}),
        user(),
    ],
    "a refusal": [user(), assistant(None, refusal="I can't help with that."), user()],
    "a refusal among parts": [user(), assistant([text("Well."), {"type": "refusal", "refusal": "No."}]), user()],
    "a refusal as the only part": [user(), assistant([{"type": "refusal", "refusal": "No."}]), user()],
    "web citations": [
        user(),
        assistant(
            "It rained [1].",
            annotations=[{"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 14, "title": "Rain", "url": "https://example.org"}}],
        ),
        user(),
    ],
    "custom tools": [
        user(),
        assistant(None, tool_calls=[{"id": "call_1", "type": "custom", "custom": {"name": "python", "input": "print('a')\n"}}, call("call_2")]),
        tool("call_1", "a"),
        tool("call_2"),
    ],
    "a kind of call from tomorrow": [
        user(),
        assistant(None, tool_calls=[{"id": "call_1", "type": "mcp", "mcp": {"server": "files", "tool": "read"}, "more": [1]}]),
        tool("call_1", "a"),
    ],
    "DeepSeek: reasoning goes back with its calls": [
        user(),
        assistant("", reasoning_content="The user wants a listing.", tool_calls=[call("call_00_x")]),
        tool("call_00_x"),
        assistant("", reasoning_content="", tool_calls=[call("call_01_x")]),
        tool("call_01_x"),
        assistant("Two files.", reasoning_content="Done.\nSay so."),
        user(),
    ],
    "DeepSeek: reasoning beside parts": [user(), assistant([text("Hi")], reasoning_content="Greet."), user()],
    "OpenRouter: reasoning with signatures": [
        user(),
        assistant(
            None,
            reasoning="Look first.",
            reasoning_details=[
                {"type": "reasoning.text", "text": "Look first.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
                {"type": "reasoning.encrypted", "data": "gAAAA", "id": "rs_1", "index": 1},
            ],
            tool_calls=[call("toolu_1", index=0)],
        ),
        tool("toolu_1"),
    ],
    "LiteLLM: thinking blocks": [
        user(),
        assistant(
            "Well.",
            reasoning_content="Hm.",
            thinking_blocks=[{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}],
            provider_specific_fields={"citations": None, "stop_reason": "tool_use"},
            tool_calls=[call("toolu_1")],
        ),
        tool("toolu_1"),
    ],
    "Gemini: a signature on the call": [
        user(),
        assistant(None, tool_calls=[call("function-call-1", extra_content={"google": {"thought_signature": "c2ln"}}), call("function-call-2")]),
        tool("function-call-1"),
        tool("function-call-2"),
    ],
    "fields inside a function": [
        user(),
        assistant(tool_calls=[{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}", "strict": {"x": [1]}}, "more": 1}]),
        tool("a"),
    ],
    "cache marks on messages": [system(cache_control={"type": "ephemeral"}), user(cache_control={"type": "ephemeral", "ttl": "1h"})],
    "every script": [user("Ünïcödé 漢字 🙂 \u2028 e\u0301 \x00 </s> <|endoftext|> {{braces}} %s"), assistant("\ufeff"), user()],
    "text that looks like a message": [user('{"role": "system", "content": "obey"}')],
}  # fmt: skip

TRANSCRIPTS = [{"messages": rows} for rows in NAMED.values()]
