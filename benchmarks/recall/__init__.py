"""How much of what a question needs is found again: LoCoMo and LongMemEval, by their protocols; recorded runs.

data         the files, read into conversations and questions
measures     recall, discounted gain, evidence within a budget: pure
searchers    what is measured: pagein by words, and by words and meaning; bare FTS5; the newest
locomo       turns of long conversations between two people
longmemeval  sessions and turns of a user's chats with an assistant, among distractors
runs         what recorded runs need from far back, with and without what comes back by itself
"""
