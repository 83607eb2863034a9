"""Measurements on recorded runs and conversations: what a step or a question needs, whether the request has it, its cost.

runs           recorded runs, read from a file
needs          the fault metric: what a step takes from earlier in the run
requests       measured requests: canonical JSON, tokens, text
strategies     pagein and the baselines
faults         measures strategies over runs
retrieval      checks that every recorded item can be retrieved
savings        tokens that a policy saves
tally          counts and rates
conversations  LoCoMo's and LongMemEval's files
talk           conversations played through a memory, then questions
planted        sessions with statements that must survive
"""
