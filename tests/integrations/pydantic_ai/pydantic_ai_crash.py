"""A run that dies inside its twentieth call. Started by the end-to-end test, in a process of its own."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from pydantic_ai.usage import UsageLimits
from pydantic_ai_play import BUDGET, agent_of, looks_and_answers, model_of, page

from pagein.integrations.pydantic_ai.capability import Pagein


def look(number: int) -> str:
    """Look at page ``number``; never answers for page 20."""
    if number == 20:
        os._exit(9)
    return page(number)


if __name__ == "__main__":
    pages = Pagein(sys.argv[1], budget=BUDGET)
    agent = agent_of(model_of(looks_and_answers(30)), pages, look=look)
    agent.run_sync("Read thirty pages.", conversation_id="ann", usage_limits=UsageLimits(request_limit=None))
