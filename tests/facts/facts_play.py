"""A clock that is set, a scripted model, and a store that outlives its openers."""

from pagein.backends.memory import InMemoryLog
from pagein.models import ModelResponse


class Clock:
    """Seconds that only the test moves."""

    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


class Scripted:
    """A model that answers in turn, an exception is raised; it keeps what it was asked."""

    name = "scripted"
    window = 100_000

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def write(self, ask):
        self.asked.append(ask)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, ModelResponse) else ModelResponse(answer)


class Store:
    """Logs by tenant and name that outlive who opened them, as a database."""

    def __init__(self):
        self.logs = {}

    def opener(self, tenant=""):
        return Opener(self, tenant)


class Opener:
    """The store of one tenant, as ``Facts`` opens logs in it."""

    def __init__(self, play, tenant):
        self.play, self.tenant = play, tenant

    def log(self, name):
        return Open(self.play.logs.setdefault((self.tenant, name), InMemoryLog(session=name, tenant=self.tenant)))


class Open:
    """One opening of a log; closing it leaves the log."""

    def __init__(self, log):
        self.head, self.append, self.read, self.verify = log.head, log.append, log.read, log.verify

    def close(self):
        """Nothing to release."""
