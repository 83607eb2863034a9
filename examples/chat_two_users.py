"""A chat with a memory for two users: what one user says is known in later talks of that user, and to nobody else.

    python examples/chat_two_users.py                                               offline, with a scripted model
    python examples/chat_two_users.py --endpoint http://localhost:8000/v1 --model qwen3    any server with OpenAI's protocol

With an endpoint the key is read from OPENAI_API_KEY, and pagein[openai] is needed.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pagein import AgentMemory

Messages = list[Any]
TALKS = (
    ("alice", "monday", "I prefer pytest to unittest."),
    ("bob", "monday", "I live in Oslo."),
    ("alice", "tuesday", "How should I write this test?"),
    ("bob", "tuesday", "Where do I live?"),
)
"""A user, a session, and what the user says."""


def answer_offline(messages: Messages) -> str:
    """Answer from nothing but what the request shows."""
    shown = str(messages)
    known = [word for word in ("pytest", "Oslo") if word in shown]
    return f"I know of: {', '.join(known) or 'nothing'}."


def model_of(options: argparse.Namespace) -> Callable[[Messages], str]:
    """The scripted model, or one behind an endpoint."""
    if not options.endpoint:
        return answer_offline
    from openai import OpenAI  # noqa: PLC0415 - the offline run needs no client

    client = OpenAI(base_url=options.endpoint)

    def ask(messages: Messages) -> str:
        reply = client.chat.completions.create(model=options.model, messages=messages)
        return reply.choices[0].message.content or ""

    return ask


def talk(store: Path, user: str, session: str, words: str, model: Callable[[Messages], str]) -> str:
    """One turn of one user's session; facts are read from the user's words and shown in later sessions."""
    with AgentMemory.open(store, budget=4_000, session=f"{user}-{session}", user=user) as memory:
        memory.record_messages([{"role": "user", "content": words}])
        answer = model(memory.to_messages())
        memory.record_messages([{"role": "assistant", "content": answer}])
        return answer


def main() -> None:
    """Play two talks of two users."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", default="", help="a server that speaks OpenAI's protocol")
    parser.add_argument("--model", default="gpt-4o-mini", help="its model")
    options = parser.parse_args()
    model = model_of(options)
    with tempfile.TemporaryDirectory() as folder:
        for user, session, words in TALKS:
            answer = talk(Path(folder) / "chat.db", user, session, words, model)
            print(f"{user}, {session}: {words}\n  {answer}")


if __name__ == "__main__":
    main()
