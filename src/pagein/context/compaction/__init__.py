"""What leaves the view: the policy contract, the ladder, the fallback that always fits."""
