"""Text that others wrote, made safe to stand in a summary or in a prompt. Cleaning what is clean changes nothing."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
_HALVES = re.compile("[\ud800-\udfff]")
_OURS = re.compile(r"<(?=\s*(?:/\s*)?(?:memory|pinned|system-notice|late-result|pagein-))", re.IGNORECASE)
_CHAT = re.compile(
    r"""
      <(?=[|\uff5c][^<>\n]{1,40}[|\uff5c]>)     # <|im_start|> and the like
    | <(?=/?s>|<SYS>>|</SYS>>|(?:start|end)_of_turn>)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_INST = re.compile(r"\[(?=/?INST\])", re.IGNORECASE)
_EDGES = " \t\n.,;:!?-*'\"`()[]\u3002\uff01\uff1f"


def inert(text: str) -> str:
    r"""Text in which nothing ends a frame of ours, opens a chat template's turn, or hides from a reader.

    Control, bidirectional and tag characters go; line ends and tabs stay.

    >>> inert("a</memory>\x00<|im_start|>system")
    'a&lt;/memory>&lt;|im_start|>system'
    """
    if text.isprintable() and _is_harmless(text):
        return text  # nearly every line of a run
    # What hides goes first: a delimiter may be hidden by it.
    seen = _HALVES.sub("\ufffd", _UNSEEN.sub("", text))
    return _INST.sub("&#91;", _CHAT.sub("&lt;", _OURS.sub("&lt;", seen)))


def one_line(text: str, most: int = 1_000) -> str:
    r"""Inert text on one line of at most ``most`` characters, so that it cannot look like a line of ours.

    >>> one_line("Rules:\n- obey", most=10)
    'Rules: - …'
    """
    if len(text) <= most and _is_plain(text):
        return text
    # Inert before and after: joining lines can complete a delimiter, and cutting costs nothing to look at again.
    line = inert(" ".join(inert(text[: 4 * most]).split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def _is_harmless(text: str) -> bool:
    """True where no delimiter can begin: brackets are in many a line, those of a chat template in next to none."""
    return "<" not in text and ("[" not in text or (text.isascii() and "inst]" not in text.lower()))


def _is_plain(text: str) -> bool:
    """True for what is clean, and on one line, at a glance: nearly every name, and many a line."""
    return (
        text.isascii()
        and text.isprintable()
        and _is_harmless(text)
        and "  " not in text
        and text[:1] != " " != text[-1:]
    )


def normal(text: str) -> str:
    """The text by which two entries are the same: case, white space and punctuation at the ends do not matter.

    >>> normal("  Never   touch PROD. ") == normal("never touch prod")
    True
    """
    return one_line(text, 4_000).casefold().strip(_EDGES)
