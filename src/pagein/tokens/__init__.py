"""Tokens: counters, budgets, model windows, and calibration by reported usage."""

from pagein.tokens.budget import Budget
from pagein.tokens.counter import TokenCounter

__all__ = ["Budget", "TokenCounter"]
