"""An ASGI app on a free port of the loopback, in a thread of its own."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any


def serve_app(app: Any) -> AbstractContextManager[str]:
    """Serve an ASGI app while the context is open; gives its address, without a path. Raises ImportError without uvicorn."""
    from pagein.server.run import serve_in_thread  # noqa: PLC0415 - needs the extra serve

    return serve_in_thread(app)
