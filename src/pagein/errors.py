"""Every error of ours, each with its facts and with what to do.

* PageinError
  + ProtocolError           a step that may not follow what came before
  + FormatError             a message or part that is not of the provider's shape
    - Illegal               a rendered request that its provider would refuse
  + BudgetError             a budget that is no budget
    - OverBudget            nothing more may leave the view
  + LogError                the record
    - Conflict              another writer was first
    - LogBusy               another process holds the database
    - LogUnreadable         not a database of ours, truncated, damaged
    - LogTooNew             written by a later release
    - LogUnwritable         read-only, or the disk is full
    - LogUnreachable        the server does not answer, or lets nobody in
      . LogUncertain        the connection was lost for good while a write was under way
    - LogClosed             used after close()
  + UnknownHandle           a handle that names nothing in this log
  + NothingToUndo           no compaction is left to undo
  + UnknownCheckpoint       a name that no checkpoint has
  + UnknownBranch           a name that no branch has
  + ConfigurationError      an option that does not exist, or an extra that is not installed
"""

from __future__ import annotations

from collections.abc import Sequence


class PageinError(Exception):
    """The root: catching it catches everything this library raises on purpose."""


class ProtocolError(PageinError):
    """The step may not follow what was recorded before it. Nothing was recorded."""


class FormatError(PageinError):
    """A message is not of the shape its provider documents. Nothing was recorded.

    ``path`` says where, as ``messages[3].tool_calls[0].function``.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {message}" if path else message)


class Illegal(FormatError):
    """A request that its provider would refuse, with every rule it breaks in ``problems``."""

    def __init__(self, format: str, problems: Sequence[str]) -> None:
        self.format = format
        self.problems = tuple(problems)
        super().__init__(f"not a legal {format} request: " + "; ".join(self.problems))


class BudgetError(PageinError):
    """A budget that cannot be one: negative, zero, or reserves larger than the window."""


class OverBudget(BudgetError):
    """Nothing left may leave the view. Raise the budget, unpin, or shorten what is named.

    ``needed`` and ``limit`` in tokens; ``steps`` are the handles that may not leave.
    """

    def __init__(self, needed: int, limit: int, steps: Sequence[str]) -> None:
        self.needed, self.limit, self.steps = needed, limit, tuple(steps)
        super().__init__(
            f"the smallest view needs {needed} tokens, the budget is {limit}: {', '.join(self.steps)} may not "
            f"leave. Raise the budget to {needed} or more, unpin what is no longer needed, or shorten those steps."
        )


class LogError(PageinError):
    """The record cannot be read or written as asked."""


class Conflict(LogError):
    """Another writer appended first. Nothing was written: what it wrote starts at ``expected``."""

    def __init__(self, expected: int, found: int) -> None:
        self.expected, self.found = expected, found
        super().__init__(
            f"the log's head is {found}, this writer expected {expected}: another writer was first. "
            "Nothing of this call was written. A memory has folded in what the other recorded: look, and call again."
        )


class LogBusy(LogError):
    """Another process holds the database for longer than the timeout. Nothing was written."""


class LogUnreadable(LogError):
    """The file is not a log of ours, or is damaged. Nothing was changed."""


class LogTooNew(LogError):
    """The log was written by a later release of pagein. Upgrade to read it; nothing was changed."""


class LogSealed(LogError):
    """The log is encrypted and the key is missing or another, or it was recorded without one. Nothing was changed."""


class LogErased(LogError):
    """What this writer goes on from was erased, whole, by another, who had the right to. Nothing was written.

    A memory goes on with an empty run then; a log is opened again.
    """


class LogUnwritable(LogError):
    """The file, the folder or the disk does not take the write. Nothing was half-written."""


class LogUnreachable(LogError):
    """The database server does not answer, or does not let this user in. Nothing was written."""


class LogUncertain(LogUnreachable):
    """The connection was lost while a write was under way, and the server did not come back in time to be asked.

    Either all of it was written or none. The next call that gets through tells: what was written is folded in then.
    """


class LogClosed(LogError):
    """The log or the memory was closed before this call."""


class UnknownHandle(PageinError):
    """The handle names nothing in this log."""

    def __init__(self, handle: str, head: int) -> None:
        self.handle = handle
        super().__init__(
            f"no handle {handle!r} in this log of {head} entries; handles look like s12, s12.1 or s3-18"
        )


class NothingToUndo(PageinError):
    """There is no compaction that was not undone already."""


class UnknownCheckpoint(PageinError):
    """No checkpoint of this run has that name; ``known`` are those there are."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name, self.known = name, tuple(known)
        there = ", ".join(map(repr, self.known[-8:])) or "none"
        super().__init__(f"no checkpoint {name!r} in this run; there are {there}")


class UnknownBranch(PageinError):
    """No branch of this run has that name; ``known`` are those there are."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name, self.known = name, tuple(known)
        super().__init__(f"no branch {name!r} in this run; there are {', '.join(map(repr, self.known[-8:]))}")


class ConfigurationError(PageinError):
    """An unknown name, a value out of range, or an extra that is not installed; the message names the cure."""
