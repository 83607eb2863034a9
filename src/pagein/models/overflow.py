"""Detection of context overflow in a provider's error, with the real window where the error names it.

Providers agree on no code and no wording. Each pattern below is one provider's wording; the tests hold the messages,
from documentation and users' reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pagein.events.steps import Usage
from pagein.models.errors import ModelOverflow

_NUMBER = r"(?P<{}>\d{{1,3}}(?:[,_]\d{{3}}){{1,4}}|\d{{1,15}})"
_WINDOW, _REQUESTED = _NUMBER.format("window"), _NUMBER.format("requested")

# Gaps are bounded, so that matching is fast on any text. The first match wins; patterns with numbers come first.
_WORDINGS = tuple(
    re.compile(row.replace("WINDOW", _WINDOW).replace("REQUESTED", _REQUESTED), re.IGNORECASE)
    for row in (
        # Anthropic, Vertex, Bedrock; for request and answer together; Fireworks
        r"prompt is too long: REQUESTED tokens > WINDOW",
        r"exceed context limit: REQUESTED \+ [\d,]+ > WINDOW",
        r"prompt is too long: REQUESTED, model maximum context length: WINDOW",
        # OpenAI, Azure, OpenRouter, DeepSeek, vLLM, llama-cpp-python
        r"maximum context length is WINDOW tokens and your request has REQUESTED input",
        r"maximum context length (?:is|of) WINDOW.{0,120}?(?:requested|resulted in)(?: about| a total of)? REQUESTED",
        r"maximum context length (?:is|of|=) ?WINDOW",
        # Gemini
        r"input token count \(?REQUESTED\)? exceeds the maximum number of tokens allowed \(?WINDOW",
        r"input token count exceeds the maximum number of tokens allowed \(?WINDOW",
        # xAI
        r"maximum prompt length is WINDOW(?:.{0,60}?contains REQUESTED)?",
        # Groq, Cerebras
        r"current length is REQUESTED while limit is WINDOW",
        # Groq, OpenAI, for a request that no minute's quota holds: it never passes, so its limit is a window
        r"request too large.{0,200}?limit:? WINDOW,? requested:? REQUESTED",
        # llama.cpp, in its message and beside it
        r"\(REQUESTED tokens\) (?:exceeds|is larger than) the (?:available|maximum) context size \(WINDOW",
        r"\"n_prompt_tokens\": ?REQUESTED.{0,40}?\"n_ctx\": ?WINDOW",
        r"exceeds the available context size \(WINDOW",
        # vLLM
        r"\((?:total )?length REQUESTED\) is longer than the maximum model length of WINDOW",
        r"\((?:total )?length REQUESTED\) is too long to fit into the model \(context length WINDOW",
        r"prompt \(REQUESTED tokens\) is too long and exceeds limit of WINDOW",
        # SGLang
        r"input \(REQUESTED tokens\) is longer than the model'?s context length \(WINDOW",
        # Text generation inference
        r"max_new_tokens`? must be <= WINDOW\. Given: REQUESTED",
        r"inputs`? must have less than WINDOW tokens\. Given: REQUESTED",
        # Mistral
        r"prompt contains REQUESTED tokens.{0,60}?too large for model with WINDOW",
        # Kimi
        r"exceeded model token limit: WINDOW(?: \(requested: REQUESTED)?",
        # GitHub Copilot, Databricks
        r"token count of REQUESTED exceeds the limit of WINDOW",
        r"token count \(?REQUESTED\)? cannot exceed WINDOW",
        # Cohere
        r"tokens in the prompt cannot exceed WINDOW(?: - received REQUESTED)?",
        # Bedrock Nova
        r"max input tokens: WINDOW(?:, request input token count: REQUESTED)?",
        # Qwen
        r"range of input length should be \[\d+, ?WINDOW",
        # LM Studio
        r"keep the first REQUESTED tokens.{0,120}?context length of only WINDOW",
        # And without a number: Anthropic, Bedrock, Ollama
        r"prompt is too long|prompt too long|input is too long for requested model|request_too_large",
        # OpenAI, MiniMax (whose number in brackets is the error's own), Ollama (whose number is the excess)
        r"exceed(?:s|ed)? (?:the |this model's )?(?:max |maximum )?context (?:window|length|size|limit)",
        r"context (?:window|length) exceed(?:s|ed)|context[_ ](?:length|window)[_ ]exceeded|exceed_context_size",
        r"string_above_max_length|model_max_prompt_tokens_exceeded|request exceeds the maximum size",
        # Groq, Cerebras, Gemini, LM Studio, llama.cpp
        r"reduce the length of the (?:messages|prompt|input)|input token count.{0,40}?exceeds the maximum",
        r"available context size|greater than the context length|context the overflows|context overflow",
        # Zhipu, and several that say no more than this
        r"prompt exceeds max(?:imum)? length|too many (?:input |total )?tokens|token limit exceeded",
    )
)

# Rate limits, which look like an overflow and pass. Bedrock: "Too many tokens, please wait before trying again."
_RATE_LIMITED = re.compile(
    r"(?i)too many (?:tokens|requests)[^.]{0,20}?(?:, please wait| per (?:minute|day|hour|second))|"
    r"throttl|rate limit reached|quota exceeded|exceeded your current quota"
)
_BARE_STATUS_400 = re.compile(r"(?i)\s*(?:error code: ?)?400(?: status code)?(?: bad request)?(?: \(no body\))?\s*")
_PLAUSIBLE_TOKENS = range(128, 1_000_000_000)
_MAX_TEXT_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class Overflow:
    """Context overflow: the model's window and the request's length in tokens; None where the error names none."""

    window: int | None = None
    requested: int | None = None


def detect_overflow(error: BaseException | str, status: int | None = None) -> Overflow | None:
    """Detect a context overflow in an error or its text; None if it is another error. Never raises.

    >>> detect_overflow("prompt is too long: 213462 tokens > 200000 maximum")
    Overflow(window=200000, requested=213462)
    >>> detect_overflow("Too many tokens, please wait before trying again.") is None
    True
    """
    if isinstance(error, ModelOverflow):
        return Overflow(error.window, error.requested)
    text = error if isinstance(error, str) else error_text(error)
    overflow = _parse_overflow(text[:_MAX_TEXT_CHARS])
    if overflow is not None:
        return overflow
    status = status if status is not None or isinstance(error, str) else http_status(error)
    # Cerebras and some gateways answer a bare 400 or 413. A 413 means "content too large".
    bare = status == 400 and _BARE_STATUS_400.fullmatch(text)
    return Overflow() if status == 413 or bare else None


def is_silent_overflow(usage: Usage | None, window: int) -> bool:
    """True if the reported input exceeds the window without an error, as with z.ai: how much was read is unknown."""
    return usage is not None and usage.input_tokens > window > 0


def error_text(error: BaseException) -> str:
    """Text of an exception and its causes: messages, codes, and the response bodies that SDKs attach."""
    texts: list[str] = []
    visited: set[int] = set()
    while error is not None and id(error) not in visited and len(visited) < 8:
        visited.add(id(error))
        texts.extend(_texts(error))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return "\n".join(dict.fromkeys(text for text in texts if text))


def http_status(error: BaseException) -> int | None:
    """HTTP status of an SDK's exception, under any of its usual attribute names."""
    for name in ("status_code", "http_status", "status", "code"):
        value = _attribute(error, name)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
            return value
    response = _attribute(error, "response")
    if isinstance(response, dict):  # botocore
        metadata = response.get("ResponseMetadata")
        value = metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None
    else:
        value = _attribute(response, "status_code")
    return value if isinstance(value, int) else None


