"""The compaction policies, one per file."""
