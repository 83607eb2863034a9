"""A server that speaks OpenAI's protocol and refuses what OpenAI would refuse, for the examples' one flag."""

import contextlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pagein.formats import validate
from tests._support.scripts import run_script

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name, *options, folder=None, **environment):
    """One run of an example."""
    return run_script(EXAMPLES / name, *options, folder=folder, environment=environment)


def reads_and_answers(half, query):
    """Reads 24 pages with the first tool that is offered, then says what it was asked for, or recalls it.

    ``half`` is what the first of two tasks says, ``query`` what is asked of the memory.
    """

    def answer(asked):
        shown = json.dumps(asked["messages"])
        tool = asked["tools"][0]["function"]
        (key,) = tool["parameters"]["properties"]
        read = re.findall(rf'{key}[\\"=:]+\s?(?:\d+\.\.)?(\d+)', shown)
        page = max(map(int, read), default=0) + 1
        last = 12 if half in shown and "Read on" not in shown else 24
        if page <= last:
            return {"name": tool["name"], "arguments": {key: page}}
        if last == 12:
            return "I read the first half."
        found = re.search(r"Signed: ([\w -]+)\.|(Equation \d+) defines", shown)
        return f"It is {found[1] or found[2]}." if found else {"name": "recall", "arguments": {"query": query}}

    return answer


@contextlib.contextmanager
def endpoint(answer):
    """The address, and what was asked: each path, key and model. ``answer(request)`` says text, or one call."""
    seen = []

    class Conversation(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            validate(asked["messages"], "openai")
            seen.append((self.path, self.headers["Authorization"], asked["model"]))
            said = answer(asked)
            message = {"role": "assistant", "content": said if isinstance(said, str) else None}
            if not isinstance(said, str):
                function = {**said, "arguments": json.dumps(said["arguments"])}
                message["tool_calls"] = [{"id": f"call_{len(seen)}", "type": "function", "function": function}]
            finish = "stop" if isinstance(said, str) else "tool_calls"
            body = json.dumps(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 0,
                    "model": asked["model"],
                    "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                    "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Conversation)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", seen
    server.shutdown()
    thread.join()
    server.server_close()


def with_endpoint(name, answer):
    """What an example prints with an endpoint that answers so; every request had the key and the model."""
    with endpoint(answer) as (url, seen):
        done = example(name, "--endpoint", url, "--model", "some-model", OPENAI_API_KEY="sk-test", NO_PROXY="127.0.0.1")
    assert done.returncode == 0, done.stderr
    assert len(seen) >= 25
    assert set(seen) == {("/v1/chat/completions", "Bearer sk-test", "some-model")}
    return done.stdout