def _parse_overflow(text: str) -> Overflow | None:
    match = next(filter(None, (wording.search(text) for wording in _WORDINGS)), None)
    if match is None:
        return None
    window, requested = (_number(match.groupdict().get(name)) for name in ("window", "requested"))
    if window is None and _RATE_LIMITED.search(text):
        return None
    return Overflow(window, requested)


def _number(digits: str | None) -> int | None:
    value = int(re.sub(r"\D", "", digits)) if digits else 0
    return value if value in _PLAUSIBLE_TOKENS else None


def _texts(error: BaseException) -> Iterator[str]:
    try:
        yield str(error)[:_MAX_TEXT_CHARS]
    except Exception:  # noqa: BLE001 - a foreign __str__ may do anything
        yield type(error).__name__
    for name in ("message", "code", "type"):
        value = _attribute(error, name)
        if isinstance(value, str):
            yield value[:_MAX_TEXT_CHARS]
    yield _body(error)


def _body(error: BaseException) -> str:
    """The response's body as text; empty when there is none."""
    body = _attribute(error, "body")
    if body is None:
        response = _attribute(error, "response")
        body = response.get("Error") if isinstance(response, dict) else _attribute(response, "text")
    if not body:
        return ""
    return (body if isinstance(body, str) else _as_json(body))[:_MAX_TEXT_CHARS]


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return ""


def _attribute(value: Any, name: str) -> Any:
    """An attribute, or None: an SDK's property may raise before the response was read."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001
        return None
