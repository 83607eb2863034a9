"""The error tree. Each error carries its facts, and its message says what to do.

* PageinError
  + ProtocolError           a step that may not follow the previous one
  + FormatError             a message or part not in the provider's documented shape
    - Illegal               a rendered request that its provider would refuse
  + BudgetError             an invalid budget
    - OverBudget            the view cannot be made small enough
  + LogError                the log cannot be read or written
    - Conflict              another writer appended first
    - LogBusy               another process holds the database
    - LogUnreadable         not a pagein database, truncated, or damaged
    - LogTooNew             written by a later release
    - LogUnwritable         read-only, or the disk is full
    - LogUnreachable        the server does not answer, or refuses the login
      . LogUncertain        the connection was lost during a write
    - LogClosed             used after close()
  + UnknownHandle           no entry of this log has the handle
  + UnknownRequest          no request of the run has the number
  + NothingToUndo           no compaction is left to undo
  + UnknownCheckpoint       no checkpoint has the name
  + UnknownBranch           no branch has the name
  + ConfigurationError      an option that does not exist, or an extra that is not installed
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import Any


class PageinError(Exception):
    """The base of every error this library raises on purpose. A copy, and one that comes from another process, has all its facts."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception would call the class with the message alone. A pool of processes breaks where that fails, or waits for ever.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class ProtocolError(PageinError):
    """The step may not follow the previous entry. Nothing was recorded."""


class FormatError(PageinError):
    """A message is not in the shape its provider documents. Nothing was recorded.

    ``path`` is the place of the fault, such as ``messages[3].tool_calls[0].function``.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {message}" if path else message)


class Illegal(FormatError):
    """The provider would refuse the request. ``problems`` lists every rule it breaks."""

    def __init__(self, format: str, problems: Sequence[str]) -> None:
        self.format = format
        self.problems = tuple(problems)
        super().__init__(f"not a legal {format} request: " + "; ".join(self.problems))


class BudgetError(PageinError):
    """The budget is invalid: negative, zero, or with reserves larger than the window."""


class OverBudget(BudgetError):
    """The view exceeds the budget and no more steps may be removed. Raise the budget, unpin, or shorten ``steps``.

    ``needed`` and ``limit`` are in ``unit``, tokens or bytes; ``steps`` are the handles of the steps that must stay. ``beside`` are the
    tokens that this request keeps free beside the view; ``limit`` is without them. ``refused`` names what would have
    made every later view so large; nothing of it was recorded.
    """

    def __init__(
        self, needed: int, limit: int, steps: Sequence[str], beside: int = 0, *, refused: str = "", unit: str = "tokens"
    ) -> None:
        self.needed, self.limit, self.steps, self.beside, self.refused = needed, limit, tuple(steps), beside, refused
        self.unit = unit
        staying = f"{', '.join(self.steps)} may not leave" if self.steps else "nothing more may leave"
        kept_free = f" besides {beside} that this request keeps free (reserve, tools)" if beside else ""
        cure = f"keep free {needed - limit} less, or " if 0 < needed - limit <= beside else ""
        super().__init__(
            f"{refused and f'{refused} is refused: with it '}the smallest view needs {needed} {unit}, the budget is {max(0, limit)}{kept_free}: {staying}. To fit, {cure}raise "
            f"the budget by {needed - limit} or more, unpin what is no longer needed, or shorten those steps."
        )


class LogError(PageinError):
    """The log cannot be read or written."""


class Conflict(LogError):
    """Another writer appended first, from position ``expected`` on; ``head`` is the log's head now. Nothing was written."""

    def __init__(self, expected: int, head: int) -> None:
        self.expected, self.head = expected, head
        super().__init__(
            f"the log's head is {head}, this writer expected {expected}: another writer was first. Nothing of this "
            "call was written. A memory now has what the other recorded: look at it, and call again."
        )


class LogBusy(LogError):
    """Another process locked the database for longer than the timeout. Nothing was written."""


class LogUnreadable(LogError):
    """The file is not a pagein log, or is damaged. Nothing was changed."""


class LogTooNew(LogError):
    """A later release of pagein wrote the log. Upgrade to read it. Nothing was changed."""


class LogEncrypted(LogError):
    """The key is missing or wrong, or the log was recorded without one. Nothing was changed."""


class LogErased(LogError):
    """Another process erased the whole session that this writer has open. Nothing was written.

    A memory continues with an empty run; a log must be opened again.
    """


class LogUnwritable(LogError):
    """The file, the folder or the disk refuses the write. Nothing was written in part."""


class LogUnreachable(LogError):
    """The database server does not answer, or refuses the login. Nothing was written."""


class LogUncertain(LogUnreachable):
    """The connection was lost during a write, and the server did not return in time to check the result.

    All of the write is stored, or none of it. The next call that reaches the server reads what was stored.
    """


class LogClosed(LogError):
    """The log or the memory was closed before this call."""


class UnknownHandle(PageinError):
    """No entry of this log has the handle."""

    def __init__(self, handle: str, head: int, cure: str = "handles look like s12, s12.1 or s3-18") -> None:
        self.handle = handle
        super().__init__(f"no handle {handle!r} in this log of {head} entries; {cure}")


class UnknownRequest(PageinError):
    """No request of this run is known by the number."""

    def __init__(self, number: int, last: int = 0) -> None:
        self.number = number
        super().__init__(
            f"no request {number} of this run is known; " + (f"the last is {last}" if last else "there is none")
        )


class NothingToUndo(PageinError):
    """Every compaction is undone already, or there is none."""


class UnknownCheckpoint(PageinError):
    """No checkpoint of this run has the name; ``existing`` lists the names in use."""

    def __init__(self, name: str, existing: Sequence[str]) -> None:
        self.name, self.existing = name, tuple(existing)
        names = ", ".join(map(repr, self.existing[-8:])) or "none"
        super().__init__(f"no checkpoint {name!r} and no such handle in this run; the checkpoints are {names}")


class UnknownBranch(PageinError):
    """No branch of this run has the name; ``existing`` lists the names in use."""

    def __init__(self, name: str, existing: Sequence[str]) -> None:
        self.name, self.existing = name, tuple(existing)
        super().__init__(f"no branch {name!r} in this run; there are {', '.join(map(repr, self.existing[-8:]))}")


class ConfigurationError(PageinError):
    """An unknown name, a value out of range, or an extra that is not installed. The message says what to do."""
