"""Three researchers and an editor work at the same time on one store. What one of them read, the others find again.

    python examples/team.py                                               offline, with a scripted model
    python examples/team.py --endpoint http://localhost:8000/v1 --model qwen3    any server with OpenAI's protocol

Every agent has a session of its own in the same file, so each has its own context. They share facts, because they give the
same ``user``, and the editor searches all sessions. With an endpoint the key is read from OPENAI_API_KEY, and pagein[openai]
is needed.
"""

import argparse
import re
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from chat_two_users import model_of

from pagein import ActionStep, AgentMemory, FinalAnswerStep, Observation, TaskStep, ToolCall

Model = Callable[[list[Any]], str]
BUDGET, SECTIONS = 2_000, 12
COUNTRIES = {"norway": "Bergen", "iceland": "Reykjavik", "faroes": "Torshavn"}
"""Each researcher's country, and the port that section 2 of its report names."""


def section_of(country: str, number: int) -> str:
    """Write one section of the report on a country."""
    port = f"The largest harbour of {country} is {COUNTRIES[country]}.\n" if number == 2 else ""
    return port + "\n".join(f"{country} {number}.{row}: {number * row} boats" for row in range(30))


def research(store: Path, country: str) -> int:
    """Read a whole report through a small window; note one finding for the team. Return the largest request's tokens."""
    largest = 0
    with AgentMemory.open(store, budget=BUDGET, session=country, user="team") as memory:
        memory.record(TaskStep(f"Read the report on {country}."))
        for number in range(SECTIONS):
            call = ToolCall(f"c{number}", "read_section", f'{{"number": {number}}}')
            memory.record(ActionStep("", (call,), (Observation(call.id, section_of(country, number)),)))
            largest = max(largest, memory.view().tokens)
        memory.record(FinalAnswerStep(f"The report on {country} is read."))
        memory.facts.add(f"The report on {country} has {SECTIONS} sections", category="knowledge")
    return largest


def edit(store: Path, model: Model) -> str:
    """Answer from what the researchers read: facts that they share, and passages of their sessions."""
    question = "What is the largest harbour of each country?"
    with AgentMemory.open(store, budget=BUDGET, session="editor", user="team") as memory:
        print("the team knows:", *(fact.content for fact in memory.facts.list()), sep="\n  ")
        hits = [hit for country in COUNTRIES for hit in memory.recall(f"largest harbour {country}", 1, across=True)]
        passages = "\n".join(f"[{hit.session} {hit.handle}] {hit.text[:200]}" for hit in hits)
        memory.record(TaskStep(f"{question}\n\nPassages of your colleagues:\n{passages}"))
        answer = model(memory.to_messages())
        memory.record(FinalAnswerStep(answer))
        return answer


def answer_offline(messages: list[Any]) -> str:
    """Answer from nothing but what the request shows."""
    return "; ".join(f"{country}: {port}" for country, port in re.findall(r"harbour of (\w+) is (\w+)", str(messages)))


def main() -> None:
    """Let the researchers read at the same time, then let the editor answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoint", default="", help="a server that speaks OpenAI's protocol")
    parser.add_argument("--model", default="gpt-4o-mini", help="its model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as threads:
        store = Path(folder) / "team.db"
        largest = max(threads.map(lambda country: research(store, country), COUNTRIES))
        print(f"the largest request of {len(COUNTRIES)} researchers: {largest} of {BUDGET} tokens")
        print(edit(store, model_of(options) if options.endpoint else answer_offline))


if __name__ == "__main__":
    main()
