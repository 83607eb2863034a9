"""Maps an SDK's exceptions and a server's error answers to ModelError. The only place that decides what is retryable.

The original exception is not chained: it holds the request, and with it the key. Its type and redacted message stay.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any

from pagein.errors import PageinError
from pagein.events.steps import Usage
from pagein.models.base import FinishReason, ModelResponse
from pagein.models.environment import redact_keys
from pagein.models.errors import ModelEmpty, ModelError, ModelOverflow, ModelRefused, ModelUnavailable
from pagein.models.overflow import detect_overflow, error_text, http_status, is_silent_overflow

_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
_PERMANENT_STATUSES = frozenset({501, 505})

# A used-up quota is reported as 429, but waiting does not refill it.
_QUOTA_EXHAUSTED = re.compile(
    r"(?i)insufficient_quota|exceeded your current quota|billing|insufficient (?:credits|balance)"
)

# Names of the exceptions of SDKs, HTTP clients and LangChain, where there is no status.
_TRANSIENT_NAMES = re.compile(
    r"(?i)timeout|timedout|connect|network|protocolerror|readerror|writeerror|remote|unavailable|ratelimit|overloaded|"
    r"throttl|internalserver|incompleteread|brokenpipe|resourceexhausted|deadline"
)
_RETRY_HINT = re.compile(
    r"(?i)(?:try again|retry)(?: again)? (?:in|after) (?:(\d{1,3})m)?(\d{1,6}(?:\.\d{1,6})?) ?(ms|s)"
)


def map_error(error: BaseException, model: str, keys: Iterable[str] = ()) -> PageinError:
    """Return the PageinError for any exception. ``keys`` are redacted; a PageinError is returned unchanged."""
    if isinstance(error, PageinError):
        return error
    text = error_text(error)
    summary = redact_keys(f"{type(error).__name__}: {_error_message(error, text)}", keys)
    status, wait = http_status(error) or 0, _retry_after(error, text)
    return _classify_failure(model, status, text, summary, is_transient=_is_transient(error), retry_after=wait)


def map_error_answer(model: str, status: int, text: str) -> PageinError:
    """Return the error for an answer with status 200 that reports a failure, as OpenRouter and MiniMax send."""
    return _classify_failure(
        model, status, text, redact_keys(text), is_transient=False, retry_after=_wait_in_text(text)
    )


def build_response(
    text: str | None, finish: FinishReason, usage: Usage | None, *, model: str, window: int
) -> ModelResponse:
    """Return the response if its text is not blank and the model read the whole request.

    Raises ModelEmpty, or ModelOverflow when the input exceeds the window.
    """
    if is_silent_overflow(usage, window) and usage:
        raise ModelOverflow(
            f"{model} accepted {usage.input_tokens} tokens into a window of {window} without an error; how many it read "
            "is unknown. Send less, or set window=... if it is larger.",
            window=window, requested=usage.input_tokens, usage=usage,
        )  # fmt: skip
    if not text or not text.strip():
        reason = f"it ended with {finish!r}"
        if finish == "length":
            reason = "all its tokens went into something other than text: raise max_tokens"
        raise ModelEmpty(f"{model} answered without text; {reason}", finish=finish, usage=usage)
    return ModelResponse(text, usage, finish)


def _classify_failure(
    model: str, status: int, text: str, summary: str, *, is_transient: bool, retry_after: float | None
) -> ModelError:
    overflow = detect_overflow(text, status or None)
    if overflow is not None:
        window = f" of {overflow.window} tokens" if overflow.window else ""
        return ModelOverflow(
            f"the request is longer than the window{window} of {model}: {summary}",
            window=overflow.window,
            requested=overflow.requested,
        )
    if _QUOTA_EXHAUSTED.search(text):
        return ModelRefused(f"{model} will not answer until its account is filled: {summary}", status=status)
    if status:
        is_transient = status in _RETRYABLE_STATUSES or (status >= 500 and status not in _PERMANENT_STATUSES)
    if is_transient:
        message = f"{model} is not available: {summary}"
        return ModelUnavailable(message, status=status, retry_after=retry_after)
    return ModelRefused(f"{model} refused{f' ({status})' if status else ''}: {summary}", status=status)


def _error_message(error: BaseException, text: str) -> str:
    """The exception's own message, or the text of its causes when the message is short."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a foreign __str__ may do anything
        message = ""
    # "Connection error." says less than its cause.
    return message if len(message) > 30 or not text else text


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, OSError) or any(_TRANSIENT_NAMES.search(kind.__name__) for kind in type(error).__mro__)


def _retry_after(error: BaseException, text: str) -> float | None:
    """Seconds the provider asks to wait: from the headers, else from the text."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    return (_wait_in_headers(headers) if headers is not None else None) or _wait_in_text(text)


def _wait_in_headers(headers: Any) -> float | None:
    try:
        exact, standard, date = (str(headers.get(name) or "") for name in ("retry-after-ms", "retry-after", "date"))
    except Exception:  # noqa: BLE001 - not a mapping
        return None
    for text, unit in ((exact, 0.001), (standard, 1.0)):
        if re.fullmatch(r"\s*\d{1,9}(\.\d{1,9})?\s*", text):
            return float(text) * unit
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - loads where a server says when

    try:
        until = parsedate_to_datetime(standard).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:  # by the server's clock, where the Date header has it
        now = parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        now = time.time()
    return max(0.0, until - now)


def _wait_in_text(text: str) -> float | None:
    match = _RETRY_HINT.search(text[:8_000])
    if not match:
        return None
    minutes, seconds, unit = match.groups()
    return 60.0 * int(minutes or 0) + float(seconds) * (0.001 if unit == "ms" else 1.0)
