"""The summarizer of a benchmark: as the command line takes it, or ``local``, a very small model served on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.cli import _writers
from pagein.models.openai_chat import OpenAIModel
from tests._support.local_model import LocalModel

WriterName = Annotated[
    str | None,
    Parameter(
        help="The summarizer: openai:gpt-4o-mini, ollama:qwen3; scripted, which is no model; local, which fetches a "
        "very small one and serves it. Without it, summaries are extracts.",
        show_default=False,
    ),
]


@contextmanager
def writer(name: str | None) -> Iterator[Any]:
    """Yield the summarizer of that name, or None. Raises ConfigurationError."""
    if name != "local":
        with _writers.writer(name) as model:
            yield model
        return
    with LocalModel.installed() as server:
        options = {"max_tokens": 96, "temperature": 0}
        yield OpenAIModel(server.name, base_url=server.openai, window=server.window, options=options)
