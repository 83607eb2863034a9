"""Episodes: the stretches of entries between user messages, and the summaries that replace them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import groupby, pairwise, takewhile

from pagein.context.compaction.base import Plan, actions, newest_user_position
from pagein.context.compaction.clips import content_tokens
from pagein.context.salience.extract import Extract, select_lines
from pagein.context.talk import is_speech, is_talk
from pagein.context.view.body import is_permanent
from pagein.context.view.cuts import cuts
from pagein.context.view.layout import ViewEntry
from pagein.context.view.view import View
from pagein.events.entries import Observed, Replacement
from pagein.events.handles import range_handle, step_handle
from pagein.events.identifiers import argument_text, format_call
from pagein.events.steps import SummaryStep, TaskStep, as_text

FOLD_MIN_TOKENS = 40
"""Tokens of a stretch up to which its summary would save nothing."""

HEADER_TOKENS = 60
"""Tokens of a summary beside its lines."""

EXTRACT_MAX_TOKENS = 12_000
"""Tokens of an extract at most: more finds little of worth. In a large view the newest steps have the rest."""

NEWEST_FILL_SHARE, EXTRACT_MIN_SHARE, OWN_MIN_TOKENS = 0.95, 0.2, 256
"""What the newest action's results may leave where they stay whole until they are read: the share of the limit that is
filled at most, the share that an extract has at least, and the tokens of the action's own words. Decision 0049."""


def legal_stop(view: View, stop: int) -> int:
    """Return the last cut at or before ``stop``. Where turns of talk leave, the first one from ``stop`` on where an exchange begins."""
    allowed = cuts(view)
    if may_fold_users(view):
        starts = {
            entry.first
            for before, entry in pairwise(view.run)
            if isinstance(entry.item, TaskStep) and not isinstance(before.item, TaskStep)
        }
        exchange = min((start for start in starts.intersection(allowed) if start >= stop), default=None)
        if exchange is not None:
            return exchange
    return max(
        (position for position in allowed if position <= stop), default=view.run[0].first if view.run else view.head
    )


def stretches(view: View, stop: int) -> Iterator[tuple[ViewEntry, ...]]:
    """Yield the stretches of entries before ``stop``, split at user messages and important steps that stay."""
    protected = protected_positions(view)
    before = takewhile(lambda entry: entry.first < stop, view.run)
    for stays, entries in groupby(before, key=lambda entry: is_protected(entry, protected) and not is_permanent(entry)):
        if not stays:
            yield tuple(entries)


def covered_range(view: View, stretch: tuple[ViewEntry, ...]) -> tuple[int, int]:
    """Return the positions ``[first, last)`` that a summary of these entries covers, up to the next entry."""
    # A summary that stands at the end keeps its range: behind it are only entries of the library's own.
    end = stretch[0].last if is_summary(stretch) else view.head
    after = next((entry.first for entry in view.run if entry.first > stretch[-1].first), end)
    return stretch[0].first, after


def fold_before(view: View, stop: int, write: Callable[[int, int], str]) -> Iterator[Replacement]:
    """Replace each stretch before ``stop`` by the text of ``write(first, last)``; existing summaries stay."""
    for stretch in stretches(view, legal_stop(view, stop)):
        leaving = [entry for entry in stretch if not is_permanent(entry)]
        if not leaving or is_summary(tuple(leaving)) or not is_worth_folding(leaving):
            continue
        first, last = covered_range(view, stretch)
        yield Replacement(first, last, summary=write(first, last))


def foldable_stretches(view: View, stop: int) -> list[tuple[ViewEntry, ...]]:
    """Return the stretches before ``stop`` that have an entry to remove, oldest first."""
    return [stretch for stretch in stretches(view, stop) if has_leaving(stretch)]


def has_leaving(stretch: Iterable[ViewEntry]) -> bool:
    """True for a stretch that has an entry to remove: pins and late system prompts stay."""
    return not all(map(is_permanent, stretch))


def is_summary(stretch: tuple[ViewEntry, ...]) -> bool:
    """True for a stretch that is a single summary already."""
    return len(stretch) == 1 and stretch[0].tier == "summary"


def is_worth_folding(entries: Iterable[ViewEntry]) -> bool:
    """True if a summary of these entries can be smaller than they are."""
    return sum(entry.tokens for entry in entries) > FOLD_MIN_TOKENS


USER_SHARE = 0.5
"""Share of the limit up to which all that the user said stays verbatim."""


