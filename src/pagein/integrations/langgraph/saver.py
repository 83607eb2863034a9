"""The checkpoints of a graph in the SQLite file of the logs: a ``BaseCheckpointSaver`` with every capability."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, cast

from pagein.backends.sqlite import graph_tables as sql
from pagein.backends.sqlite.graph_tables import GraphTables, Typed
from pagein.backends.sqlite.migrations import CHECKPOINT_TABLES
from pagein.errors import ConfigurationError, FormatError
from pagein.integrations._versions import require_release
from pagein.integrations.langgraph.channels import Channels
from pagein.log.hash_chain import check_name

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
except ImportError as missing:
    raise ConfigurationError("LangGraph needs pip install 'pagein[langgraph]'") from missing

_DELTA_COUNTERS = "counters_since_delta_snapshot"

P = ParamSpec("P")
T = TypeVar("T")


def _in_thread(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the async form of a method: it runs the method of that name, a subclass's too, in a thread."""

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await asyncio.to_thread(getattr(self, method.__name__), *args, **kwargs)
        return result

    return call


class CheckpointRow(NamedTuple):
    """A stored checkpoint; ``metadata`` and ``body`` are as the saver's serializer wrote them, each with its kind."""

    thread: str
    ns: str
    id: str
    parent: str | None
    kind: str
    body: bytes
    metadata_kind: str
    metadata: bytes


Rows = list[CheckpointRow]


