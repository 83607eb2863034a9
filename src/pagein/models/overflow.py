"""Whether an error says that the request was too long, and the real window where it says that too.

Providers agree on no code and no wording. Each row below is how one of them says it; the sentences they were seen to
say, in documentation and in reports of their users, stand in the tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pagein.events.steps import Usage
from pagein.models.errors import ModelOverflow

_N = r"(?P<{}>\d{{1,3}}(?:[,_]\d{{3}}){{1,4}}|\d{{1,15}})"
_WINDOW, _ASKED = _N.format("window"), _N.format("asked")

# Gaps are bounded, so that no text is slow to read. The first row that matches wins: rows with numbers come first.
_WORDINGS = tuple(
    re.compile(row.replace("WINDOW", _WINDOW).replace("ASKED", _ASKED), re.IGNORECASE)
    for row in (
        # Anthropic, Vertex, Bedrock; for request and answer together; Fireworks
        r"prompt is too long: ASKED tokens > WINDOW",
        r"exceed context limit: ASKED \+ [\d,]+ > WINDOW",
        r"prompt is too long: ASKED, model maximum context length: WINDOW",
        # OpenAI, Azure, OpenRouter, DeepSeek, vLLM, llama-cpp-python
        r"maximum context length is WINDOW tokens and your request has ASKED input",
        r"maximum context length (?:is|of) WINDOW.{0,120}?(?:requested|resulted in)(?: about| a total of)? ASKED",
        r"maximum context length (?:is|of|=) ?WINDOW",
        # Gemini
        r"input token count \(?ASKED\)? exceeds the maximum number of tokens allowed \(?WINDOW",
        r"input token count exceeds the maximum number of tokens allowed \(?WINDOW",
        # xAI
        r"maximum prompt length is WINDOW(?:.{0,60}?contains ASKED)?",
        # Groq, Cerebras
        r"current length is ASKED while limit is WINDOW",
        # Groq, OpenAI, for a request that no minute's quota holds: it never passes, so its limit is a window
        r"request too large.{0,200}?limit:? WINDOW,? requested:? ASKED",
        # llama.cpp, in its message and beside it
        r"\(ASKED tokens\) (?:exceeds|is larger than) the (?:available|maximum) context size \(WINDOW",
        r"\"n_prompt_tokens\": ?ASKED.{0,40}?\"n_ctx\": ?WINDOW",
        r"exceeds the available context size \(WINDOW",
        # vLLM
        r"\((?:total )?length ASKED\) is longer than the maximum model length of WINDOW",
        r"\((?:total )?length ASKED\) is too long to fit into the model \(context length WINDOW",
        r"prompt \(ASKED tokens\) is too long and exceeds limit of WINDOW",
        # SGLang
        r"input \(ASKED tokens\) is longer than the model'?s context length \(WINDOW",
        # Text generation inference
        r"max_new_tokens`? must be <= WINDOW\. Given: ASKED",
        r"inputs`? must have less than WINDOW tokens\. Given: ASKED",
        # Mistral
        r"prompt contains ASKED tokens.{0,60}?too large for model with WINDOW",
        # Kimi
        r"exceeded model token limit: WINDOW(?: \(requested: ASKED)?",
        # GitHub Copilot, Databricks
        r"token count of ASKED exceeds the limit of WINDOW",
        r"token count \(?ASKED\)? cannot exceed WINDOW",
        # Cohere
        r"tokens in the prompt cannot exceed WINDOW(?: - received ASKED)?",
        # Bedrock Nova
        r"max input tokens: WINDOW(?:, request input token count: ASKED)?",
        # Qwen
        r"range of input length should be \[\d+, ?WINDOW",
        # LM Studio
        r"keep the first ASKED tokens.{0,120}?context length of only WINDOW",
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

# What looks like one and heals by waiting. Bedrock: "Too many tokens, please wait before trying again."
_NOT = re.compile(
    r"(?i)too many (?:tokens|requests)[^.]{0,20}?(?:, please wait| per (?:minute|day|hour|second))|"
    r"throttl|rate limit reached|quota exceeded|exceeded your current quota"
)
_BARE = re.compile(r"(?i)\s*(?:error code: ?)?400(?: status code)?(?: bad request)?(?: \(no body\))?\s*")
_PLAUSIBLE = range(128, 1_000_000_000)
_MOST = 8_000


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request was too long: for which window, and how long it was, in tokens; None where nobody said."""

    window: int | None = None
    asked: int | None = None


def overflow_in(error: BaseException | str, status: int | None = None) -> Overflow | None:
    """What an error says about the window, or None when it says nothing of one. Raises nothing, whatever it is given.

    >>> overflow_in("prompt is too long: 213462 tokens > 200000 maximum")
    Overflow(window=200000, asked=213462)
    >>> overflow_in("Too many tokens, please wait before trying again.") is None
    True
    """
    if isinstance(error, ModelOverflow):
        return Overflow(error.window, error.asked)
    said = error if isinstance(error, str) else said_by(error)
    found = _read(said[:_MOST])
    if found is not None:
        return found
    status = status if status is not None or isinstance(error, str) else status_of(error)
    # Cerebras and some gateways answer 400 or 413 and nothing else; a 413 is a request too large by its meaning.
    bare = status == 400 and _BARE.fullmatch(said)
    return Overflow() if status == 413 or bare else None


def overflowed_silently(usage: Usage | None, window: int) -> bool:
    """Whether a provider took more than the window holds without a word, as z.ai does: what it read is not known."""
    return usage is not None and usage.input_tokens > window > 0


def said_by(error: BaseException) -> str:
    """All an exception and those behind it say: texts, codes, and the body an SDK keeps beside them."""
    texts: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen and len(seen) < 8:
        seen.add(id(error))
        texts.extend(_texts(error))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return "\n".join(dict.fromkeys(text for text in texts if text))


def status_of(error: BaseException) -> int | None:
    """The HTTP status an SDK's exception carries, under whichever of its usual names."""
    for name in ("status_code", "http_status", "status", "code"):
        value = _look(error, name)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:
            return value
    response = _look(error, "response")
    if isinstance(response, dict):  # botocore
        metadata = response.get("ResponseMetadata")
        value = metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None
    else:
        value = _look(response, "status_code")
    return value if isinstance(value, int) else None


def _read(said: str) -> Overflow | None:
    hits = ((row, row.search(said)) for row in _WORDINGS)
    match = next((match for _, match in hits if match), None)
    if match is None:
        return None
    window, asked = (_number(match.groupdict().get(name)) for name in ("window", "asked"))
    if window is None and _NOT.search(said):
        return None
    return Overflow(window, asked)


def _number(digits: str | None) -> int | None:
    value = int(re.sub(r"\D", "", digits)) if digits else 0
    return value if value in _PLAUSIBLE else None


def _texts(error: BaseException) -> Iterator[str]:
    try:
        yield str(error)[:_MOST]
    except Exception:  # noqa: BLE001 - a foreign __str__ may do anything
        yield type(error).__name__
    for name in ("message", "code", "type"):
        value = _look(error, name)
        if isinstance(value, str):
            yield value[:_MOST]
    yield _body(error)


def _body(error: BaseException) -> str:
    """The response's body as text; empty when there is none."""
    body = _look(error, "body")
    if body is None:
        response = _look(error, "response")
        body = response.get("Error") if isinstance(response, dict) else _look(response, "text")
    if not body:
        return ""
    return (body if isinstance(body, str) else _as_json(body))[:_MOST]


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return ""


def _look(value: Any, name: str) -> Any:
    """An attribute, or None: an SDK's property may raise where nothing was read yet."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001
        return None
