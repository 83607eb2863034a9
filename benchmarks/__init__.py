"""What maintainers measure: speed, crashes, load, recall, degradation. ``python -m benchmarks`` in a checkout."""
