"""Images that a tool returned: sent in a user message behind the results of the turn, and read back from it.

The result has the name of the image, ``[image 0a1b2c3d4e5f]``, in the image's place. The user message has, for each image,
its name and then the image. It is known again by both: a name is the digest of the image behind it, and stands in a
result directly before. Words alone never make a message ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pagein.events.messages import Message
from pagein.events.steps import Image, Observation, Part, TaskStep, Text, as_parts
from pagein.formats.base import Item
from pagein.formats.rendering import image_placeholder

Row = dict[str, Any]


@dataclass(slots=True)
class ResultImages:
    """The images of the results since the last message with calls."""

    images: list[Image] = field(default_factory=list)
    open_ids: set[str] = field(default_factory=set)

    def rows_after(self, message: Message, render_image: Callable[[Image], Row]) -> list[Row]:
        """Return the user message with the images of a turn's results if this message is the last of them; else none."""
        if message.role != "tool":
            self.images, self.open_ids = [], {call.id for call in message.tool_calls}
            return []
        self.images += (part for part in as_parts(message.content) if isinstance(part, Image))
        self.open_ids.discard(message.call_id)
        if self.open_ids or not self.images:
            return []
        rows = [(image_placeholder(image), render_image(image)) for image in self.images]
        self.images = []
        # An image the API refuses is rendered as its name, which the result has already.
        parts = [part for name, row in rows if row["type"] != "text" for part in ({"type": "text", "text": name}, row)]
        return [{"role": "user", "content": parts}] if parts else []


def take_back_images(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the items with the images that ``ResultImages`` sent behind the results back in their results."""
    whole: list[Item] = []
    for item in items:
        images = _named_images(item)
        first = next((at for at in range(len(whole), 0, -1) if not isinstance(whole[at - 1], Observation)), 0)
        if not images or not _put_back(whole, first, images):
            whole.append(item)
    return tuple(whole)


def _named_images(item: Item) -> list[tuple[str, Image]]:
    """Return the images of a user's message with their names, if it has nothing else; else none."""
    if not isinstance(item, TaskStep) or item.extra is not None:
        return []
    pairs = list(_pairs(as_parts(item.content)))
    return pairs if 2 * len(pairs) == len(as_parts(item.content)) else []


def _pairs(parts: tuple[Part, ...]) -> Iterator[tuple[str, Image]]:
    for name, image in zip(parts[::2], parts[1::2], strict=False):
        if isinstance(name, Text) and isinstance(image, Image) and name == Text(image_placeholder(image)):
            yield name.text, image


def _put_back(items: list[Item], first: int, images: list[tuple[str, Image]]) -> bool:
    """Put the images in place of their names in the results from ``first`` on; change nothing if a name is missing."""
    waiting = list(images)
    results: list[Item] = []
    for item in items[first:]:
        if not isinstance(item, Observation) or isinstance(item.content, str):
            results.append(item)
            continue
        parts: list[Part] = []
        for part in item.content:
            is_name = waiting and isinstance(part, Text) and part.text == waiting[0][0]
            parts.append(waiting.pop(0)[1] if is_name else part)
        results.append(replace(item, content=tuple(parts)))
    if waiting:
        return False
    items[first:] = results
    return True
