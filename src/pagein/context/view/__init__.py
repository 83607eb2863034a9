"""The view: folded from the log, laid out for the prompt, and where it may be split."""
