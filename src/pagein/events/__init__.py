"""What happened in a run: steps, log entries, messages, and the rules for what may follow what."""
