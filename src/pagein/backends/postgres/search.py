"""The archive in a PostgreSQL schema, beside the log: words by full-text search, meaning by pgvector."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from pagein.errors import ConfigurationError, LogUnreadable
from pagein.log.rows import checked_name
from pagein.search.base import Embedder
from pagein.search.index import DerivedArchive
from pagein.search.index_store import VectorStore

try:
    import psycopg

    from pagein.backends.postgres import migrations as log_schema
    from pagein.backends.postgres.connection import Connection, Pool
    from pagein.backends.postgres.retry import Asking, source_of
    from pagein.backends.postgres.search_schema import lock, make_anew, prepare, vectors_in
    from pagein.backends.postgres.search_tables import PostgresReading, PostgresWriting, Statements
except ImportError as error:
    raise ConfigurationError("archives in PostgreSQL need psycopg: pip install 'pagein[postgres]'") from error

T = TypeVar("T")

# Compiling a query takes longer than any of ours runs.
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL jit = off"

_DAMAGE = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedObject,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UniqueViolation,
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
)
_NO_VECTORS = (
    "the server has no pgvector 0.7 or later that this user may use: recall goes on by words. Have an administrator "
    "install it, and run CREATE EXTENSION vector in the database"
)


class PostgresArchive(DerivedArchive):
    """An Archive in a PostgreSQL schema, by words, and by meaning where an ``embedder`` is given and pgvector is there.

    ``where``, ``schema`` and ``timeout`` are a ``PostgresLog``'s. The tables lie beside the log's. They are derived: an
    index of an earlier release, or one in pieces, is dropped, and built again from the logs that ``catch_up`` was
    given. Many processes may share one; a connection that is lost is opened again. Where pgvector is missing,
    ``problems`` says so.

    Raises LogUnreachable, LogTooNew, LogBusy, LogUnwritable, ConfigurationError.
    """

    def __init__(
        self,
        where: str | Pool,
        *,
        session: str = "default",
        tenant: str = "",
        embedder: Embedder | None = None,
        own_tools: Collection[str] = (),
        timeout: float = 5.0,
        schema: str = "pagein",
    ) -> None:
        session, self.tenant = checked_name("session", session), checked_name("tenant", tenant)
        schema = log_schema.checked_schema(schema)
        server = Asking(source_of(where, timeout=timeout, synchronous="NORMAL"), timeout=timeout)
        store = PostgresStore(server, schema=schema, tenant=tenant, embedder=embedder)
        super().__init__(store, session=session, own_tools=own_tools)


class PostgresStore:
    """A Store in a PostgreSQL schema."""

    def __init__(self, server: Asking, *, schema: str, tenant: str, embedder: Embedder | None) -> None:
        self._server, self._schema, self._tenant = server, schema, tenant
        self._statements = Statements(schema)
        self.path = server.path
        self.problems: tuple[str, ...] = ()
        try:
            self.vectors: VectorStore | None = None if embedder is None else self._vectors(embedder)
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        """The tables, where they are not there, and for vectors where there is an embedder."""

        def prepared(using: Connection, _: bool) -> str | None:
            log_schema.prepare(using, self._schema, self.path, readonly=False)
            prepare(using, self._schema, self.path)
            return vectors_in(using, self._schema) if self.vectors is not None else None

        vector = self._server.ask(prepared, writing=True)
        self._statements = Statements(self._schema, vector)
        if self.vectors is not None and vector is None:
            self.vectors, self.problems = None, (_NO_VECTORS,)

    @staticmethod
    def _vectors(embedder: Embedder) -> VectorStore:
        try:
            from pagein.backends.postgres.vectors import PostgresVectors  # noqa: PLC0415 - brings NumPy
        except ImportError:
            raise ConfigurationError("vectors need NumPy: pip install 'pagein[vectors]'") from None
        return PostgresVectors(embedder)

    def read(self, work: Callable[[PostgresReading], T]) -> T:
        """What the work reads, within one state of the schema, whatever others write meanwhile."""

        def reading(using: Connection) -> T:
            using.execute(_BEGIN)
            try:
                return work(PostgresReading(using, self._statements, self._tenant))
            finally:
                if not using.closed:
                    using.execute("ROLLBACK")

        return self._server.ask(lambda using, _: self._sound(lambda: reading(using)))

    def write(self, work: Callable[[PostgresWriting], T]) -> T:
        """What the work writes, all or nothing; what was written before the answer was lost is found written."""

        def writing(using: Connection) -> T:
            with using.transaction():
                return work(PostgresWriting(using, self._statements, self._tenant))

        return self._server.ask(lambda using, _: self._sound(lambda: writing(using)), writing=True)

    def _sound(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except _DAMAGE as error:
            told = str(error).splitlines()[0]
        raise IndexDamaged(f"{self.path}: the index is damaged: {told}")

    def is_damage(self, error: Exception) -> bool:
        """Whether the tables are not what they should be."""
        return isinstance(error, IndexDamaged)

    def empty(self) -> None:
        """Take out everything of this tenant."""
        self.write(lambda writing: writing.empty())

    def make_anew(self) -> None:
        """Drop the index, of every tenant, and make it empty."""

        def made(using: Connection, _: bool) -> None:
            with using.transaction():
                lock(using, self._schema)
                make_anew(using, self._schema)

        self._server.ask(made, writing=True)
        self._prepare()

    def close(self) -> None:
        """Let go of the connection; a second call does nothing. A pool stays open."""
        self._server.close()


class IndexDamaged(LogUnreadable):
    """The tables of an index are not what they should be. They are derived, so they are made anew."""
