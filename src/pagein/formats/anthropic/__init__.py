"""Anthropic's messages API."""

from pagein.formats.anthropic.wire import Anthropic

__all__ = ["Anthropic"]
