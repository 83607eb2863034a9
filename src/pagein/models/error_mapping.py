"""From what an SDK raised, or a server answered, to one error of ours. The one place that knows what heals.

The foreign exception is not chained: it holds the request, and with it the key. Its type and its scrubbed words stay.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Any

from pagein.errors import PageinError
from pagein.events.steps import Usage
from pagein.models.base import Finish, Reply
from pagein.models.errors import ModelEmpty, ModelError, ModelOverflow, ModelRefused, ModelUnavailable
from pagein.models.overflow import overflow_in, overflowed_silently, said_by, status_of
from pagein.models.secrets import scrubbed

_HEAL = frozenset({408, 409, 425, 429})
_NEVER = frozenset({501, 505})

# A quota that is used up is told as 429, and no waiting of ours fills it.
_BROKE = re.compile(
    r"(?i)insufficient_quota|exceeded your current quota|billing|insufficient (?:credits|balance)"
)

# By the exception's name, where there is no status: what the SDKs, their HTTP clients and LangChain raise.
_PASSING = re.compile(
    r"(?i)timeout|timedout|connect|network|protocolerror|readerror|writeerror|remote|unavailable|ratelimit|overloaded|"
    r"throttl|internalserver|incompleteread|brokenpipe|resourceexhausted|deadline"
)
_WAIT = re.compile(
    r"(?i)(?:try again|retry)(?: again)? (?:in|after) (?:(\d{1,3})m)?(\d{1,6}(?:\.\d{1,6})?) ?(ms|s)"
)


def verdict(error: BaseException, model: str, known: Iterable[str] = ()) -> PageinError:
    """The error of ours for whatever was raised. ``known`` keys are scrubbed; errors of ours stay as they are."""
    if isinstance(error, PageinError):
        return error
    said = said_by(error)
    words = scrubbed(f"{type(error).__name__}: {_shortest(error, said)}", known)
    return _judged(
        model, status_of(error) or 0, said, words, passing=_passes(error), wait=_retry_after(error, said)
    )


def refused(model: str, status: int, said: str, known: Iterable[str] = ()) -> PageinError:
    """The error for a failure that came as an answer: a 200 with an error in it, as OpenRouter and MiniMax send."""
    words = scrubbed(said, known)
    return _judged(model, status, said, words, passing=False, wait=_spoken_wait(said))


def weighed(text: str | None, finish: Finish, usage: Usage | None, *, model: str, window: int) -> Reply:
    """The reply, when there is one: text that is not blank, from a model that read all it was sent.

    Raises ModelEmpty, or ModelOverflow when more went in than the window holds.
    """
    if overflowed_silently(usage, window) and usage:
        raise ModelOverflow(
            f"{model} took {usage.input_tokens} tokens into a window of {window} without a word: what it read of them is "
            "not known. Send less, or say window=... if it is larger.",
            window=window, asked=usage.input_tokens, usage=usage,
        )  # fmt: skip
    if not text or not text.strip():
        why = " its whole length went into something else: raise max_tokens" if finish == "length" else ""
        raise ModelEmpty(
            f"{model} answered without text;{why or f' it ended with {finish!r}'}", finish=finish, usage=usage
        )
    return Reply(text, usage, finish)


def _judged(
    model: str, status: int, said: str, words: str, *, passing: bool, wait: float | None
) -> ModelError:
    over = overflow_in(said, status or None)
    if over is not None:
        of = f" of {over.window} tokens" if over.window else ""
        return ModelOverflow(
            f"the request is longer than the window{of} of {model}: {words}",
            window=over.window,
            asked=over.asked,
        )
    if _BROKE.search(said):
        return ModelRefused(f"{model} will not answer until its account is filled: {words}", status=status)
    if status in _HEAL or (status >= 500 and status not in _NEVER) or (not status and passing):
        return ModelUnavailable(f"{model} is not available: {words}", status=status, retry_after=wait)
    return ModelRefused(f"{model} refused{f' ({status})' if status else ''}: {words}", status=status)


def _shortest(error: BaseException, said: str) -> str:
    """The exception's own words, or what is behind it when it has none."""
    try:
        own = str(error)
    except Exception:  # noqa: BLE001 - a foreign __str__ may do anything
        own = ""
    # "Connection error." says less than the reason behind it.
    return own if len(own) > 30 or not said else said


def _passes(error: BaseException) -> bool:
    return isinstance(error, OSError) or any(_PASSING.search(kind.__name__) for kind in type(error).__mro__)


def _retry_after(error: BaseException, said: str) -> float | None:
    """Seconds the provider asks us to wait: by its headers, else by its words."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    return (_header_wait(headers) if headers is not None else None) or _spoken_wait(said)


def _header_wait(headers: Any) -> float | None:
    try:
        exact, plain, date = (
            str(headers.get(name) or "") for name in ("retry-after-ms", "retry-after", "date")
        )
    except Exception:  # noqa: BLE001 - not a mapping
        return None
    for text, unit in ((exact, 0.001), (plain, 1.0)):
        if re.fullmatch(r"\s*\d{1,9}(\.\d{1,9})?\s*", text):
            return float(text) * unit
    try:
        until = parsedate_to_datetime(plain).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:  # by the server's own clock, where it tells it
        now = parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        now = time.time()
    return max(0.0, until - now)


def _spoken_wait(said: str) -> float | None:
    found = _WAIT.search(said[:8_000])
    if not found:
        return None
    minutes, seconds, unit = found.groups()
    return 60.0 * int(minutes or 0) + float(seconds) * (0.001 if unit == "ms" else 1.0)
