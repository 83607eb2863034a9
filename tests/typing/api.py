"""Accepted by mypy --strict; never run."""
