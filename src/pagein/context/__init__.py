"""The content of requests: the view, salience, compaction policies, page-in. Pure: no I/O."""
