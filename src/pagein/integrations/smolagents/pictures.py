"""Pillow's pictures as parts of ours, and back."""

from __future__ import annotations

import io

from PIL import Image as Pillow

from pagein._common.json_values import png_bytes
from pagein.events.steps import Image


def to_image(picture: Pillow.Image) -> Image:
    """Convert the picture to a part of ours."""
    return Image(png_bytes(picture), "image/png")


def to_picture(image: Image) -> Pillow.Image:
    """Convert the part back to a picture. Raises OSError for bytes that are none."""
    return Pillow.open(io.BytesIO(image.data))
