"""Extraction of facts from a run, by rules or by a model."""
