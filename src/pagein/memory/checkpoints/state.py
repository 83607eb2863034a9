"""A checkpoint as a value: its name, where it lies, and the state it holds; as JSON in the entry, and read back."""

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

RESERVED_PREFIXES = ("host:", "pagein:")
"""What names begin with that are no checkpoints of a user's: what hosts and the library note down for themselves."""

VERSION = 1
NAME_MAX_CHARACTERS = 200
"""Characters a name may have."""

CLOSED, AUTOMATIC, RESUMED = "closed", "automatic", "resumed"
"""Names of the checkpoints that nobody asked for."""

UNANSWERED = ("call", "unknown")
"""Kinds of what is live that are calls without a result."""


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """Where a run stands: what the summary says of it, the pins, what may still be going on, and the host's own state.

    ``host`` is JSON text, empty where the host gave none. ``since`` is the position from which the next state reads on.
    """

    summary: Summary = field(default_factory=Summary)
    pins: tuple[SummaryItem, ...] = ()
    live: tuple[OpenWork, ...] = ()
    host: str = ""
    since: int = 0

    @property
    def to_do(self) -> tuple[TaskItem, ...]:
        """The tasks that are open or blocked, with their ids."""
        return tuple(each for each in self.summary.tasks if each.status != "done")

    @property
    def done(self) -> tuple[SummaryItem, ...]:
        """The tasks that were done, then the actions that succeeded."""
        return (*(each for each in self.summary.tasks if each.status == "done"), *self.summary.done)

    def dict(self) -> dict[str, Any]:
        """The state as JSON-safe values, what is empty left out."""
        value = summary_to_dict(self.summary)
        done = [
            *(value.pop("done", ())),
            *(each for each in value.get("tasks", ()) if each["status"] == "done"),
        ]
        to_do = [each for each in value.pop("tasks", ()) if each["status"] != "done"]
        pins = [{"text": each.text, "handles": list(each.handles)} for each in self.pins]
        live = [each.dict() for each in self.live]
        kept = json.loads(self.host) if self.host else None
        found = {"done": done, "to_do": to_do, **value, "pins": pins, "live": live, "host": kept}
        return {name: each for name, each in found.items() if each not in ([], None)}


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint that was made: its name, its position in the log, when (seconds since the epoch), and the state."""

    name: str
    position: int
    at: float
    state: CheckpointState

    @property
    def handle(self) -> str:
        """The handle of its entry."""
        return step_handle(self.position)


def state_to_json(state: CheckpointState) -> str:
    """The state as one line of JSON, versioned."""
    value = {
        "version": VERSION,
        "since": state.since,
        "summary": summary_to_dict(state.summary),
        "pins": [[each.text, *each.handles] for each in state.pins],
        "live": [each.dict() for each in state.live],
    }
    if state.host:
        value["host"] = json.loads(state.host)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def state_from_json(text: str) -> CheckpointState:
    """The state in an entry. What is not of this version is the host's own, as is."""
    try:
        value = json.loads(text)
        if not isinstance(value, dict) or value.get("version") != VERSION or "summary" not in value:
            return CheckpointState(host="" if value == {} else text)
        pins = tuple(
            SummaryItem(str(words), handles=tuple(map(str, handles))) for words, *handles in value["pins"]
        )
        live = tuple(OpenWork(**{str(key): str(each) for key, each in one.items()}) for one in value["live"])
        host = json.dumps(value["host"], ensure_ascii=False) if "host" in value else ""
        return CheckpointState(summary_from_dict(value["summary"]), pins, live, host, int(value["since"]))
    except (ValueError, KeyError, TypeError, FormatError, RecursionError):
        return CheckpointState()


def checkpoint_info(entry: Entry) -> CheckpointInfo | None:
    """The checkpoint in an entry; None where it is none, or one that a host notes for itself."""
    body = entry.body
    if not isinstance(body, Checkpoint) or body.name.startswith(RESERVED_PREFIXES):
        return None
    return CheckpointInfo(body.name, entry.position, entry.at, state_from_json(body.state))


def check_name(name: object) -> str:
    """The name of a checkpoint, unchanged. Raises ConfigurationError for one that cannot be one."""
    if (
        not isinstance(name, str)
        or not name.strip()
        or len(name) > NAME_MAX_CHARACTERS
        or not name.isprintable()
    ):
        raise ConfigurationError(
            f"a checkpoint's name is one line of at most {NAME_MAX_CHARACTERS} characters, not {name!r:.80}"
        )
    if name.startswith(RESERVED_PREFIXES):
        raise ConfigurationError(
            f"names that begin with {' or '.join(RESERVED_PREFIXES)} are not for checkpoints: {name!r}"
        )
    return name


def host_state_json(given: object) -> str:
    """The host's state as JSON text, "" for None. Raises ConfigurationError for what JSON cannot say."""
    if given is None:
        return ""
    try:
        text = json.dumps(given, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"a checkpoint's state is JSON-safe values: {error}") from error
    return text
