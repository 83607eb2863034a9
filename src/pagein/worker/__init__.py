"""Background work in a process of its own: what sessions of a store lack is done, each job by one worker at a time.

jobs     what is due in a store, found by looking, and how each is done
summarising  summaries of runs that others have open
claims   a claim and a lease on it, in a SQLite file
file     a worker on a file
server   a worker on PostgreSQL, through procrastinate
running  which of the two an address means

    with stopping() as stop:
        for done in work(Desk("run.db"), stop=stop, once=True):
            print(done.job, done.count)

A job is never the truth: what is due is derived from the logs, so a job that was lost, or done twice, costs time only.
"""

from pagein.worker.jobs import Desk, Done, Job
from pagein.worker.run import work

__all__ = ["Desk", "Done", "Job", "work"]
