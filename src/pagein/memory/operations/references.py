"""Items of the model that a list names by their ids: some clients of the Responses API send no more of them.

The provider knows the items by their ids, and so does the log. Each is put in the place of its reference before the list
is compared with the run. A reference to an item that the log does not have stays as it came.
"""

from __future__ import annotations

from typing import Any

from pagein.context.view.layout import messages_of
from pagein.events.steps import ActionStep
from pagein.formats import Format, Item
from pagein.formats.raw_messages import RawRequest
from pagein.log.base import Entry
from pagein.memory._state import RunState


def parse_list(run: RunState, request: RawRequest, start: int = 0, place: int = 0) -> tuple[Item, ...]:
    """Parse the messages from ``start`` on, with the recorded items that they refer to. Raises FormatError.

    Those are looked for behind the run's first ``place`` fingerprints, then in all of it.
    """
    ids = request.referenced_ids(start)
    if not ids or not run.fold.head:
        return request.parse(start)
    positions = run.log.fingerprint_positions
    first = positions[place] if place < len(positions) else run.fold.head
    items = _find_items(request.form, run.runtime.read_entries(first, None), ids)
    if first and ids - items.keys():
        items |= _find_items(request.form, run.runtime.read_entries(0, first), ids)
    return request.with_items(items).parse(start)


def _find_items(form: Format, entries: tuple[Entry, ...], ids: set[str]) -> dict[str, Any]:
    actions = (entry.body for entry in entries if isinstance(entry.body, ActionStep))
    messages = (messages_of(action, [call.id for call in action.tool_calls]) for action in actions)
    return {row["id"]: row for group in messages for row in form.render(group)["messages"] if row.get("id") in ids}
