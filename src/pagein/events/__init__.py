"""Events of a run: steps, log entries, messages, and the rules for their order."""
