"""Benchmarks for maintainers: speed, crashes, load, recall, degradation. Run ``python -m benchmarks`` in a checkout."""
