"""One life of an agent on a file: ``python langgraph_crash.py run.db STOP_AT sync|async CALLS``; 0 stops nowhere.

It dies without a word inside a tool, as a killed process does; begun again, it resumes. Its last life tells as JSON what
it answered and what was sent.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_play import BUDGET, cost, looks_and_answers, scripted
from langchain_play import look as page

from pagein.integrations.langchain.middleware import PageinMiddleware
from pagein.integrations.langgraph import PageinSaver

CONFIG = {"configurable": {"thread_id": "report"}, "recursion_limit": 250}
TASK = "Look at all pages, then tell the staging password."


def main(path, stop_at, how, calls):
    @tool
    def look(number: int) -> str:
        """Look at page ``number``."""
        if number == stop_at:
            os._exit(9)
        return page.invoke({"number": number})

    model = scripted(looks_and_answers(calls))
    with PageinSaver(path) as saver:
        pages = PageinMiddleware(path, budget=BUDGET)
        agent = create_agent(model, [look], middleware=[pages], checkpointer=saver, system_prompt="Be exact.")
        given = None if agent.get_state(CONFIG).values else {"messages": [HumanMessage(TASK)]}
        is_async = how == "async"
        done = (
            asyncio.run(agent.ainvoke(given, CONFIG, durability="sync"))
            if is_async
            else agent.invoke(given, CONFIG, durability="sync")
        )
        messages = done["messages"]
        memory = pages.memory("report")
        told = {
            "answer": messages[-1].content,
            "results": sum(each.type == "tool" for each in messages),
            "requests": len(model.costs),
            "most": max(model.costs),
            "sent": sum(model.costs),
            "bare": sum(cost(messages[:at]) for at, each in enumerate(messages) if each.type == "ai"),
            "verified": memory.verify().ok,
        }
        pages.close()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
