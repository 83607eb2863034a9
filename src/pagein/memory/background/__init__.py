"""Background work of an open memory: writing summaries, extracting facts."""
