"""Measure how much of what a question needs is found again: LoCoMo and LongMemEval, by their protocols; recorded runs.

measures     recall, discounted gain, evidence within a budget
searchers    pagein by words, and by words and meaning; bare FTS5; the newest
locomo       turns of long conversations between two people
longmemeval  sessions and turns of a user's chats with an assistant, among distractors
runs         needs of recorded runs from far back, with and without page-in
"""
