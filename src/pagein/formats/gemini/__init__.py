"""Google's Gemini, ``generateContent``."""

from pagein.formats.gemini.wire import Gemini

__all__ = ["Gemini"]
