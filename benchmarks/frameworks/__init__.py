"""Measure the cost and savings of pagein inside agents of other frameworks, each compared with itself.

meter    CPU time and tokens of each request
alone    the same turns through AgentMemory, without a framework
smolagents, langchain, openai_agents, pydantic_ai   an agent of each framework with a scripted model
compare  each framework bare and with pagein, side by side
"""
