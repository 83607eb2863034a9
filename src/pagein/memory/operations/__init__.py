"""The operations of a memory, written once as generators of effects."""
