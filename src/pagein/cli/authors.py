"""Who writes summaries, as several commands take it: a model by its name, a scripted one, a very small one served here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.bench.authors import Scripted

WriterName = Annotated[
    str | None,
    Parameter(
        help="Who writes summaries: openai:gpt-4o-mini, ollama:qwen3; scripted, which is no model; local, which fetches "
        "a very small one and serves it. Without it code extracts.",
        show_default=False,
    ),
]


@contextmanager
def writer(name: str | None) -> Iterator[Any]:
    """What a memory is given as its summarizer: a model, or None. Raises ConfigurationError."""
    if name is None or name == "scripted":
        yield None if name is None else Scripted()
    elif name == "local":
        from pagein.models.openai_chat import OpenAIModel  # noqa: PLC0415 - loads where one is asked for
        from pagein.testing.local_model import LocalModel  # noqa: PLC0415

        with LocalModel.installed() as served:
            told = {"max_tokens": 96, "temperature": 0}
            yield OpenAIModel(served.name, base_url=served.openai, window=served.window, options=told)
    else:
        from pagein.models import as_model  # noqa: PLC0415 - SDKs load where a model is given

        yield as_model(name)
