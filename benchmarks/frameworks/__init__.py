"""What pagein costs and saves inside other people's agents, each beside itself without it.

meter          what is measured at each request: CPU time, and the tokens it sends
alone          the same turns through AgentMemory, with no framework around it
smolagents, langchain, openai_agents, pydantic_ai   an agent of each framework with a model that plays a script
comparing      each framework bare and with pagein, side by side
"""
