"""Requests to Bedrock's Converse API as its guide, boto3's examples and strands write them."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def user(*blocks):
    return {
        "role": "user",
        "content": [{"text": block} if isinstance(block, str) else block for block in blocks or ("Go.",)],
    }


def assistant(*blocks):
    return {"role": "assistant", "content": [{"text": block} if isinstance(block, str) else block for block in blocks]}


def use(call_id="tooluse_a", name="look", arguments=None, **beside):
    return {"toolUse": {**beside, "toolUseId": call_id, "name": name, "input": arguments or {}}}


def result(call_id="tooluse_a", *blocks, **beside):
    content = [{"text": block} if isinstance(block, str) else block for block in blocks or ("seen",)]
    return {"toolResult": {"toolUseId": call_id, "content": content, **beside}}


IMAGE = {"image": {"format": "png", "source": {"bytes": PNG}}}
POINT = {"cachePoint": {"type": "default"}}
DOCUMENT = {"document": {"format": "pdf", "name": "Plan (1)", "source": {"bytes": "JVBERg=="}}}


def reasoning(text="Hm.", **signature):
    return {"reasoningContent": {"reasoningText": {"text": text, **signature}}}


NAMED = {
    "a question": [user("Hello")],
    "an answer and another question": [user("Hello"), assistant("Hi."), user("And?")],
    "a call": [user(), assistant("I look.", use(arguments={"path": "a.py", "deep": [1, None]})), user(result())],
    "parallel calls": [user(), assistant(use("a:1"), use("b.2", "read")), user(result("a:1"), result("b.2", "one", "two"))],
    "a call before text": [user(), assistant(use(), "Looking."), user(result())],
    "results in JSON": [user(), assistant(use()), user(result("tooluse_a", {"json": {"temperature": 21.5, "rows": [None]}}))],
    "a failed result": [user(), assistant(use()), user(result("tooluse_a", "No such file.", status="error"))],
    "a result that says success": [user(), assistant(use()), user(result(status="success"))],
    "an empty result": [user(), assistant(use()), user({"toolResult": {"toolUseId": "tooluse_a", "content": []}})],
    "a failed result with an image": [user(), assistant(use()), user(result("tooluse_a", "No.", IMAGE, status="error"))],
    "images": [
        user(
            "What is in these?",
            IMAGE,
            {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a.jpg"}}}},
            {"image": {"format": "gif", "source": {"s3Location": {"uri": "s3://bucket/a", "bucketOwner": "123456789012"}}}},
        )
    ],
    "documents": [
        user(
            "Read.",
            DOCUMENT,
            {"document": {"format": "txt", "name": "Notes", "source": {"text": "Ship."}, "citations": {"enabled": True}}},
            {"document": {"name": "Parts", "source": {"content": [{"text": "a"}]}, "context": "c"}},
        )
    ],
    "sound and video": [
        user(
            "Listen.",
            {"audio": {"format": "wav", "source": {"bytes": "UklGRg=="}}},
            {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://bucket/v.mp4"}}}},
        )
    ],
    "reasoning": [
        user(),
        assistant(reasoning(signature="c2ln"), use()),
        user(result()),
        assistant({"reasoningContent": {"redactedContent": "eA=="}}, reasoning("Unsigned."), "Done."),
        user("Thanks."),
    ],
    "cache points": [user("Long.", POINT), assistant("Yes.", POINT), user("And?", {"cachePoint": {"type": "default", "ttl": "1h"}})],
    "guarded content": [user({"guardContent": {"text": {"text": "Check me.", "qualifiers": ["query"]}}}, "And this.")],
    "citations": [
        user(),
        assistant(
            {
                "citationsContent": {
                    "content": [{"text": "It rained."}],
                    "citations": [{"title": "Rain", "location": {"web": {"url": "https://e.org", "domain": "e.org"}}}],
                }
            }
        ),
        user("Really?"),
    ],
    "a tool of the provider": [
        user(),
        assistant(
            use("srv_1", "nova_grounding", type="server_tool_use"),
            {"toolResult": {"toolUseId": "srv_1", "content": [{"text": "Rain."}], "type": "nova_grounding_result"}},
            "It rains.",
        ),
        user("Fine."),
    ],
    "a search result": [
        user("Read.", {"searchResult": {"source": "https://e.org", "title": "Rain", "content": [{"text": "It rained."}], "citations": {"enabled": True}}})
    ],
    "words beside results": [user(), assistant(use()), user(result(), "And hurry.", POINT)],
    "every script": [user("Ünïcödé 漢字 🙂 \u2028 e\u0301 \x00")],
}  # fmt: skip

TRANSCRIPTS = [{"messages": rows} for rows in NAMED.values()]
TRANSCRIPTS += [{"system": [{"text": "Be brief."}, POINT], "messages": [user()]}]