def may_fold_users(view: View) -> bool:
    """True in talk once the user's words pass their share: its oldest turns then leave together."""
    return view.user_tokens > view.full_limit * USER_SHARE and is_talk(view)


def protected_positions(view: View) -> frozenset[int]:
    """Return the positions of the entries that no fold removes: system prompts, pins, user messages, important steps.

    Where the oldest turns of talk leave together, of the user messages only the newest.
    """
    newest, folds_users = newest_user_position(view), may_fold_users(view)
    return frozenset(
        entry.first
        for entry in view.entries
        if is_permanent(entry)
        or entry.first in view.important
        or (isinstance(entry.item, TaskStep) and (not folds_users or entry.first == newest))
    )


def is_protected(entry: ViewEntry, positions: AbstractSet[int]) -> bool:
    """True if the entry stands at one of the positions, and is no summary: one may begin at a pin that stays before it."""
    return entry.first in positions and not isinstance(entry.item, SummaryStep)


def protected_tokens(view: View) -> int:
    """Return the tokens of all protected entries."""
    protected = protected_positions(view)
    return sum(entry.tokens for entry in view.entries if is_protected(entry, protected))


def unprotected_tokens(view: View, start: int) -> int:
    """Return the tokens of the entries from ``start`` on that are not protected."""
    protected = protected_positions(view)
    return sum(entry.tokens for entry in view.run if entry.first >= start and not is_protected(entry, protected))


def newest_entries(view: View) -> tuple[ViewEntry, ...]:
    """Return the newest action and the results that came as messages behind it; empty without an action."""
    acted = actions(view)[-1:]
    late = (entry for entry in view.run if acted and entry.first > acted[0].first and isinstance(entry.item, Observed))
    return (*acted, *late)


def shortens_unread(view: View, plan: Plan) -> bool:
    """True if the plan shortens results of the newest action, which the model has not read yet."""
    newest = {entry.first: isinstance(entry.item, Observed) for entry in newest_entries(view)}
    stubs = ((by.first, stub) for by in plan.replacements if by.first in newest for stub in by.stubs)
    return any(newest[first] or stub.slot == "observation" for first, stub in stubs)


def unread_tokens(view: View) -> int:
    """Return the tokens of the newest action's results, not read yet, if they fit whole beside an extract; else 0."""
    newest = newest_entries(view)
    messages = [message for entry in newest for message in entry.messages]
    results = sum(content_tokens(message.content or "", view.counter) for message in messages[1:])
    own = sum(entry.tokens for entry in newest) - results
    space = view.limit * NEWEST_FILL_SHARE - protected_tokens(view) - results - min(OWN_MIN_TOKENS, own)
    reserve = extract_reserve(view)
    if space < reserve and (not results or space < HEADER_TOKENS or extract_tokens(view, newest[0].first) > space):
        return 0
    return results


def extract_reserve(view: View) -> int:
    """Return the tokens that an extract may have beside results that stay whole."""
    return HEADER_TOKENS + int(view.limit * EXTRACT_MIN_SHARE)


def extract_tokens(view: View, stop: int) -> int:
    """Return the tokens that an extract of what stands before ``stop`` needs of them: it shows only what is worth its tokens."""
    stop = legal_stop(view, stop)
    stretches, visible = foldable_stretches(view, stop), visible_texts(view, stop)
    extracts = (summarize_stretch(view, stretch, extract_reserve(view), visible) for stretch in stretches[-1:])
    return HEADER_TOKENS + sum(view.counter.text(extract.summary or "") for extract in extracts)


def boundary(view: View, tokens: float) -> int:
    """Return the position behind which the steps cost at most ``tokens``; the newest action is always behind it."""
    every_action = actions(view)
    stop = every_action[-1].first if every_action else view.head
    protected = protected_positions(view)
    for entry in reversed(view.run):
        if is_protected(entry, protected):
            continue
        tokens -= entry.tokens
        if tokens < 0:
            break
        stop = min(stop, entry.first)
    return stop


def visible_texts(view: View, stop: int, *, users: bool = True) -> tuple[str, ...]:
    """Return the texts that stay visible when the stretches before ``stop`` leave; without ``users``, user messages leave."""
    permanent = frozenset(entry.first for entry in view.run if is_permanent(entry)) | view.important
    protected = protected_positions(view) if users else permanent
    run = (entry for entry in view.run if entry.first >= stop or is_protected(entry, protected))
    staying = (*view.systems, *view.front, *run)
    return tuple(text for entry in staying for text in _entry_texts(entry))


