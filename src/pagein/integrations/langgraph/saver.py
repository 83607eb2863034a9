"""The checkpoints of a graph in the SQLite file of the logs: a ``BaseCheckpointSaver`` with every capability."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from pagein.errors import ConfigurationError, FormatError
from pagein.integrations._versions import checked_release
from pagein.integrations.langgraph.channels import Channels
from pagein.integrations.langgraph.tables import CHECKPOINT_TABLES, Tables, Typed

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

_COLUMNS = "thread, ns, id, parent, kind, body, metadata_kind, metadata"
_PUT = """INSERT OR REPLACE INTO langgraph_checkpoints
    (tenant, thread, ns, id, parent, run, kind, body, metadata_kind, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_WRITE = "INTO langgraph_writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WRITES = """SELECT task, channel, kind, body FROM langgraph_writes
    WHERE tenant = ? AND thread = ? AND ns = ? AND checkpoint = ? ORDER BY path, task, number"""

_DELTAS = "counters_since_delta_snapshot"

Row = tuple[str, str, str, str | None, str, bytes, str, bytes]
Rows = list[Row]


class PageinSaver(BaseCheckpointSaver[str]):
    """Saves a graph's checkpoints beside the logs of its conversations, each save whole and durable or not at all.

    ``graph.compile(checkpointer=PageinSaver("run.db"))``. A list is stored item by item, each once, so that a thread
    of n messages costs n messages and not n squared. ``tenant`` keeps its threads apart from other tenants'. The async
    verbs reach the file from a thread. Raises LogError, ConfigurationError; a context manager, sync and async.
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
        checked_release("langgraph-checkpoint")
        super().__init__(serde=serde)
        self._tenant = tenant
        self._tables = Tables(url, timeout=timeout, synchronous=synchronous)
        self._tables.create(CHECKPOINT_TABLES)

    # -- one checkpoint

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint with the channels that are new in it; gives the config that finds it."""
        named = _named(config)
        thread, ns = _thread(named), str(named.get("checkpoint_ns", ""))
        kept = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        values = checkpoint["channel_values"]
        about = get_checkpoint_metadata(config, metadata)
        body, told = self.serde.dumps_typed(kept), self.serde.dumps_typed(about)
        channels = self._channels(thread, ns)
        spelled = [channels.spelled(name, version, values) for name, version in new_versions.items()]
        parent, run = named.get("checkpoint_id"), about.get("run_id")
        row = (self._tenant, thread, ns, checkpoint["id"], parent, run, *body, *told)
        with self._tables.writing() as database:
            for each in spelled:
                channels.write(database, each)
            database.execute(_PUT, row)
        return _config(thread, ns, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote, all or none. Written again, an error or interrupt replaces, all else stays."""
        named = _named(config)
        found = (
            self._tenant,
            _thread(named),
            str(named.get("checkpoint_ns", "")),
            str(named["checkpoint_id"]),
        )
        rows = []
        for at, (channel, value) in enumerate(writes):
            number = WRITES_IDX_MAP.get(channel, at)
            rows.append((*found, task_id, number, channel, *self.serde.dumps_typed(value), task_path))
        with self._tables.writing() as database:
            for row in rows:
                how = "REPLACE" if row[5] < 0 else "IGNORE"
                database.execute(f"INSERT OR {how} {_WRITE}", row)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that the config names, or the thread's latest; None where there is none."""
        named = _named(config)
        thread, ns, wanted = _thread(named), str(named.get("checkpoint_ns", "")), named.get("checkpoint_id")
        which, extra = ("AND id = ?", (str(wanted),)) if wanted else ("", ())
        found = self._select(f"tenant = ? AND thread = ? AND ns = ? {which}", (thread, ns, *extra), 1)
        return self._tuple(found[0]) if found else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, of every thread without a config, newest first."""
        for row in self._listed(config, filter, before, limit):
            found = self.get_tuple(_config(*row[:3]))
            if found is not None:  # deleted while the list was read
                yield found

    # -- many

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread: its checkpoints, their channels and writes."""
        with self._tables.writing() as database:
            for table in CHECKPOINT_TABLES:
                statement = f"DELETE FROM {table.name} WHERE tenant = ? AND thread = ?"  # noqa: S608
                database.execute(statement, (self._tenant, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Erase the checkpoints that these runs made, with their writes.

        A DeltaChannel that was to be rebuilt from them cannot be, as with every saver.
        """
        for run in run_ids:
            gone = self._select("tenant = ? AND run = ?", (str(run),))
            for thread in {row[0] for row in gone}:
                self._erase(thread, [row for row in gone if row[0] == thread])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything a thread has into another, whole parent chains included."""
        with self._tables.writing() as database:
            for table in CHECKPOINT_TABLES:
                statement = f"""INSERT OR REPLACE INTO {table.name} (tenant, thread, {table.others})
                    SELECT tenant, ?, {table.others} FROM {table.name} WHERE tenant = ? AND thread = ?"""  # noqa: S608
                database.execute(statement, (str(target_thread_id), self._tenant, str(source_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Erase all checkpoints of the threads (``delete``), or all but the latest of each namespace (``keep_latest``).

        Of a graph with a DeltaChannel those are kept too from which the latest is rebuilt.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ConfigurationError(f"strategy is 'keep_latest' or 'delete', not {strategy!r}")
        for thread in map(str, thread_ids):
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            rows = self._select("tenant = ? AND thread = ?", (thread,))
            latest: dict[str, Row] = {}
            for row in rows:
                latest.setdefault(row[1], row)
            kept = {each[1:3] for row in latest.values() for each in self._needed(row, rows)}
            self._erase(thread, [row for row in rows if row[1:3] not in kept])

    def _needed(self, latest: Row, rows: Sequence[Row]) -> Iterator[Row]:
        """The checkpoint, and its ancestors back to where each DeltaChannel was last saved whole."""
        by_id = {row[2]: row for row in rows if row[1] == latest[1]}
        metadata = self.serde.loads_typed((latest[6], latest[7]))
        missing = set(metadata.get(_DELTAS) or ())
        row: Row | None = latest
        while row is not None:
            yield row
            missing -= set(self._values(row)[1])
            row = by_id.get(row[3] or "") if missing else None

    def _erase(self, thread: str, rows: Sequence[Row]) -> None:
        """Erase these checkpoints of one thread, and what no other has a use for."""
        with self._tables.writing() as database:
            for _, ns, name, *_rest in rows:
                key = (self._tenant, thread, ns, name)
                where = "WHERE tenant = ? AND thread = ? AND ns = ? AND"
                database.execute(f"DELETE FROM langgraph_checkpoints {where} id = ?", key)  # noqa: S608
                database.execute(f"DELETE FROM langgraph_writes {where} checkpoint = ?", key)  # noqa: S608
            left = self._select("tenant = ? AND thread = ?", (thread,))
            used: dict[str, set[tuple[str, str]]] = {}
            for row in left:
                versions = self.serde.loads_typed((row[4], row[5]))["channel_versions"]
                used.setdefault(row[1], set()).update(
                    (name, json.dumps(each)) for name, each in versions.items()
                )
            self._channels(thread, "").keep(database, used)

    # -- reading

    def _select(self, where: str, values: Sequence[str], limit: int = -1) -> Rows:
        statement = f"SELECT {_COLUMNS} FROM langgraph_checkpoints WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608
        return cast(Rows, self._tables.rows(statement, (self._tenant, *values, limit)))

    def _listed(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Rows:
        named = _named(config) if config is not None else {}
        wanted = {
            "thread": named.get("thread_id"),
            "ns": named.get("checkpoint_ns"),
            "id": named.get("checkpoint_id"),
        }
        clauses = {f"AND {key} = ?": str(value) for key, value in wanted.items() if value is not None}
        earlier = _named(before).get("checkpoint_id") if before is not None else None
        if earlier:
            clauses["AND id < ?"] = str(earlier)
        if limit is not None and limit <= 0:
            return []
        # Only our own serializer can read the metadata, so what it filters is limited here.
        most = -1 if filter or limit is None else limit
        rows = self._select(f"tenant = ? {' '.join(clauses)}", tuple(clauses.values()), most)
        if filter:
            rows = [row for row in rows if self._has(row, filter)][
                : limit if limit is not None else len(rows)
            ]
        return rows

    def _has(self, row: Row, filter: Mapping[str, Any]) -> bool:
        metadata = self.serde.loads_typed((row[6], row[7]))
        return all(metadata.get(key) == value for key, value in filter.items())

    def _values(self, row: Row) -> tuple[dict[str, Any], dict[str, Any]]:
        checkpoint = self.serde.loads_typed((row[4], row[5]))
        return checkpoint, self._channels(row[0], row[1]).read(checkpoint["channel_versions"])

    def _tuple(self, row: Row) -> CheckpointTuple:
        thread, ns, name, parent, *_body, kind, metadata = row
        checkpoint, values = self._values(row)
        writes = self._tables.rows(_WRITES, (self._tenant, thread, ns, name))
        return CheckpointTuple(
            config=_config(thread, ns, name),
            checkpoint=cast(Checkpoint, {**checkpoint, "channel_values": values}),
            metadata=self.serde.loads_typed((kind, metadata)),
            parent_config=_config(thread, ns, parent) if parent else None,
            pending_writes=[
                (str(task), str(channel), self.serde.loads_typed(cast(Typed, tuple(typed))))
                for task, channel, *typed in writes
            ],
        )

    def _channels(self, thread: str, ns: str) -> Channels:
        return Channels(self._tables, self.serde, self._tenant, thread, ns)

    # -- the same, awaited

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See put."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See put_writes."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See get_tuple."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See list."""
        for row in await asyncio.to_thread(self._listed, config, filter, before, limit):
            found = await self.aget_tuple(_config(*row[:3]))
            if found is not None:
                yield found

    async def adelete_thread(self, thread_id: str) -> None:
        """See delete_thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See delete_for_runs."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See copy_thread."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See prune."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 - theirs
        """A version behind the current one, and no other fork's: two forks may both write a channel."""
        number = int(str(current).split(".", maxsplit=1)[0]) if current is not None else 0
        return f"{number + 1:032}.{secrets.token_hex(8)}"

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        self._tables.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)


def _named(config: RunnableConfig) -> Mapping[str, Any]:
    return config.get("configurable") or {}


def _thread(named: Mapping[str, Any]) -> str:
    if named.get("thread_id") is None:
        raise FormatError(
            "a checkpoint needs a thread: pass config={'configurable': {'thread_id': 'a name'}}"
        )
    return str(named["thread_id"])


def _config(thread: str, ns: str, name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": name}}
