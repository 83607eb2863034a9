"""AgentMemory: what a user holds. Every verb is a flow; this drives it, and does the I/O; its twin is in ``amemory``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

from pagein import flows
from pagein.compaction import Policy
from pagein.compaction.named import policy_named
from pagein.errors import Conflict, Illegal, LogClosed
from pagein.expansion import Expansion, expand, full_step, succinct_step
from pagein.flows import Append, Effect, Flow, Read, Recorded, Session, drive
from pagein.formats import format_named
from pagein.log import Compaction, Log, Verification
from pagein.recording import Handed, Rendered, handed, marks_of
from pagein.steps import Observation, Step, Usage, as_text
from pagein.tokens import Budget, TokenCounter
from pagein.tokens.calibration import Calibration
from pagein.tokens.encodings import Encoding
from pagein.view import Report, View
from pagein.view.fold import Fold

T = TypeVar("T")


class Options(TypedDict, total=False):
    """How a memory behaves; every one has a default.

    ``budget``: tokens of the rendered messages, or a Budget; without it the window of ``model`` less its reserves.
    ``policy``: a policy's name, or a policy. ``model``: what the tokens are counted for; without it, exactly in o200k_base. ``counter``: instead of the
    model's own. ``format``: what ``to_messages`` speaks unless told otherwise. ``clock``: seconds since the epoch.
    """

    budget: int | Budget | None
    policy: str | Policy
    model: str | None
    counter: TokenCounter | None
    format: str
    clock: Callable[[], float]


def _session(options: Options) -> Session:
    """A session as the options say. Raises ConfigurationError, BudgetError."""
    from pagein.tokens.windows import budget_for, counter_for  # noqa: PLC0415 - the table loads when it is asked

    model, budget, policy = options.get("model"), options.get("budget"), options.get("policy", "ladder")
    counter = options.get("counter") or (counter_for(model) if model else Encoding("o200k_base"))
    if budget is None:
        budget = budget_for(model or "")
    return Session(
        Fold(counter),
        policy_named(policy) if isinstance(policy, str) else policy,
        Budget(budget) if isinstance(budget, int) else budget,
        counter,
        Calibration(exact=counter.margin == 0),
    )


class Memory:
    """What both colours share: the log, the session, and the effects a flow may ask for."""

    def __init__(self, log: Log, **options: Unpack[Options]) -> None:
        self._log = log
        self._closed = False
        self._clock = options.get("clock", time.time)
        self._format = format_named(options.get("format", "openai"))
        self._session = _session(options)

    @classmethod
    def open(
        cls, url: str, *, session: str = "default", tenant: str = "", **options: Unpack[Options]
    ) -> Self:
        """The memory of one session in a store: a SQLite file, or ``:memory:``. See ``Options``.

        Raises ConfigurationError, BudgetError, LogError.
        """
        from pagein.log.opening import open_log  # noqa: PLC0415 - a store's drivers load when one is opened

        _session(options)  # a bad option leaves no file behind
        format_named(options.get("format", "openai"))
        return cls(open_log(url, session=session, tenant=tenant), **options)

    @property
    def budget(self) -> Budget:
        """The budget every view is held to."""
        return self._session.budget

    @property
    def system_prompt(self) -> str:
        """The text of the system prompts, in order, a blank line between them; for APIs that take it apart."""
        shown = self._session.fold.view(1).systems
        return "\n\n".join(as_text(message.content) for each in shown for message in each.messages)

    @property
    def repairs(self) -> tuple[str, ...]:
        """What had to be mended in the transcripts handed over since this memory was opened."""
        return tuple(self._session.repairs)

    def report(self) -> Report:
        """Every token of the view as it stands, by tier and reason, and what is out. Compacts nothing."""
        session = self._session
        return session.fold.view(session.limit(session.budget)).report

    def reported(self, usage: Usage) -> None:
        """Tell what the provider counted for the last request, so that later counts come nearer to it."""
        self._session.learn(usage.input_tokens)

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed("this memory was closed; open it again to go on")

    def _perform(self, effect: Effect[Any]) -> Any:
        match effect:
            case Append(bodies=bodies, after=after):
                try:
                    return self._log.append(bodies, after=after, at=self._clock())
                except Conflict:
                    # The winner's entries are folded in, so that the loser can look at them and try again.
                    drive(flows.catch_up(self._session), self._perform)
                    raise
            case Read(start=start, stop=stop):
                return tuple(self._log.read(start, stop))
            case _:
                raise TypeError(f"no flow asks for {effect!r}")

    def _verified(self) -> Flow[Verification]:
        found = self._log.verify()
        if found.ok:
            yield from flows.load(self._session)
        return found

    def _handed(self, messages: Any, format: str | None) -> Handed:
        return handed(self._format if format is None else format_named(format), messages)

    def _rendered(self, view: View, format: str | None) -> dict[str, Any]:
        form = self._format if format is None else format_named(format)
        request = form.render(view.messages())
        if problems := form.problems(request):
            raise Illegal(form.name, problems)
        self._session.rendered[form.name] = Rendered(marks_of(request["messages"]), view.head)
        return request


class AgentMemory(Memory):
    """A run recorded whole, and a view of it that is never over budget and never malformed.

    ``AgentMemory.open("run.db", budget=80_000)`` opens or makes the record; the memory is a context manager. Calls
    from several threads take their turns. Every verb raises errors of ours only, and a call that raises changed
    nothing.
    """

    def __init__(self, log: Log, **options: Unpack[Options]) -> None:
        super().__init__(log, **options)
        self._turn = threading.RLock()
        self._run(flows.load(self._session))

    def _run(self, flow: Flow[T]) -> T:
        with self._turn:
            self._check_open()
            return drive(flow, self._perform)

    def record(self, *items: Step | Observation) -> Recorded:
        """Write steps or observations durably, all or none, before this returns. Raises ProtocolError."""
        return self._run(flows.record(self._session, items, strict=True))

    def record_messages(
        self,
        messages: Any,
        format: str | None = None,
        *,
        whole: bool | None = None,
        usage: Usage | None = None,
    ) -> Recorded:
        """Write what is new in a provider's messages: a list, or a whole request.

        What ``to_messages`` gave may be handed back with what came since. ``whole`` True says that the list starts
        with all that was recorded, False that all of it is new; without it the list's beginning tells. ``usage`` is what the provider reported for the request before. What is broken is
        mended and named in the result. Raises FormatError, ProtocolError.
        """
        given = self._handed(messages, format)
        return self._run(flows.record(self._session, given, strict=False, whole=whole, usage=usage))

    def view(self) -> View:
        """What the model sees now, within budget; what leaves to get there is recorded. Raises OverBudget."""
        return self._run(flows.view(self._session))

    def to_messages(
        self,
        format: str | None = None,
        *,
        summary_mode: bool = False,
        keep_last_n: int | None = None,
        max_tokens: int | None = None,
    ) -> list[dict[str, Any]]:
        """The view as a provider's messages: within budget, legal, and the last request's prefix kept.

        ``summary_mode`` leaves out system prompts, plans and the model's prose (smolagents), ``keep_last_n`` shows
        only the last n actions, ``max_tokens`` is another budget for this call; none of the three records anything.
        Raises OverBudget.
        """
        view = self._run(flows.shown(self._session, summary_mode, keep_last_n, max_tokens))
        messages: list[dict[str, Any]] = self._rendered(view, format)["messages"]
        return messages

    def to_request(self, format: str | None = None) -> dict[str, Any]:
        """The view as the provider's keyword arguments: ``messages``, and ``system`` where it stands apart."""
        return self._rendered(self.view(), format)

    def expand(self, handle: str | int) -> Expansion:
        """The original behind a handle or at a position, whole. Raises UnknownHandle."""
        return self._run(expand(self._session, handle))

    def pin(self, text: str) -> str:
        """Keep the text verbatim in every view; gives the handle that ``unpin`` takes."""
        return self._run(flows.pin(self._session, text))

    def unpin(self, handle: str) -> None:
        """Let a pin go. Raises UnknownHandle."""
        self._run(flows.unpin(self._session, handle))

    def compact(self) -> Compaction | None:
        """Compact now, whatever the view costs; None where nothing would get smaller."""
        return self._run(flows.compact(self._session))

    def undo(self) -> Compaction:
        """Take back the last compaction. Raises NothingToUndo."""
        return self._run(flows.undo(self._session))

    def verify(self) -> Verification:
        """Derive every hash of the record again, and say what is wrong and where."""
        return self._run(self._verified())

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step recorded, whole, in order, read from the log."""
        return tuple(step for _, step in self._run(flows.steps(self._session)))

    def get_full_steps(self) -> list[dict[str, Any]]:
        """Every step as JSON-safe values, nothing left out; images as base64."""
        return [full_step(position, step) for position, step in self._run(flows.steps(self._session))]

    def get_succinct_steps(self) -> list[dict[str, Any]]:
        """Every step as JSON-safe values, long texts cut, images named by their hash."""
        return [succinct_step(position, step) for position, step in self._run(flows.steps(self._session))]

    def close(self) -> None:
        """Release the store; a second call does nothing."""
        with self._turn:
            self._closed = True
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
