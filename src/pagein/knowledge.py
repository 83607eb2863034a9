"""The facts of one memory: opened when they are first needed, read out of what was said, shown in every view."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pagein.archive.contract import Embedder
from pagein.errors import ConfigurationError
from pagein.facts.block import CLOSE, OPEN
from pagein.log import Log
from pagein.log.inmemory import InMemoryLog

if TYPE_CHECKING:
    from pagein.facts.settings import Settings
    from pagein.facts.store import Facts
    from pagein.tokens import TokenCounter

OpenLog = Callable[[str], Log]
"""The log of a name, in the store and the tenant of the run."""


class Knowledge:
    """Facts over a log: on where a ``user``, ``project`` or ``task`` is named or ``facts`` are set, or once asked for.

    Facts are in logs of their own, one for each scope and owner. Raises ConfigurationError for a name that is none.
    """

    def __init__(
        self,
        log: Log,
        names: dict[str, str | None],
        settings: Settings | bool | None,
        *,
        model: Any,
        embedder: Embedder | None,
        clock: Callable[[], float],
    ) -> None:
        self._log, self._names, self._settings = log, names, settings
        self._model, self._embedder, self._clock = model, embedder, clock
        self._facts: Facts | None = None
        self.open_log: OpenLog = lambda name: InMemoryLog(session=name, tenant=getattr(log, "tenant", ""))
        self.is_on = settings is not False and (bool(settings) or any(names.values()))

    @property
    def facts(self) -> Facts:
        """The facts; from the first time they are asked for, everything that was said is read for them."""
        return self._opened()

    def attend(self) -> None:
        """Read what is new for facts, where it is time."""
        self._opened().attend(self._log.read, self._log.head())

    def flush(self) -> None:
        """Read now whatever was not read for facts."""
        self._opened().flush(self._log.read, self._log.head())

    def block(self, context: str, counter: TokenCounter, tokens: int) -> str:
        """What is known and matters now, line by line, within ``tokens`` tokens."""
        facts = self._opened()
        most = min(tokens, facts.settings.max_injection_tokens)
        text = facts.block(context, counter=counter, max_tokens=most).text
        return text.removeprefix(OPEN).removesuffix(CLOSE).strip()

    def move(self, log: Log) -> None:
        """Go on with another log: what this one said is read to its end first."""
        self.close()
        self._log = log

    def close(self) -> None:
        """Read what was not read yet, and release the logs; a second call does nothing."""
        facts, self._facts = self._facts, None
        if facts is not None:
            facts.flush(self._log.read, self._log.head())
            facts.close()

    def _opened(self) -> Facts:
        if self._facts is None:
            from pagein.facts.owners import Owners  # noqa: PLC0415 - loads where facts are wanted
            from pagein.facts.settings import Settings  # noqa: PLC0415
            from pagein.facts.store import Facts  # noqa: PLC0415

            if self._settings is False:
                raise ConfigurationError(
                    "this memory was opened with facts=False; open it without to use facts"
                )
            owners = Owners(
                getattr(self._log, "session", "default"),
                tenant=getattr(self._log, "tenant", ""),
                **self._names,
            )
            settings = self._settings if isinstance(self._settings, Settings) else None
            model = self._model if hasattr(self._model, "write") else None
            self._facts = Facts(
                self.open_log, owners, settings, model=model, embedder=self._embedder, clock=self._clock
            )
            self._facts.attend(self._log.read, self._log.head())
        return self._facts


def open_beside(url: str | os.PathLike[str], session: str, **store: Any) -> Log:
    """The log of another session in a store."""
    from pagein.log.opening import open_log  # noqa: PLC0415 - a store's drivers load when one is opened

    return open_log(url, session=session, **store)
