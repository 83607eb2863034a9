"""Sequences compared from their beginning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def count_same(items: Sequence[Any], others: Sequence[Any]) -> int:
    """The number of items that both begin with."""
    pairs = zip(items, others, strict=False)
    return next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(items), len(others)))
