"""The run ledger: what was said in the run and holds, what failed, and what is open.

``own_words`` finds the speaker's sentences, ``statements`` those that bind; ``run_ledger`` keeps the newest form of each
beside ``failures``, ``task_plans``, ``waiting`` and ``answers``; ``block`` writes what is out of view. All of it is pure.
"""
