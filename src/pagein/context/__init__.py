"""What the model sees: the view, salience, compaction policies and page-in. Pure: no I/O."""
