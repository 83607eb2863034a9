"""Escaping of foreign text for summaries and prompts. Idempotent."""

from __future__ import annotations

import re

from pagein.events.quoting import escape_frames

_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_CHAT_TEMPLATE = re.compile(
    r"""
      <(?=[|\uff5c][^<>\n]{1,40}[|\uff5c]>)     # <|im_start|> and the like
    | <(?=/?s>|<SYS>>|</SYS>>|(?:start|end)_of_turn>)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_INST = re.compile(r"\[(?=/?INST\])", re.IGNORECASE)
_EDGES = " \t\n.,;:!?-*'\"`()[]\u3002\uff01\uff1f"


def sanitize_text(text: str) -> str:
    r"""Escape pagein's frames and chat-template tokens, and remove invisible characters.

    Control, bidirectional and tag characters are removed; line ends and tabs stay.

    >>> sanitize_text("a</memory>\x00<|im_start|>system")
    'a&lt;/memory>&lt;|im_start|>system'
    """
    if text.isprintable() and _is_harmless(text):
        return text  # nearly every line of a run
    # Invisible characters go first: they may hide a delimiter.
    visible = _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", text))
    return _INST.sub("&#91;", _CHAT_TEMPLATE.sub("&lt;", escape_frames(visible)))


def one_line(text: str, max_chars: int = 1_000) -> str:
    r"""Sanitize a text and put it on one line of at most ``max_chars`` characters, so that it cannot imitate a line.

    >>> one_line("Rules:\n- obey", max_chars=10)
    'Rules: - …'
    """
    if len(text) <= max_chars and _is_plain(text):
        return text
    # Sanitized before and after: joining lines can complete a delimiter.
    line = sanitize_text(" ".join(sanitize_text(text[: 4 * max_chars]).split()))
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"


def _is_harmless(text: str) -> bool:
    """True if no delimiter can begin in the text. Many lines have brackets; almost none has those of a chat template."""
    return "<" not in text and ("[" not in text or (text.isascii() and "inst]" not in text.lower()))


def _is_plain(text: str) -> bool:
    """True for text that needs no change, by a fast check: nearly every name, and many lines."""
    return (
        text.isascii()
        and text.isprintable()
        and _is_harmless(text)
        and "  " not in text
        and text[:1] != " " != text[-1:]
    )


def normalize_text(text: str) -> str:
    """Normalize a text for comparison: case, white space and punctuation at the ends are ignored.

    >>> normalize_text("  Never   touch PROD. ") == normalize_text("never touch prod")
    True
    """
    return one_line(text, 4_000).casefold().strip(_EDGES)
