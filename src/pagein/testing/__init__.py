"""Shipped conformance suites: how a backend, a counter or a format proves itself."""
