"""The tokens that page-ins may have: in a run of tools, where the user speaks, and in talk."""

from __future__ import annotations

from pagein.context.talk import is_talk, speech_share
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.steps import ActionStep, TaskStep, as_text

PAGE_IN_MIN_TOKENS = 80
"""Free tokens below which nothing is paged in."""

PAGE_IN_MAX_TOKENS, ASKED_MAX_TOKENS, UNASKED_MAX_SHARE = 500, 1_000, 0.4
"""Tokens of the page-ins of a tool run at most, until the next compaction, those where the user speaks, and the share of what
nothing asked for."""

FILE_MAX_TOKENS = 1_500
"""Tokens of lines of files that one action brings back at most. Sessions of Claude Code at 32,000 tokens: without a limit as many
identifiers are missing and more lines, at 3 % more; with 700 a sixth more lines, at 1 to 4 % less (decision 0076)."""

TALK_PAGE_IN_FACTOR = 2.5
"""What the page-in's share of the limit is multiplied by where the user speaks and the run is talk."""

TALK_MAX_TOKENS = 8_000
"""Tokens in talk at most. Beyond it turns come that only share words with the question: 8 questions of LongMemEval in
80,000 tokens of talk have all of the evidence at a budget of 40,000, as without this."""

TALK_FREE_FACTOR = 1.3
"""What a page-in may have of the tokens for talk where the view has more free: compactions plan with these tokens themselves. Chats
of short turns, REALTALK's: .645 of the evidence before, .658 with this, ``TURN_HITS`` and ``TURN_DENSITY_EXPONENT``; .781 and .799
in the other five chats, on which nothing was chosen. LoCoMo and LongMemEval stay as they are."""

QUESTION_TOKENS, SPOKEN_TOKENS = 100, 400
"""Tokens of the user's newest message up to which it is a question, for which whole turns come back, and up to which it is spoken.
A longer one brings what it is about, as a file, a page, or what another agent found: the longer it is, the less comes back."""

QUESTION_MARKS, UNASKED_TALK_SHARE = "?\uff1f\u061f\u037e\u055e\u1367", 0.4
"""The signs of a question, and what the search has of the tokens for talk where the user's message has none: talk goes on, and the
newest turns that left have the rest. Decision 0069 has the figures."""


def is_user_turn(view: View) -> bool:
    """True if a user message is newer than the newest action."""
    steps = (entry.item for entry in reversed(view.run) if isinstance(entry.item, ActionStep | TaskStep))
    return isinstance(next(steps, None), TaskStep)


def has_question(view: View) -> bool:
    """True if the user's newest message has a question, by its mark or by the order of its words."""
    from pagein.context.ledger import english, spelling  # noqa: PLC0415 - patterns: an import of pagein loads little

    text = as_text(_newest_user_entry(view).messages[0].content or "")
    has_mark, is_open = any(mark in text for mark in QUESTION_MARKS), text.rstrip()[-1:].isalnum()
    return has_mark or (is_open and english.QUESTION.search(spelling.spell_out(text)) is not None)


def talk_tokens(view: View, limit_share: float) -> int:
    """Return the tokens that page-ins may have where the user speaks in a run that is talk; else 0."""
    if not is_user_turn(view) or not is_talk(view):
        return 0
    message_tokens = _newest_user_entry(view).tokens
    factor = 1.0 if message_tokens <= SPOKEN_TOKENS else QUESTION_TOKENS / message_tokens
    return min(int(view.limit * (limit_share * TALK_PAGE_IN_FACTOR * factor) * speech_share(view)), TALK_MAX_TOKENS)


def searched_talk_tokens(view: View, limit_share: float) -> int:
    """Return the part of the tokens for talk that is for what the search finds: all of it for a short question."""
    tokens = talk_tokens(view, limit_share)
    message_tokens = _newest_user_entry(view).tokens if tokens else 0
    if message_tokens > SPOKEN_TOKENS or not tokens:
        return tokens
    return int(tokens * min(1.0 if has_question(view) else UNASKED_TALK_SHARE, QUESTION_TOKENS / message_tokens))


def reserved_tokens(view: View, limit_share: float) -> int:
    """Return the tokens to leave free for a page-in where the user speaks, else 0: in a full view none would be made."""
    if not is_user_turn(view):
        return 0
    return max(_max_tokens(view, limit_share) // 2, searched_talk_tokens(view, limit_share))


def available_tokens(view: View, limit_share: float, shown_tokens: int, *, is_fault: bool) -> int:
    """Return the tokens free for a page-in beside those shown: of a share of the limit, more where the user speaks.

    Where nothing was named out of view and the user does not speak, part of it is left for when that happens. Each message
    of the user has its own: in a large view there are many until the next compaction.
    """
    tokens = _max_tokens(view, limit_share)
    if is_user_turn(view):
        tokens = min(tokens, int(view.limit * limit_share) - shown_tokens)
    else:
        tokens = int(tokens * (1 if is_fault else UNASKED_MAX_SHARE)) - shown_tokens
    tokens = max(tokens, int(TALK_FREE_FACTOR * talk_tokens(view, limit_share)) - shown_tokens)
    return min(tokens, view.limit - view.tokens)


def file_tokens(view: View, limit_share: float, shown_tokens: int) -> int:
    """Return the tokens free for files that the run works on beside those shown: of a share of the limit, and half of what is free."""
    return min(FILE_MAX_TOKENS, int(view.limit * limit_share) - shown_tokens, (view.limit - view.tokens) // 2)


def _max_tokens(view: View, limit_share: float) -> int:
    """Return the tokens that page-ins of a run of tools may have together."""
    return min(int(view.limit * limit_share), ASKED_MAX_TOKENS if is_user_turn(view) else PAGE_IN_MAX_TOKENS)


def _newest_user_entry(view: View) -> ViewEntry:
    return next(entry for entry in reversed(view.run) if isinstance(entry.item, TaskStep))
