"""Wire formats: parse, render and validate the requests of providers.

``registry`` lists the formats, ``base`` has their protocol, ``parsing`` and ``rendering`` what they share. Each format is
a package: ``wire`` parses and renders, ``rules`` validates.
"""

from pagein.formats.base import Format, FormatName, Item
from pagein.formats.registry import FORMATS, format_named, guess_format, keywords, validate

__all__ = ["FORMATS", "Format", "FormatName", "Item", "format_named", "guess_format", "keywords", "validate"]
