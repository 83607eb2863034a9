"""The facts of one memory: opened when they are first needed, extracted from the run, and selected for its view."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pagein.context.view.view import OutOfView, View
from pagein.errors import ConfigurationError, PageinError
from pagein.log.base import LogStore, StoredLog
from pagein.memory._facts_state import FactsBlockState
from pagein.memory._state import Problems

if TYPE_CHECKING:
    import asyncio

    from pagein.facts.placement import PlacedBlock
    from pagein.facts.settings import Settings
    from pagein.facts.store import Facts
    from pagein.memory.background.fact_extractor import FactExtractor
    from pagein.models import Model
    from pagein.models.writer_account import WriterAccount
    from pagein.search.base import Embedder


class FactsRuntime:
    """The facts over a log: on if a ``user``, ``project`` or ``task`` is named or ``facts`` are set, or once asked for.

    Facts are in logs of their own, one for each scope and owner, in ``store`` or in memory. Rules extract them in the
    turn; with a model or an embedder they are extracted beside the run. Failures are in ``problems``, and fail no turn.
    """

    def __init__(
        self,
        log: StoredLog,
        names: dict[str, str | None],
        settings: Settings | bool | None,
        *,
        store: LogStore | None = None,
        model: Any,
        embedder: Embedder | None,
        clock: Callable[[], float],
        account: WriterAccount | None,
    ) -> None:
        self._log, self._names, self._settings, self._store = log, names, settings, store
        self._model, self._embedder, self._clock, self._account = model, embedder, clock, account
        self._facts: Facts | None = None
        self._extractor: FactExtractor | None = None
        self.problems = Problems()
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop in which a model is awaited, in async code."""
        self.initial_block = FactsBlockState(
            settings is not False and (bool(settings) or any(names.values())),
            None if settings is False else getattr(settings, "placement", "tail"),
            getattr(settings, "procedures", "off") == "final",
        )

    @property
    def is_open(self) -> bool:
        """True once the facts were asked for."""
        return self._facts is not None

    @property
    def owner_names(self) -> dict[str, str]:
        """The names that were given of a user, a project and a task."""
        return {what: name for what, name in self._names.items() if name is not None}

    @property
    def store(self) -> LogStore:
        """The store of the facts' logs: the run's own, else one in memory."""
        if self._store is None:
            from pagein.backends.memory import InMemoryStore  # noqa: PLC0415 - loads where facts are in memory only

            self._store = InMemoryStore(tenant=self._log.tenant)
        return self._store

    @property
    def facts(self) -> Facts:
        """The facts; from the first access on they are extracted from the whole run."""
        if self._facts is None:
            self._facts = self._open()
            self.extract()
        return self._facts

    @property
    def left_out(self) -> tuple[OutOfView, ...]:
        """The facts that mattered to the last request and had no room, each with the reason."""
        return () if self._facts is None else self._facts.left_out

    def extract(self, *, flush: bool = False) -> None:
        """Extract facts from new entries when that is due, or now with ``flush``."""
        facts = self.facts  # opening them may make the extractor
        if self._log.readonly:
            return
        reader = self._extractor or facts
        extract = reader.flush if flush else reader.extract_due
        try:
            extract(self._log.read, self._log.head())
        except PageinError as error:
            if reader is self._extractor:
                raise
            self._report(error)

    def wait(self, timeout: float | None) -> bool:
        """Wait until nothing is being read, at most ``timeout`` seconds (None: as long as it takes); True if so."""
        return self._extractor is None or self._extractor.wait(timeout)

    def select(
        self, view: View, tokens: int, placed: tuple[PlacedBlock, ...] = (), *, head: str | None = None
    ) -> tuple[PlacedBlock, ...]:
        """Select the facts that matter to a view, as blocks of at most ``tokens`` tokens together.

        ``placed`` blocks stay while their facts hold. With ``head``, the text at the head so far, it is one block there.
        """
        from pagein.facts.placement import PlacedBlock  # noqa: PLC0415 - loads where facts are wanted
        from pagein.facts.procedures import current_tasks  # noqa: PLC0415
        from pagein.facts.ranking import context_of  # noqa: PLC0415

        facts, counter, items = self.facts, view.counter, [entry.item for entry in view.run]
        facts.tasks, context = current_tasks(items), context_of(items)
        if head is None:
            return facts.place_blocks(placed, context, position=view.head, counter=counter, max_tokens=tokens)
        block = facts.place_head_block(head, context, counter=counter, max_tokens=tokens)
        return (PlacedBlock(view.head, block.text, block.tokens, ()),) if block.text else ()

    def move_to(self, log: StoredLog) -> None:
        """Go on with another log; the old one is read to its end first."""
        self.close()
        self._log = log

    def close(self) -> None:
        """Extract unread entries, for as long as closing may wait, and release the logs; a second call does nothing."""
        facts, extractor = self._facts, self._extractor
        if facts is None:
            return
        self.extract(flush=True)
        if extractor is not None:
            extractor.wait(facts.settings.close_wait)
            extractor.close()
        self._facts = self._extractor = None
        facts.close()

    def _open(self) -> Facts:
        from pagein.facts.owners import Owners  # noqa: PLC0415 - loads where facts are wanted
        from pagein.facts.settings import Settings  # noqa: PLC0415
        from pagein.facts.store import Facts  # noqa: PLC0415

        if self._settings is False:
            raise ConfigurationError("this memory was opened with facts=False; open it without to use facts")
        owners = Owners(self._log.session, tenant=self._log.tenant, **self._names)
        settings = self._settings if isinstance(self._settings, Settings) else None
        cancelled = threading.Event()
        model = self._background_model(cancelled)
        facts = Facts(
            self.store, owners, settings, model=model, embedder=self._embedder, clock=self._clock, account=self._account,
        )  # fmt: skip
        if model is not None or self._embedder is not None:
            from pagein.memory.background.fact_extractor import FactExtractor  # noqa: PLC0415

            self._extractor = FactExtractor(facts, self._clock, self._report, cancelled)
        return facts

    def _background_model(self, cancelled: threading.Event) -> Model | None:
        """The model for requests beside the run; None if there is none, or it cannot be awaited here."""
        if self._model is None or (self.loop is None and not hasattr(self._model, "write")):
            return None
        from pagein.memory.background.asked_model import BackgroundModel  # noqa: PLC0415 - loads where a model is asked

        return BackgroundModel(self._model, cancelled, lambda: self.loop, self._account)

    def _report(self, error: Exception | None) -> None:
        """Report the error of a reading once a kind; after a reading without one, each kind is reported again."""
        from pagein.models.errors import ModelCancelled  # noqa: PLC0415 - loads where facts are read
        from pagein.models.writer_account import is_own_pause  # noqa: PLC0415

        if error is None:
            self.problems.reported.clear()
        # A cancelled reading is no failure, and a pause follows from a failure that was reported.
        elif not isinstance(error, ModelCancelled) and not (is_own_pause(error) and self.problems.reported):
            kind = type(error).__name__
            self.problems.report(kind, f"nothing was read for facts, it is read later: {kind}: {error}")
