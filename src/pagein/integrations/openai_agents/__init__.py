"""pagein in the OpenAI Agents SDK: one session. ``pip install "pagein[openai-agents]"``.

session = PageinSession("ann", "run.db", budget=80_000)
await Runner.run(agent, "Hello", session=session, run_config=session.run_config())
"""

from pagein.integrations.openai_agents.session import PageinSession

__all__ = ["PageinSession"]
