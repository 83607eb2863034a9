"""The commands of ``python -m benchmarks``, and the tables they print."""
