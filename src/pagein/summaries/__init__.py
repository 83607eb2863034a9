"""Who writes what stands for steps that left: the structured summary as a value. Pure, and without a model.

cleaning    text that others wrote, made safe to stand in a summary or in a prompt
summary     the value: objective, constraints, tasks, dead ends, artifacts, each with handles and author; its codec
spans       the steps that leave, as texts with handles
mentions    what in a span must survive: constraints, errors, paths, identifiers, numbers, decisions
live        what may still be going on: calls without a result, things that calls started
extractive  a summary made without a model
parsing     a model's reply, read strictly, or refused with a reason
merging     the previous summary and a new one, by code
rendering   a summary as text, bounded in tokens, in order of importance
fidelity    what survived, what is repaired from the source, when a summary is refused
prompting   the requests a model answers: the run quoted as data, in pieces that fit its window
prompts/    their texts, each of which can be overridden
"""
