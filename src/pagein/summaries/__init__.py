"""Structured summaries of the steps that left the view. No I/O.

sanitize      escaping of foreign text for summaries and prompts
summary       the value: objective, constraints, tasks, dead ends, artifacts, each with handles and author
spans         the steps that leave, as texts with handles
key_items     what must survive: constraints, errors, paths, identifiers, numbers, decisions
open_work     what may still be running: calls without a result, things that calls started
extractive    summaries by rules, without a model
reply_parser  strict parsing of a model's reply
merge         merging of the previous summary with a new one, by code
renderer      summaries as text within a token limit, in order of importance
fidelity      what survived, repair from the source, rejection
requests      the requests to a model: the run quoted as data, in pieces that fit its window
templates     their prompts (``prompts/``), each of which can be overridden
job           a summary job: ranges to write, and its outcome
pipeline      the steps of a job, as a generator
records       the records that models wrote, and their place in the view
"""
