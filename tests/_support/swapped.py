"""A plugin of pytest that puts our classes in the place of a framework's own while that framework's tests run.

``tests._support.upstream_suites`` loads it, in an environment of its own. A test counts where it made one of the classes that
were put in place, in itself or in a fixture; the others say nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

PLACE, REPORT = "PAGEIN_SWAPPED_PLACE", "PAGEIN_SWAPPED_REPORT"
"""The environment: what is put in place, a key of PLACES; the file that the outcomes are written to."""

_made = 0
_outcomes: dict[str, tuple[str, str]] = {}


def _counted(kind: Any, **more: Any) -> Any:
    """The class, counting what is made of it, with these attributes besides."""

    def begun(self: Any, *given: Any, **named: Any) -> None:
        global _made  # noqa: PLW0603 - pytest loads this module once, for one run
        _made += 1
        kind.__init__(self, *given, **named)

    return type(kind.__name__, (kind,), {"__init__": begun, **more})


def _smolagents() -> Any:
    from pagein.integrations.smolagents import PageinMemory

    class Memory(PageinMemory):
        def __init__(self, system_prompt: str) -> None:
            super().__init__(system_prompt, budget=1_000_000)

    return _counted(Memory)


def _session() -> Any:
    from pagein.integrations.openai_agents.session import PageinSession

    class Session(PageinSession):
        def __init__(self, session_id: str, db_path: Any = ":memory:", *_: Any, **named: Any) -> None:
            settings = named.get("session_settings")
            super().__init__(session_id, db_path, session_settings=settings, budget=1_000_000)

    return _counted(Session)


def _store(*, url: str = ":memory:") -> Any:
    from pagein.integrations.langgraph import PageinStore

    class Store(PageinStore):
        def __init__(self, *, index: Any = None, ttl: Any = None, at: str = url) -> None:
            # The store for SQLite calls the fields that are searched by a name of its own.
            named: Any = index and {**index, "fields": index.get("text_fields") or index.get("fields")}
            super().__init__(at, index=named, ttl=ttl)

    return Store


def _memory_store() -> Any:
    return _counted(_store())


def _sqlite_store() -> Any:
    store = _store()

    @contextmanager
    def from_conn_string(url: str, *, index: Any = None, ttl: Any = None) -> Iterator[Any]:
        made = counted(index=index, ttl=ttl, at=url)
        try:
            yield made
        finally:
            made.close()

    def setup(_: Any) -> None:
        """Ours needs none."""

    counted = _counted(store, from_conn_string=staticmethod(from_conn_string), setup=setup)
    return counted


def _async_sqlite_store() -> Any:
    store = _store()

    @asynccontextmanager
    async def from_conn_string(url: str, *, index: Any = None, ttl: Any = None) -> Any:
        made = counted(index=index, ttl=ttl, at=url)
        try:
            yield made
        finally:
            made.close()

    async def setup(_: Any) -> None:
        """Ours needs none."""

    counted = _counted(store, from_conn_string=staticmethod(from_conn_string), setup=setup)
    return counted


PLACES: Mapping[str, Mapping[str, Callable[[], Any]]] = {
    "smolagents": {
        "smolagents.memory:AgentMemory": _smolagents,
        "smolagents.agents:AgentMemory": _smolagents,
        "smolagents:AgentMemory": _smolagents,
    },
    "openai-agents": {
        "agents:SQLiteSession": _session,
        "agents.memory:SQLiteSession": _session,
        "agents.memory.sqlite_session:SQLiteSession": _session,
    },
    "langgraph-store": {
        "langgraph.store.memory:InMemoryStore": _memory_store,
        "langgraph.store.sqlite:SqliteStore": _sqlite_store,
        "langgraph.store.sqlite.aio:AsyncSqliteStore": _async_sqlite_store,
        "langgraph.store.sqlite:AsyncSqliteStore": _async_sqlite_store,
    },
}
"""For each framework where its classes are found, and what is put there."""


def pytest_configure() -> None:
    """Put our classes in place, before any test is imported."""
    made: dict[Any, Any] = {}
    for where, make in PLACES[os.environ[PLACE]].items():
        module, name = where.split(":")
        found = importlib.import_module(module)
        if hasattr(found, name):
            setattr(found, name, made.setdefault(make, make()))


def pytest_runtest_setup() -> None:
    """Nothing was made for this test yet."""
    global _made  # noqa: PLW0603 - see above
    _made = 0


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a test ended, where it made one of ours."""
    if report.when == "setup" and report.passed:
        return
    if _made and report.nodeid not in _outcomes:
        said = "" if report.passed else str(report.longrepr).strip().splitlines()[-1]
        crash = getattr(report.longrepr, "reprcrash", None)
        _outcomes[report.nodeid] = (report.outcome, said if crash is None else crash.message.splitlines()[0])


def pytest_sessionfinish() -> None:
    """Write the outcomes down."""
    Path(os.environ[REPORT]).write_text(json.dumps(_outcomes), "utf-8")
