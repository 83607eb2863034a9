"""Requests to Gemini as the API's guides, google-genai and gemini-cli write them."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def user(*parts):
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts or ("Go.",)]}


def model(*parts):
    return {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def call(name="look", args=None, call_id=None, **beside):
    function = {"id": call_id} if call_id else {}
    return {"functionCall": {**function, "name": name, "args": {} if args is None else args}, **beside}


def response(name="look", value=None, call_id=None, **beside):
    function = {"id": call_id} if call_id else {}
    return {"functionResponse": {**function, "name": name, "response": value or {"output": "seen"}, **beside}}


IMAGE = {"inlineData": {"mimeType": "image/png", "data": PNG}}

NAMED = {
    "a question": [user("Hello")],
    "an answer and another question": [user("Hello"), model("Hi."), user("And?")],
    "a call without an id": [user(), model(call()), user(response())],
    "a call without arguments": [user(), model({"functionCall": {"name": "look"}}), user(response())],
    "a call with an id": [user(), model(call(call_id="fc-1")), user(response(call_id="fc-1"))],
    "two calls of one name, without ids": [
        user(),
        model(call(args={"n": 1}), call(args={"n": 2})),
        user(response(value={"output": "one"}), response(value={"output": "two"})),
        model("Both."),
        user("Fine."),
    ],
    "calls of two names in parallel": [
        user(),
        model("I look.", call("look", {"where": "here"}), call("fs.read:all", {"path": "a.py"})),
        user(response("look"), response("fs.read:all", {"output": ["a", "b"]})),
    ],
    "a failed call": [user(), model(call()), user(response(value={"error": "No such file."}))],
    "results that are objects": [
        user(),
        model(call(), call()),
        user(response(value={"temperature": 21.5, "unit": "C"}), response(value={"output": {"rows": [1, None]}})),
    ],
    "an empty result": [user(), model(call()), user(response(value={"output": ""}))],
    "an error that is an object": [user(), model(call()), user(response(value={"error": {"code": 5}}))],
    "a result with an image in it": [
        user(),
        model(call()),
        user(response(parts=[{"inlineData": {"mimeType": "image/png", "data": PNG}}])),
    ],
    "thoughts and signatures": [
        user(),
        model(
            {"text": "The user wants a listing.", "thought": True},
            call(call_id="a", thoughtSignature="c2lnbmF0dXJl"),
            call("read", call_id="b"),
        ),
        user(response(call_id="a"), response("read", call_id="b")),
        model({"text": "Done.", "thoughtSignature": "c2ln"}, {"text": "", "thoughtSignature": "c2ln"}),
        user("Thanks."),
    ],
    "images": [
        user(
            "What is in these?",
            IMAGE,
            {"inlineData": {"mimeType": "image/webp", "data": "UklGRgAAAABXRUJQ"}, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
            {"inlineData": {"mimeType": "image/png", "data": "-_-_"}},
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/a"}},
            {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}},
            {"fileData": {"mimeType": "image/webp", "fileUri": "gs://bucket/a.png"}},
        )
    ],
    "an image by the model": [user("Draw."), model("Here.", IMAGE), user("Bluer.")],
    "sound, video and files": [
        user(
            "Listen.",
            {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg==", "displayName": "plan.pdf"}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}, "videoMetadata": {"startOffset": "3s"}},
            {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}},
        )
    ],
    "code that ran at the provider": [
        user("Add."),
        model(
            {"executableCode": {"language": "PYTHON", "code": "print(1+1)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n"}},
            "It is 2.",
        ),
        user("Fine."),
    ],
    "words beside results": [user(), model(call()), user(response(), "And hurry.")],
    "white space and other scripts": [user(" "), model("\n"), user("Ünïcödé 漢字 🙂 \u2028 e\u0301")],
}  # fmt: skip

TRANSCRIPTS = [{"messages": rows} for rows in NAMED.values()]
TRANSCRIPTS += [
    {"messages": [user()], "systemInstruction": {"parts": [{"text": "Be brief."}]}},
    {"messages": [user()], "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}},
]
