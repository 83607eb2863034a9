"""Compare success with and without paging: scripted agents that know only their request, in worlds made from a seed.

reader    what an agent reads in a request, and what it can do
prose     words for worlds: much that does not matter around little that does
search    a keyed search: facts from early records open lockers late
hunt      a debugging hunt: suspects, misleading leads, dead ends
desk      a service desk: many orders at once, rules given once, exact ids
contexts  the contexts to compare: everything, recency, masking, and every policy
play      one agent, one world, one context: step by step
measure   all combinations, counted, with their cost
plot      success and cost against the budget, as a picture
"""
