"""Conformance suites for backends, formats, token counters, policies and models, and a stateful machine."""
