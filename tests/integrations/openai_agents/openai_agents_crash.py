"""A run that dies inside its twentieth call. Started by the end-to-end test, in a process of its own."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from agents import function_tool
from openai_agents_play import BUDGET, Model, agent_of, looks_and_answers, page, run

from pagein.integrations.openai_agents.session import PageinSession


@function_tool
def look(number: int) -> str:
    """Look at page ``number``; never answers for page 20."""
    if number == 20:
        os._exit(9)
    return page(number)


if __name__ == "__main__":
    session = PageinSession("ann", sys.argv[1], budget=BUDGET)
    run(agent_of(Model(looks_and_answers(30)), look, *session.tools()), "Read thirty pages.", session)
