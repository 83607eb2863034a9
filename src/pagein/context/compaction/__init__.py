"""Compaction: the policy contract, the policies, the ladder, and the floor, a fallback that always fits."""
