"""The operations of a memory, as functions of a run's state."""
