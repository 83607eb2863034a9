"""Does paging help? Scripted agents, which know only what they can read in a request, in worlds made from a seed.

reading   what an agent reads: facts, line by line; and what it does about them
prose     the words worlds are made of: much that does not matter around little that does
search    a keyed search: what records said early opens lockers late
hunt      a debugging hunt: suspects, misleading leads, dead ends
desk      a service desk: many orders at once, rules given once, exact ids
contexts  what decides what an agent sees: all of it, recency, masking, and every policy of ours
play      one agent, one world, one context: step by step
measure   all of them, counted; what they cost
plot      success and cost against the budget, as a picture
"""
