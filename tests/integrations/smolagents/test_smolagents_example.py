"""The example runs, offline and with an endpoint; what goes over the wire is legal for OpenAI."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from smolagents.models import ChatMessage

from pagein.formats import validate

EXAMPLE = Path(__file__).parents[3] / "examples" / "smolagents_report.py"


def run(*options, **environment):
    return subprocess.run(
        [sys.executable, EXAMPLE, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


def test_it_runs_offline():
    done = run()
    assert done.returncode == 0, done.stderr
    assert "resumed with 13 steps" in done.stdout
    assert "answer: Ada Ferrante-Okafor" in done.stdout
    assert "record: sound" in done.stdout


def script():
    made = importlib.util.spec_from_file_location("smolagents_report", EXAMPLE)
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module.Script(model_id="scripted")


@pytest.fixture
def endpoint():
    """A server that speaks OpenAI's protocol, plays the example's script, and refuses what OpenAI would refuse."""
    play, seen = script(), []

    class Conversation(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            validate(asked["messages"], "openai")
            seen.append((self.path, self.headers["Authorization"], asked["model"]))
            rows = [
                [part for part in each["content"] if part["type"] == "text"]
                if isinstance(each["content"], list)
                else [{"type": "text", "text": each["content"]}]
                for each in asked["messages"]
            ]
            (call,) = play.generate([ChatMessage("user", each) for each in rows]).tool_calls
            function = {"name": call.function.name, "arguments": json.dumps(call.function.arguments)}
            said = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call.id, "type": "function", "function": function}],
            }
            answer = {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": asked["model"],
                "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
            }
            body = json.dumps(answer).encode()
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


@pytest.mark.slow
def test_one_flag_runs_it_with_a_real_endpoint(endpoint):
    url, seen = endpoint
    done = run("--endpoint", url, "--model", "some-model", OPENAI_API_KEY="sk-test", NO_PROXY="127.0.0.1")
    assert done.returncode == 0, done.stderr
    assert "answer: Ada Ferrante-Okafor" in done.stdout
    assert len(seen) >= 26
    assert set(seen) == {("/v1/chat/completions", "Bearer sk-test", "some-model")}