class PageinSaver(BaseCheckpointSaver[str]):
    """Saves a graph's checkpoints beside the logs of its conversations, each save durable, and whole or not at all.

    ``graph.compile(checkpointer=PageinSaver("run.db"))``. A list is stored item by item, each once, so that a thread
    of n messages costs n messages and not n squared. ``tenant`` keeps its threads apart from other tenants'. The async
    methods use the file in a thread. Raises LogError, ConfigurationError; a context manager, sync and async.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        tenant: str = "",
        serde: SerializerProtocol | None = None,
        timeout: float = 5.0,
        synchronous: str = "FULL",
    ) -> None:
        require_release("langgraph-checkpoint")
        super().__init__(serde=serde)
        self._tenant = check_name("tenant", tenant)
        self._tables = GraphTables(url, timeout=timeout, synchronous=synchronous)
        self._tables.create(CHECKPOINT_TABLES)

    # -- one checkpoint

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint with its new channels; returns the config that finds it."""
        settings = _settings(config)
        thread, ns = _thread_id(settings), str(settings.get("checkpoint_ns", ""))
        rest = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        values = checkpoint["channel_values"]
        full_metadata = get_checkpoint_metadata(config, metadata)
        body, metadata_body = self.serde.dumps_typed(rest), self.serde.dumps_typed(full_metadata)
        channels = self._channels(thread, ns)
        encoded = [channels.encode(name, version, values) for name, version in new_versions.items()]
        parent, run = settings.get("checkpoint_id"), full_metadata.get("run_id")
        row = (self._tenant, thread, ns, checkpoint["id"], parent, run, *body, *metadata_body)
        with self._tables.writing() as database:
            for version in encoded:
                channels.write(database, version)
            database.execute(sql.SAVE_CHECKPOINT, row)
        return _config(thread, ns, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task, all or none. A second save replaces errors and interrupts, and nothing else."""
        settings = _settings(config)
        key = (
            self._tenant,
            _thread_id(settings),
            str(settings.get("checkpoint_ns", "")),
            str(settings["checkpoint_id"]),
        )
        rows = []
        for at, (channel, value) in enumerate(writes):
            number = WRITES_IDX_MAP.get(channel, at)
            rows.append((*key, task_id, number, channel, *self.serde.dumps_typed(value), task_path))
        with self._tables.writing() as database:
            for row in rows:
                database.execute(sql.REPLACE_WRITE if row[5] < 0 else sql.SAVE_NEW_WRITE, row)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that the config names, or the thread's latest; None where there is none."""
        settings = _settings(config)
        thread, ns, name = (_thread_id(settings), str(settings.get("checkpoint_ns", "")), settings.get("checkpoint_id"))
        rows = self._select({"thread": thread, "ns": ns} | ({"id": str(name)} if name else {}), 1)
        return self._tuple(rows[0]) if rows else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, of every thread without a config, newest first."""
        for row in self._select_listed(config, filter, before, limit):
            checkpoint = self.get_tuple(_config(*row[:3]))
            if checkpoint is not None:  # it may be deleted while the list is read
                yield checkpoint

    # -- many

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread: its checkpoints, their channels and writes."""
        with self._tables.writing() as database:
            for statement in sql.DELETE_THREAD:
                database.execute(statement, (self._tenant, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Erase the checkpoints of these runs, with their writes.

        As with every saver, a DeltaChannel that builds on them can no longer be rebuilt.
        """
        for run in run_ids:
            rows = self._select({"run": str(run)})
            for thread in {row.thread for row in rows}:
                self._erase(thread, [row for row in rows if row.thread == thread])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread into another, parent chains included."""
        with self._tables.writing() as database:
            for statement in sql.COPY_THREAD:
                database.execute(statement, (str(target_thread_id), self._tenant, str(source_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Erase all checkpoints of the threads (``delete``), or all but the latest of each namespace (``keep_latest``).

        For a DeltaChannel, the checkpoints that the latest one builds on are kept too.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ConfigurationError(f"strategy is 'keep_latest' or 'delete', not {strategy!r}")
        for thread in map(str, thread_ids):
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            rows = self._select({"thread": thread})
            latest: dict[str, CheckpointRow] = {}
            for row in rows:
                latest.setdefault(row.ns, row)
            needed = {(row.ns, row.id) for newest in latest.values() for row in self._chain(newest, rows)}
            self._erase(thread, [row for row in rows if (row.ns, row.id) not in needed])

    def _chain(self, latest: CheckpointRow, rows: Sequence[CheckpointRow]) -> Iterator[CheckpointRow]:
        """The checkpoint, and its ancestors back to where each DeltaChannel was last saved whole."""
        by_id = {row.id: row for row in rows if row.ns == latest.ns}
        metadata = self._metadata(latest)
        missing = set(metadata.get(_DELTA_COUNTERS) or ())
        row: CheckpointRow | None = latest
        while row is not None:
            yield row
            missing -= set(self._values(row)[1])
            row = by_id.get(row.parent or "") if missing else None

    def _erase(self, thread: str, rows: Sequence[CheckpointRow]) -> None:
        """Erase these checkpoints of one thread, and the channels that no other one uses."""
        with self._tables.writing() as database:
            for row in rows:
                key = (self._tenant, thread, row.ns, row.id)
                for statement in sql.DELETE_CHECKPOINT:
                    database.execute(statement, key)
            used: dict[str, set[tuple[str, str]]] = {}
            for row in self._select({"thread": thread}):
                versions = self.serde.loads_typed((row.kind, row.body))["channel_versions"]
                used.setdefault(row.ns, set()).update((name, json.dumps(version)) for name, version in versions.items())
            self._channels(thread, "").delete_unused(database, used)

    # -- reading

    def _select(self, conditions: Mapping[str, str], limit: int = -1) -> Rows:
        statement = sql.select_checkpoints(conditions)
        rows = self._tables.rows(statement, (self._tenant, *conditions.values(), limit))
        return [CheckpointRow(*cast(CheckpointRow, row)) for row in rows]

    def _select_listed(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Rows:
        settings = _settings(config) if config is not None else {}
        names = {
            "thread": settings.get("thread_id"),
            "ns": settings.get("checkpoint_ns"),
            "id": settings.get("checkpoint_id"),
        }
        conditions = {key: str(value) for key, value in names.items() if value is not None}
        earlier = _settings(before).get("checkpoint_id") if before is not None else None
        if earlier:
            conditions["before"] = str(earlier)
        if limit is not None and limit <= 0:
            return []
        # Only the saver's serializer can read the metadata, so a filter is applied here, before the limit.
        rows = self._select(conditions, -1 if filter or limit is None else limit)
        if filter:
            rows = [row for row in rows if self._has_metadata(row, filter)][:limit]
        return rows

    def _metadata(self, row: CheckpointRow) -> Any:
        return self.serde.loads_typed((row.metadata_kind, row.metadata))

    def _has_metadata(self, row: CheckpointRow, filter: Mapping[str, Any]) -> bool:
        metadata = self._metadata(row)
        return all(metadata.get(key) == value for key, value in filter.items())

    def _values(self, row: CheckpointRow) -> tuple[dict[str, Any], dict[str, Any]]:
        checkpoint = self.serde.loads_typed((row.kind, row.body))
        return checkpoint, self._channels(row.thread, row.ns).load(checkpoint["channel_versions"])

    def _tuple(self, row: CheckpointRow) -> CheckpointTuple:
        checkpoint, values = self._values(row)
        writes = self._tables.rows(sql.READ_WRITES, (self._tenant, row.thread, row.ns, row.id))
        return CheckpointTuple(
            config=_config(row.thread, row.ns, row.id),
            checkpoint=cast(Checkpoint, {**checkpoint, "channel_values": values}),
            metadata=self._metadata(row),
            parent_config=_config(row.thread, row.ns, row.parent) if row.parent else None,
            pending_writes=[
                (str(task), str(channel), self.serde.loads_typed(cast(Typed, tuple(typed))))
                for task, channel, *typed in writes
            ],
        )

    def _channels(self, thread: str, ns: str) -> Channels:
        return Channels(self._tables, self.serde, self._tenant, thread, ns)

    # -- the same, awaited

    aput = _in_thread(put)
    aput_writes = _in_thread(put_writes)
    aget_tuple = _in_thread(get_tuple)
    adelete_thread = _in_thread(delete_thread)
    adelete_for_runs = _in_thread(delete_for_runs)
    acopy_thread = _in_thread(copy_thread)
    aprune = _in_thread(prune)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield what ``list`` yields."""
        for row in await asyncio.to_thread(self._select_listed, config, filter, before, limit):
            checkpoint = await self.aget_tuple(_config(*row[:3]))
            if checkpoint is not None:
                yield checkpoint

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 - theirs
        """The version after the current one; a random suffix keeps it apart from a fork's, as two may write a channel."""
        number = int(str(current).split(".", maxsplit=1)[0]) if current is not None else 0
        return f"{number + 1:032}.{secrets.token_hex(8)}"

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self._tables.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)


def _settings(config: RunnableConfig) -> Mapping[str, Any]:
    return config.get("configurable") or {}


def _thread_id(settings: Mapping[str, Any]) -> str:
    if settings.get("thread_id") is None:
        raise FormatError("a checkpoint needs a thread: pass config={'configurable': {'thread_id': 'a name'}}")
    return str(settings["thread_id"])


def _config(thread: str, ns: str, name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": name}}
