"""The measurements a user can repeat: what a run needs and whether a request holds it, and what a turn costs.

runs        recorded runs, read from a file
needs       what a step takes from earlier in the run: the metric, pure
requests    a request as it is measured: its canonical JSON, its tokens, what a model reads in it
strategies  what is measured: pagein, and the baselines
faults      the measure: strategies over runs
retrieval   whether everything recorded comes back
tally       what was counted, and the rates that follow
speed       what a turn, an append, a count and an import cost
synthetic   a run made up, as long as a measurement needs
peers       what a turn costs in other libraries
frameworks  what pagein costs and saves inside other people's agents
"""
