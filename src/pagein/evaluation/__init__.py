"""Measurements on recorded runs: what each step needs, whether the request has it, and what the request costs.

runs        recorded runs, read from a file
needs       the fault metric: what a step takes from earlier in the run
requests    measured requests: canonical JSON, tokens, text
strategies  pagein and the baselines
faults      measures strategies over runs
retrieval   checks that every recorded item can be retrieved
savings     tokens that a policy saves
tally       counts and rates
"""
