"""The SQLite backend: log, snapshots, search index and vectors in one file."""
