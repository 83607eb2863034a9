"""Images that a tool returned, where results have only text: the user shows them behind the results of the turn.

The result has the name of the image, ``[image 0a1b2c3d4e5f]``, in the image's place. The user's parts have, for each image,
its name and then the image. They are known again by both: a name is the digest of the image behind it, and stands in a
result directly before. Words alone never make a message ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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

    def parts_after(
        self, message: Message, make_text: Callable[[str], Row], render_image: Callable[[Image], Row | None]
    ) -> list[Row]:
        """Return the user's parts with the images of a turn's results if this message is the last of them; else none.

        ``render_image`` returns None for an image that the API refuses: the result has its name, and that is all.
        """
        if message.role != "tool":
            self.images, self.open_ids = [], {call.id for call in message.tool_calls}
            return []
        self.images += (part for part in as_parts(message.content) if isinstance(part, Image))
        self.open_ids.discard(message.call_id)
        if self.open_ids or not self.images:
            return []
        rows = [(make_text(image_placeholder(image)), render_image(image)) for image in self.images]
        self.images = []
        return [part for name, row in rows if row is not None for part in (name, row)]


def take_back_images(items: Iterable[Item], *, has_own_message: bool) -> tuple[Item, ...]:
    """Return the items with the images that ``ResultImages`` sent behind the results back in their results.

    ``has_own_message``: the images are a message of their own, so one with more in it is the user's.
    """
    whole: list[Item] = []
    for item in items:
        images = _named_images(item)
        first = next((at for at in range(len(whole), 0, -1) if not isinstance(whole[at - 1], Observation)), 0)
        if not images or not isinstance(item, TaskStep):
            whole.append(item)
            continue
        rest = as_parts(item.content)[2 * len(images) :]
        if (has_own_message and rest) or not _put_back(whole, first, images):
            whole.append(item)
        elif rest:
            whole.append(replace(item, content=rest))
    return tuple(whole)


def _named_images(item: Item) -> list[tuple[str, Image]]:
    """Return the images at the head of a user's message that stand behind their names."""
    parts = as_parts(item.content) if isinstance(item, TaskStep) and item.extra is None else ()
    pairs: list[tuple[str, Image]] = []
    for name, image in zip(parts[::2], parts[1::2], strict=False):
        if not isinstance(name, Text) or not isinstance(image, Image) or name != Text(image_placeholder(image)):
            break
        pairs.append((name.text, image))
    return pairs


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
