"""The facts of one memory: opened when they are first needed, read out of what was said, shown in every view."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pagein.errors import ConfigurationError, PageinError
from pagein.log.base import Log
from pagein.memory._effects import Known

if TYPE_CHECKING:
    import asyncio

    from pagein.facts.placement import Laid
    from pagein.facts.settings import Placement, Settings
    from pagein.facts.store import Facts
    from pagein.memory.background.fact_extractor import Reader
    from pagein.models import Model
    from pagein.search.base import Embedder
    from pagein.tokens import TokenCounter

PROBLEMS = 16
"""How many problems are kept."""

OpenLog = Callable[[str], Log]
"""The log of a name, in the store and the tenant of the run."""


class Knowledge:
    """Facts over a log: on where a ``user``, ``project`` or ``task`` is named or ``facts`` are set, or once asked for.

    Facts are in logs of their own, one for each scope and owner. Rules read what was said in the turn it is said in;
    where a model or an embedder has a part in it, that is done beside the run, and no turn waits. What goes wrong is in
    ``problems``, and costs no turn anything. Raises ConfigurationError for a name that is none.
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
        self._reader: Reader | None = None
        self._told: set[str] = set()
        self.problems: deque[str] = deque(maxlen=PROBLEMS)
        """What reading failed with, each kind once until it goes well again."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """Where a model is awaited, in async code."""
        self.open_log: OpenLog = self._in_memory
        self.is_on = settings is not False and (bool(settings) or any(names.values()))
        self.placement: Placement | None = (
            None if settings is False else getattr(settings, "placement", "tail")
        )
        """Where what is known stands; None: nowhere."""

    @property
    def facts(self) -> Facts:
        """The facts; from the first time they are asked for, everything that was said is read for them."""
        return self._opened()

    def attend(self) -> None:
        """See that what is new is read for facts, when it is time."""
        facts = self._opened()
        if getattr(self._log, "readonly", False):
            return
        if self._reader is not None:
            self._reader.attend(self._log.read, self._log.head())
        else:
            with self._telling():
                facts.attend(self._log.read, self._log.head())

    def flush(self) -> None:
        """See that whatever was not read yet is read for facts now."""
        facts = self._opened()
        if getattr(self._log, "readonly", False):
            return
        if self._reader is not None:
            self._reader.flush(self._log.read, self._log.head())
        else:
            with self._telling():
                facts.flush(self._log.read, self._log.head())

    def wait(self, timeout: float | None) -> bool:
        """Wait until nothing is being read, at most ``timeout`` seconds (None: for ever); True when that is so."""
        return self._reader is None or self._reader.wait(timeout)

    def laid(self, wanted: Known, counter: TokenCounter) -> tuple[Laid, ...]:
        """What is known and matters now, in blocks as they stand in the view."""
        if wanted.head is not None:
            from pagein.facts.placement import Laid  # noqa: PLC0415 - loads where facts are wanted

            block = self._opened().frozen(
                wanted.head, wanted.context, counter=counter, max_tokens=wanted.tokens
            )
            return (Laid(wanted.position, block.text, block.tokens, ()),) if block.text else ()
        return self._opened().laid(
            wanted.held, wanted.context, position=wanted.position, counter=counter, max_tokens=wanted.tokens
        )

    def move(self, log: Log) -> None:
        """Go on with another log: what this one said is read to its end first."""
        self.close()
        self._log = log

    def close(self) -> None:
        """Read what was not read yet, for as long as closing may wait, and release the logs; a second call does nothing."""
        facts, reader = self._facts, self._reader
        if facts is None:
            return
        self.flush()
        if reader is not None:
            reader.wait(facts.settings.close_wait)
            reader.close()
        self._facts = self._reader = None
        facts.close()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except PageinError as error:
            self._tell(error)

    def _tell(self, error: Exception | None) -> None:
        """Keep what reading failed with, once a kind; None: it went well, and what fails after it is told again."""
        from pagein.models.errors import CircuitOpen, ModelCancelled  # noqa: PLC0415 - loads where facts are read
        from pagein.models.secrets import scrubbed  # noqa: PLC0415

        if error is None:
            self._told.clear()
            return
        kind = type(error).__name__
        # Called off is no failure, and left alone is what comes of one that was told.
        if (
            isinstance(error, ModelCancelled)
            or kind in self._told
            or (isinstance(error, CircuitOpen) and self._told)
        ):
            return
        import logging  # noqa: PLC0415 - loads where something went wrong

        self._told.add(kind)
        self.problems.append(scrubbed(f"nothing was read for facts, it is read later: {kind}: {error}"))
        logging.getLogger("pagein").warning("%s", self.problems[-1])

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
            stopped = threading.Event()
            model = self._beside(stopped)
            facts = Facts(
                self.open_log, owners, settings, model=model, embedder=self._embedder, clock=self._clock
            )
            if model is not None or self._embedder is not None:
                from pagein.memory.background.fact_extractor import Reader  # noqa: PLC0415

                self._reader = Reader(facts, self._clock, self._tell, stopped)
            self._facts = facts
            self.attend()
        return self._facts

    def _in_memory(self, name: str) -> Log:
        from pagein.backends.memory import InMemoryLog  # noqa: PLC0415 - loads where facts are in memory only

        return InMemoryLog(session=name, tenant=getattr(self._log, "tenant", ""))

    def _beside(self, stopped: threading.Event) -> Model | None:
        """The model as it is asked beside the run; None where there is none, or it cannot be waited for here."""
        if self._model is None or (self.loop is None and not hasattr(self._model, "write")):
            return None
        from pagein.memory.background.fact_extractor import Beside  # noqa: PLC0415 - loads where a model is asked

        return Beside(self._model, stopped, self.loop)


def open_beside(url: str | os.PathLike[str], session: str, **store: Any) -> Log:
    """The log of another session in a store."""
    from pagein.backends.open import open_log  # noqa: PLC0415 - a store's drivers load when one is opened

    return open_log(url, session=session, **store)
