"""Who writes summaries, as several commands take it: a model by its name, or a scripted one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from cyclopts import Parameter

from pagein.testing.scripted_writer import Scripted

WriterName = Annotated[
    str | None,
    Parameter(
        help="Who writes summaries: openai:gpt-4o-mini, ollama:qwen3; scripted, which is no model. "
        "Without it code extracts.",
        show_default=False,
    ),
]


@contextmanager
def writer(name: str | None) -> Iterator[Any]:
    """What a memory is given as its summarizer: a model, or None. Raises ConfigurationError."""
    if name is None or name == "scripted":
        yield None if name is None else Scripted()
    else:
        from pagein.models import as_model  # noqa: PLC0415 - SDKs load where a model is given

        yield as_model(name)
