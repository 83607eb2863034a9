"""Fuzzers: random talks, erased runs and requests against an oracle; ``python -m benchmarks.fuzz``."""
