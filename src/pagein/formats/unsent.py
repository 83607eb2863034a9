"""Provider content that a format's requests cannot carry as it came: reasoning without a signature, blocks in a wrong place.

The renderer knows the limits; here a step is rendered alone and read again, so that no rule is written twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pagein.errors import FormatError
from pagein.events.messages import Message
from pagein.events.steps import ActionStep, Opaque, as_parts
from pagein.formats.base import Format, Item


def unsent_kinds(form: Format, item: Item, messages: Sequence[Message]) -> list[str]:
    """Return the kinds of the format's own parts in an item that its requests lack; ``messages`` stand for the item."""
    kinds = _own_kinds(form, item)
    if not kinds:
        return []
    opening = () if messages[0].role == "user" else (Message("user", "?"),)
    try:
        sent = form.parse(form.render((*opening, *messages)))
    except FormatError:
        return sorted(kinds)
    return sorted((kinds - sum((_own_kinds(form, other) for other in sent), Counter())).elements())


def _own_kinds(form: Format, item: Item) -> Counter[str]:
    results = item.observations if isinstance(item, ActionStep) else ()
    contents = (item.content, *(result.content for result in results if result is not None))
    parts = (part for content in contents for part in as_parts(content))
    return Counter(part.kind for part in parts if isinstance(part, Opaque) and part.provider == form.name)
