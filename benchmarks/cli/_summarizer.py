"""Option for the summarizer of a benchmark: the command line's, or ``local``, a small model served on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.cli._options import resolve_summarizer
from pagein.models.openai_chat import OpenAIModel
from tests._support.local_model import LocalModel

BenchmarkSummarizer = Annotated[
    str | None,
    Parameter(
        help="Model that writes summaries, such as openai:gpt-4o-mini or ollama:qwen3; scripted: a stand-in that is "
        "no model; local: a very small model that is downloaded and served here. Default: extracts by rules.",
        show_default=False,
    ),
]


@contextmanager
def open_summarizer(name: str | None) -> Iterator[Any]:
    """Yield the summarizer of that name, or None. Raises ConfigurationError."""
    if name != "local":
        yield resolve_summarizer(name)
        return
    with LocalModel.installed() as server:
        options = {"max_tokens": 96, "temperature": 0}
        yield OpenAIModel(server.name, base_url=server.openai, window=server.window, options=options)