def _entry_texts(entry: ViewEntry) -> Iterator[str]:
    for message in entry.messages:
        yield as_text(message.content)
        for call in message.tool_calls:
            yield argument_text(call.arguments)
            yield format_call(call.name, call.arguments).text


def summarize_stretch(
    view: View, stretch: tuple[ViewEntry, ...], tokens: int, visible: tuple[str, ...], *, own: bool = False
) -> Replacement:
    """Replace a stretch by an extract of at most ``tokens`` tokens, or by one line if that is too few.

    With ``own`` the extract has lines of the stretch only, else of the whole run, as in the newest summary of a view.
    """
    first, last = covered_range(view, stretch)
    extract, tokens = Extract(), min(tokens, EXTRACT_MAX_TOKENS)
    if own and is_talk(view) and not may_fold_users(view):
        tokens = 0  # an answer between two of the user's messages, which stay: one notice stands for all of them
    if tokens > HEADER_TOKENS and is_talk(view) and all(map(_is_talk_source, stretch)):
        return Replacement(first, last, summary=_talk_extract(view, stretch, first, last, tokens, visible))
    if tokens > HEADER_TOKENS:
        within = (first, last) if own else None
        extract = select_lines(
            view.tracker, tokens - HEADER_TOKENS, view.counter,
            visible=visible, within=within, worth=view.extract_worth,
        )  # fmt: skip
    return Replacement(first, last, summary=_extract_text(first, last, extract))


def summarize_before(view: View, stop: int, tokens: int) -> Iterator[Replacement]:
    """Summarize every stretch before ``stop`` in ``tokens`` tokens together; older summaries stay."""
    stretches, visible = foldable_stretches(view, stop), visible_texts(view, stop)
    for stretch in stretches:
        is_newest = stretch is stretches[-1]
        if is_newest or not is_summary(stretch):
            yield summarize_stretch(view, stretch, tokens // len(stretches), visible, own=not is_newest)


def _extract_text(first: int, last: int, extract: Extract) -> str:
    handle = range_handle(first, last)
    if not extract.lines and not extract.names:
        return f"Out of view: {handle}."
    lines = [f"Out of view: {handle}; expand(handle) gives a step back. Lines of theirs (> done, ! failed):"]
    for position, group in groupby(extract.lines, key=lambda line: line.position):
        lines.append(f"[{step_handle(position)}]")
        lines.extend(line.with_mark for line in group)
    if extract.names:
        lines.append("Also named: " + " ".join(extract.names))
    return "\n".join(lines)


_TALK_LINE = re.compile(r"\[s(\d+)\] (user|assistant): (.+)")


def _is_talk_source(entry: ViewEntry) -> bool:
    """True for speech, and for a summary that is a notice or an extract of speech."""
    if not isinstance(entry.item, SummaryStep):
        return is_speech(entry)
    return all(map(_TALK_LINE.fullmatch, entry.item.content.splitlines()[1:]))


def _talk_extract(
    view: View, stretch: tuple[ViewEntry, ...], first: int, last: int, tokens: int, visible: tuple[str, ...]
) -> str:
    """Write the sentences of a stretch of talk that are likeliest asked for, each with its step and speaker."""
    from pagein.context.salience.talk_lines import choose_sentences, spoken_sentences  # noqa: PLC0415 - loads where talk leaves

    texts = (text for entry in stretch for text in _spoken_texts(entry))
    replaced = view.replaced_texts()
    sentences = (
        sentence
        for sentence in spoken_sentences(texts)
        if not any(old in sentence.text or sentence.text in old for old in replaced.get(sentence.position, ()))
    )
    chosen = choose_sentences(sentences, tokens - HEADER_TOKENS, view.counter, visible=visible)
    if not chosen:
        return _extract_text(first, last, Extract())
    lines = (f"[{step_handle(one.position)}] {one.speaker}: {one.text}" for one in chosen)
    return "\n".join(
        (f"Out of view: {range_handle(first, last)}; expand(handle) gives a step back. Said there:", *lines)
    )


def _spoken_texts(entry: ViewEntry) -> Iterator[tuple[int, str, str]]:
    """Yield the position, the speaker and the text of what an entry says; of an extract those of its lines."""
    if isinstance(entry.item, SummaryStep):
        for line in entry.item.content.splitlines():
            if match := _TALK_LINE.fullmatch(line):
                yield int(match[1]), match[2], match[3]
        return
    speaker = "user" if isinstance(entry.item, TaskStep) else "assistant"
    for message in entry.messages:
        yield entry.first, speaker, as_text(message.content)
