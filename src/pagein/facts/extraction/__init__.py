"""How facts are extracted from a run: by rules, or by a model."""
