"""Memories for agent frameworks, one package each. Import the one you use by its name."""
