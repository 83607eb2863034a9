"""The append-only record of a run: its contract, codec, hash chain, encryption, tombstones and branches."""
