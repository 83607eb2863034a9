"""A checkpoint as a value, and as JSON in its entry."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from pagein.errors import ConfigurationError, FormatError
from pagein.events.entries import Checkpoint
from pagein.events.handles import step_handle
from pagein.log.base import Entry
from pagein.summaries.open_work import OpenWork
from pagein.summaries.summary import Summary, SummaryItem, TaskItem, summary_from_dict, summary_to_dict

RESERVED_PREFIXES = ("host:", "pagein:", "openai-agents:")
"""Prefixes of checkpoint names under which applications and the library record notes of their own."""

VERSION = 1
NAME_MAX_CHARACTERS = 200

CLOSED, AUTOMATIC, RESUMED = "closed", "automatic", "resumed"
"""Names of automatic checkpoints."""

UNANSWERED = ("call", "unknown")
"""Kinds of open work that are calls without a result."""


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """The state of a run: its summary, its pins, its open work, and the application's own state.

    ``host`` is JSON text, empty if the application gave none. The next state reads on from the position ``since``.
    """

    summary: Summary = field(default_factory=Summary)
    pins: tuple[SummaryItem, ...] = ()
    live: tuple[OpenWork, ...] = ()
    host: str = ""
    since: int = 0

    @property
    def to_do(self) -> tuple[TaskItem, ...]:
        """The tasks that are open or blocked, with their ids."""
        return tuple(task for task in self.summary.tasks if task.status != "done")

    @property
    def done(self) -> tuple[SummaryItem, ...]:
        """The tasks that were done, then the actions that succeeded."""
        return (*(task for task in self.summary.tasks if task.status == "done"), *self.summary.done)

    def dict(self) -> dict[str, Any]:
        """The state as JSON-safe values, without empty fields."""
        summary = summary_to_dict(self.summary)
        tasks = summary.pop("tasks", ())
        values = {
            "done": [*summary.pop("done", ()), *(task for task in tasks if task["status"] == "done")],
            "to_do": [task for task in tasks if task["status"] != "done"],
            **summary,
            "pins": [{"text": pin.text, "handles": list(pin.handles)} for pin in self.pins],
            "live": [work.dict() for work in self.live],
            "host": json.loads(self.host) if self.host else None,
        }
        return {name: value for name, value in values.items() if value not in ([], None)}


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A recorded checkpoint: its name, its position in the log, its time ``at`` in seconds since the epoch, and the state."""

    name: str
    position: int
    at: float
    state: CheckpointState

    @property
    def handle(self) -> str:
        """The handle of its entry."""
        return step_handle(self.position)


def state_to_json(state: CheckpointState) -> str:
    """Encode a state as one line of JSON, with its version."""
    value = {
        "version": VERSION,
        "since": state.since,
        "summary": summary_to_dict(state.summary),
        "pins": [[pin.text, *pin.handles] for pin in state.pins],
        "live": [work.dict() for work in state.live],
    }
    if state.host:
        value["host"] = json.loads(state.host)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def state_from_json(text: str) -> CheckpointState:
    """Decode the state of an entry. A text of no known version is the application's own state."""
    try:
        value = json.loads(text)
        if not isinstance(value, dict) or value.get("version") != VERSION or "summary" not in value:
            return CheckpointState(host="" if value == {} else text)
        pins = tuple(SummaryItem(str(text), handles=tuple(map(str, handles))) for text, *handles in value["pins"])
        live = tuple(OpenWork(**{str(name): str(field) for name, field in work.items()}) for work in value["live"])
        host = json.dumps(value["host"], ensure_ascii=False) if "host" in value else ""
        return CheckpointState(summary_from_dict(value["summary"]), pins, live, host, int(value["since"]))
    except (ValueError, KeyError, TypeError, FormatError, RecursionError):
        return CheckpointState()


def checkpoint_info(entry: Entry) -> CheckpointInfo | None:
    """The checkpoint in an entry; None for any other entry, and for an application's note."""
    body = entry.body
    if not isinstance(body, Checkpoint) or body.name.startswith(RESERVED_PREFIXES):
        return None
    return CheckpointInfo(body.name, entry.position, entry.at, state_from_json(body.state))


def check_name(name: object) -> str:
    """The name of a checkpoint, unchanged. Raises ConfigurationError for one that cannot be a name."""
    if not isinstance(name, str) or not name.strip() or len(name) > NAME_MAX_CHARACTERS or not name.isprintable():
        raise ConfigurationError(
            f"a checkpoint's name is one line of at most {NAME_MAX_CHARACTERS} characters, not {name!r:.80}"
        )
    if name.startswith(RESERVED_PREFIXES):
        raise ConfigurationError(
            f"names that begin with {' or '.join(RESERVED_PREFIXES)} are not for checkpoints: {name!r}"
        )
    return name


def host_state_json(state: object) -> str:
    """Encode the application's state as JSON, "" for None. Raises ConfigurationError for what is not JSON-safe."""
    if state is None:
        return ""
    try:
        text = json.dumps(state, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"a checkpoint's state is JSON-safe values: {error}") from error
    return text
