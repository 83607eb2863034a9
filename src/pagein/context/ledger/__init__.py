"""The run ledger: rules, limits, decisions, goals, commitments, preferences and current values said in the run.

``statements`` recognises them without a model, ``run_ledger`` keeps the newest form of each and renders those whose
steps are not in view. All of it is pure.
"""
