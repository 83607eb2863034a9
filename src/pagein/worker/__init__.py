"""Background work in its own process: the jobs that a store's sessions need, each done by one worker at a time.

    with stop_on_signals() as stop:
        for result in work(WorkQueue("run.db"), stop=stop, once=True):
            print(result.job, result.count)

The queue is derived from the logs, so a job that was lost, or done twice, costs time only.
"""

from pagein.worker.jobs import Job, JobResult, WorkQueue
from pagein.worker.run import work

__all__ = ["WorkQueue", "JobResult", "Job", "work"]
