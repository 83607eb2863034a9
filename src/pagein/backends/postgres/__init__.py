"""The PostgreSQL backend: log, snapshots, search index and vectors on a server."""
