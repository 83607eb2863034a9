"""Connections to a SQLite file: opened, recognised, migrated to this release's schema; errors as LogErrors.

``has_residue`` searches the file for erased words: in free pages, in the WAL, in indexes.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from pagein.backends.sqlite.migrations import APPLICATION_ID, MIGRATIONS, READABLE
from pagein.errors import (
    ConfigurationError,
    LogBusy,
    LogClosed,
    LogError,
    LogTooNew,
    LogUnreadable,
    LogUnwritable,
    PageinError,
)

PAGE_BYTES = 8192
"""Bytes of a page in a new file: of SQLite's 4,096 a tenth stays empty behind rows of a thousand; an append is as fast."""

MEMORY = ":memory:"

_NEEDED_SQLITE = (3, 37, 0)  # STRICT tables
_RETRY_SECONDS = 0.02
_WAL_BYTES = 1000 * 4096  # bytes after which the WAL is brought into the file: as many as SQLite's own default


def open_database(path: str, *, timeout: float, synchronous: str, readonly: bool) -> sqlite3.Connection:
    """Open pagein's database at ``path``, created where there is none and ``readonly`` is False.

    ``timeout`` in seconds. Raises LogUnreadable for a folder or a foreign file, which stays as it is; LogTooNew, LogBusy,
    LogUnwritable.
    """
    if path != MEMORY and os.path.isdir(path):  # noqa: PTH112 - it is False, too, for a name that no file can have
        raise LogUnreadable(f"{path} is a folder; name a file in it, such as {Path(path, 'pagein.db')}")
    if sqlite3.sqlite_version_info < _NEEDED_SQLITE:
        raise ConfigurationError(f"pagein needs SQLite 3.37 or later; this Python has {sqlite3.sqlite_version}")
    with translate_errors(path, writing=not readonly):
        _close_inherited()
        if path == MEMORY:
            return _prepare(_connect(MEMORY, timeout), path, timeout, synchronous)
        where = Path(path).absolute()
        if _is_empty(where):
            if readonly:
                found = "the file is empty, nothing was recorded in it" if where.exists() else "there is no such file"
                raise LogUnreadable(f"{path}: {found}; check the path")
        else:
            _recognise(where, timeout)
        if readonly:
            return _open_readonly(where, timeout)
        _refuse_unwritable(where)
        _create_private(where)
        return _prepare(_connect(f"{where.as_uri()}?mode=rwc", timeout), path, timeout, synchronous)


class SharedDatabase:
    """A base with a connection that its threads use in turn, and a forked process not at all. Errors are LogErrors."""

    what = "log"
    """The word for it in errors."""
    reads_in_transactions = False

    def _connect(self, path: str, *, timeout: float, synchronous: str, readonly: bool = False) -> None:
        self.path, self._process, self._lock = path, os.getpid(), threading.RLock()
        self._database: sqlite3.Connection | None = open_database(
            path, timeout=timeout, synchronous=synchronous, readonly=readonly
        )
        _opened.add(weakref.ref(self, _opened.discard))

    @property
    def is_open(self) -> bool:
        """False after ``close``."""
        return self._database is not None

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if os.getpid() != self._process:
            return  # the connection is the parent's
        with self._lock:
            database, self._database = self._database, None
            if database is not None:
                self._release(database)

    def _release(self, database: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            database.close()

    @contextlib.contextmanager
    def _using(self, *, writing: bool) -> Iterator[sqlite3.Connection]:
        """Lend the connection to this thread alone."""
        if os.getpid() != self._process:
            # SQLite's locks do not survive a fork; writing through the copy would damage the file.
            raise LogClosed(f"{self.path}: opened before this process was forked; open the {self.what} again in here")
        with self._lock:
            if self._database is None:
                raise LogClosed(f"{self.path}: this {self.what} was closed; open it again")
            with translate_errors(self.path, writing=writing):
                # Nobody is in a transaction here, but one that Ctrl-C cut off may have been left.
                if self._database.in_transaction and not self.reads_in_transactions:
                    self._database.execute("ROLLBACK")
                yield self._database

    @contextlib.contextmanager
    def _within(self, begin: str, *, writing: bool) -> Iterator[sqlite3.Connection]:
        """A transaction, rolled back unless it is committed."""
        with self._using(writing=writing) as database:
            database.execute(begin)
            try:
                yield database
            finally:
                if database.in_transaction:
                    database.execute("ROLLBACK")


# A fork. SQLite counts in the memory of a process which locks it has on a file, and a child has a copy of the count without the
# locks: what it opens there is taken for locked, and whoever closes the file elsewhere deletes the WAL into which it writes. So a
# child closes all of its parent's connections before it opens one, and no thread may be in the middle of using one when it is
# made. It does not close them at once: where another thread of the parent was in SQLite, for whomever, SQLite's own locks stay
# locked in the child, and a child that needs no SQLite would wait for them without end.

_opened: set[weakref.ref[SharedDatabase]] = set()
"""Used by single calls that nothing divides: a lock here could stay locked where Ctrl-C came, for every thread."""
_forking: list[SharedDatabase] = []
_inherited: list[sqlite3.Connection] = []
_fork_guard = threading.RLock()

FORK_WAIT_SECONDS = 1.0
"""Seconds that a fork waits, at most, for a thread that uses a connection: the child then has it as it is."""


def _before_fork() -> None:
    _fork_guard.acquire()
    databases = [reference() for reference in list(_opened)]
    _forking[:] = [each for each in databases if each is not None and each._lock.acquire(timeout=FORK_WAIT_SECONDS)]  # noqa: SLF001


def _after_fork(*, in_child: bool) -> None:
    for each in _forking:
        database = each._database  # noqa: SLF001
        if in_child and database is not None and not database.in_transaction:
            _inherited.append(database)
        each._lock.release()  # noqa: SLF001
    _forking.clear()
    _fork_guard.release()


def _close_inherited() -> None:
    if _inherited:
        with _fork_guard:
            while _inherited:
                with contextlib.suppress(sqlite3.Error):
                    _inherited.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=functools.partial(_after_fork, in_child=False),
        after_in_child=functools.partial(_after_fork, in_child=True),
    )


class FileMark:
    """The mark by which a file that was opened at a path is known again, wherever the program's working folder is.

    Where the file is moved, deleted or replaced, SQLite writes on into the old one, where nobody finds what was acknowledged.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path).absolute()
        self._size = 0
        self._mark = self._read_mark()

    @property
    def problem(self) -> str | None:
        """The fault where the file is not there any more, or is another: one that grows all the time is not smaller for no reason."""
        size = self._size
        if self._read_mark() != self._mark:
            return f"{self._path}: the file was moved, deleted or replaced after it was opened"
        if self._size < size and not self._is_sound():
            self._size = size
            return f"{self._path}: another file was copied over this one while it was open. Close every program that has it open, and copy it again"
        return None

    def _is_sound(self) -> bool:
        """True where a new connection reads a sound file: a store that erased was written anew."""
        try:
            with contextlib.closing(_connect(f"{self._path.as_uri()}?mode=ro", _RETRY_SECONDS)) as database:
                return bool(database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        except sqlite3.Error as error:
            return is_busy(error)

    def check(self) -> None:
        """Raise LogUnwritable where the file is not there any more."""
        if problem := self.problem:
            raise LogUnwritable(f"{problem}. Nothing was written; open it again.")

    def _read_mark(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:  # one in memory, or in a folder that may not be read any more
            return None
        self._size = status.st_size
        return status.st_dev, status.st_ino


@contextlib.contextmanager
def translate_errors(path: str, *, writing: bool) -> Iterator[None]:
    """Raise the driver's errors as LogErrors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise _to_log_error(path, error, writing=writing) from error
    except PageinError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError, SystemError) as error:
        # The driver decodes a damaged file's names and messages as UTF-8, and says so in Python's own errors.
        raise LogUnreadable(
            f"{path}: the file is damaged, or is no log of pagein ({type(error).__name__}: {error})"
        ) from error


def _to_log_error(path: str, error: sqlite3.Error, *, writing: bool) -> LogError:
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return LogBusy(f"{path}: another process holds the database ({error}). Nothing was written; try again.")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return LogUnreadable(f"{path}: the file is no store of pagein, or it is damaged ({error})")
        case sqlite3.SQLITE_FULL:
            return LogUnwritable(f"{path}: {error}. Nothing was written; free some space and try again.")
        case sqlite3.SQLITE_CANTOPEN if _has_no_descriptor():
            return LogBusy(
                f"{path}: this process has as many files open as it may. Nothing was written; close memories that are done: "
                "each open one has two files, one that recalls four, and one with user= up to ten."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM if writing:
            return LogUnwritable(
                f"{path}: {error}. Nothing was written; see that the file, its folder and the files beside it that "
                "end in -wal and -shm may be written, or open the log with readonly=True."
            )
        case _ if writing:
            return LogUnwritable(f"{path}: {error}. Nothing was written.")
        case _:
            return LogUnreadable(f"{path}: {error}; pagein verify says what is damaged")


def _has_no_descriptor() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def is_busy(error: sqlite3.Error) -> bool:
    """True where another connection holds the lock."""
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: sqlite3.Error) -> int:
    # The low byte is the primary code. Errors that Python itself raises have none.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


class _Connection(sqlite3.Connection):
    """A connection that is closed when nobody has it any more: Python 3.13 warns of one that is not."""

    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # of a file that could not be opened
            self.close()


def _connect(uri: str, timeout: float) -> sqlite3.Connection:
    # Autocommit mode: the transactions are ours. Threads share the connection behind the log's lock.
    return sqlite3.connect(
        uri, timeout=timeout, isolation_level=None, check_same_thread=False, factory=_Connection, uri=uri != MEMORY
    )


def _is_empty(where: Path) -> bool:
    try:
        return where.stat().st_size == 0
    except FileNotFoundError:
        return True
    except (OSError, ValueError) as error:
        raise LogUnreadable(f"{where}: {error}") from error


def _refuse_unwritable(where: Path) -> None:
    # SQLite would open the file for reading, and fail in the middle of a run. It would also leave files beside it that
    # may not be written either, and are in the way when the file may be again.
    if where.exists() and not os.access(where, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise LogUnwritable(
            f"{where}: the file may not be written: change its permissions, or read it with readonly=True"
        )
    if not where.parent.is_dir():
        raise LogUnwritable(f"{where}: there is no folder {where.parent}; create it first")


def _create_private(where: Path) -> None:
    """Create a file that only its owner reads; SQLite gives the files beside it the same rights."""
    with contextlib.suppress(OSError):  # it is there, or SQLite says why it cannot be
        os.close(os.open(where, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _recognise(where: Path, timeout: float) -> None:
    """Refuse a foreign file without leaving a trace in it or beside it.

    The file is not simply read: closing a plain file handle would drop the locks that another connection of
    this process holds on it.
    """
    # An immutable database is read without locks and without the files beside it. That can mislead while another
    # process writes the first page, so a failure is only believed when the locks are held, too.
    for how in ("mode=ro&immutable=1", "mode=ro"):
        try:
            with contextlib.closing(_connect(f"{where.as_uri()}?{how}", timeout)) as database:
                application_id = _pragma(database, "application_id")
        except sqlite3.Error as error:
            failure = error
        else:
            if application_id == APPLICATION_ID:
                return
            raise LogUnreadable(f"{where}: a database, but not a log of pagein. Nothing was changed.")
    if _code(failure) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        raise failure


def _open_readonly(where: Path, timeout: float) -> sqlite3.Connection:
    database = _connect(f"{where.as_uri()}?mode=ro", timeout)
    try:
        _check_version(where, database)
    except sqlite3.OperationalError as error:
        database.close()
        # In a folder that may not be written SQLite cannot make the files that readers and writers share. If there
        # are none, nobody is writing, and what the file holds is all there is.
        alone = not where.with_name(where.name + "-wal").exists()
        if not alone or _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        database = _connect(f"{where.as_uri()}?mode=ro&immutable=1", timeout)
        _check_version(where, database)
    except BaseException:
        database.close()
        raise
    return database


def _check_version(where: Path, database: sqlite3.Connection) -> None:
    version = _pragma(database, "user_version")
    _refuse_newer(str(where), version)
    if version < READABLE:
        raise LogUnwritable(f"{where}: written by an earlier release; open it once without readonly=True")


def _refuse_newer(path: str, version: int) -> None:
    if version > len(MIGRATIONS):
        raise LogTooNew(
            f"{path}: the file has version {version}, this release of pagein knows {len(MIGRATIONS)}; upgrade pagein"
        )


def _prepare(database: sqlite3.Connection, path: str, timeout: float, synchronous: str) -> sqlite3.Connection:
    deadline = time.monotonic() + timeout
    try:
        database.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # of a file that is there already it changes nothing
        while True:
            try:
                _migrate(database, path)
                database.execute(f"PRAGMA synchronous = {synchronous}")
                # Set after the first migration: until then the rollback journal keeps the header, and with it the
                # application id, in the file itself.
                database.execute("PRAGMA journal_mode = WAL")
                database.execute(f"PRAGMA wal_autocheckpoint = {_WAL_BYTES // _pragma(database, 'page_size')}")
            except sqlite3.OperationalError as error:
                # SQLite does not wait everywhere: processes that open the same new file can be refused at once.
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return database
    except BaseException:
        database.close()
        raise


def _migrate(database: sqlite3.Connection, path: str) -> None:
    version = _pragma(database, "user_version")
    if version == len(MIGRATIONS):
        return
    _refuse_newer(path, version)
    database.execute("BEGIN EXCLUSIVE")
    try:
        version = _pragma(database, "user_version")  # another process may have been first
        if version == 0 and database.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,):
            raise LogUnreadable(f"{path}: a database, but not a log of pagein. Nothing was changed.")
        for statement in chain.from_iterable(MIGRATIONS[version:]):
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        database.execute("COMMIT")
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def set_wait(database: sqlite3.Connection, seconds: float) -> None:
    """Set how long SQLite waits for another connection before a statement is refused as busy."""
    database.execute(f"PRAGMA busy_timeout = {min(round(seconds * 1000), 2**31 - 1)}")


def _pragma(database: sqlite3.Connection, name: str) -> int:
    value: int = database.execute(f"PRAGMA {name}").fetchone()[0]
    return value


_CHUNK_BYTES = 1 << 20
_LIVE = "SELECT CAST(body AS BLOB) FROM entries UNION ALL SELECT CAST(data AS BLOB) FROM blobs"


def has_residue(database: sqlite3.Connection, path: str, words: Collection[str]) -> bool:
    """True where a file of the database has one of these words, and no entry has it.

    An entry of another session may say the same word in its own right; then the word proves nothing.
    """
    wanted = {word.encode("utf-8", "surrogatepass").lower() for word in words}
    there = {word for name in (path, f"{path}-wal", f"{path}-journal") for word in _words_in_file(name, wanted)}
    if there:
        for (data,) in database.execute(_LIVE):
            there -= {word for word in there if word in bytes(data).lower()}
    return bool(there)


_readers: dict[int, tuple[int, int]] = {}
"""Descriptors of database files that nobody reads now, each with the device and number of its file. Only the oldest of many is closed: with it POSIX drops the locks that the
connections of this process have on the file, and the next program to close it would delete the WAL into which they write on."""

_readers_guard = threading.Lock()

MAX_READERS = 128
"""Such descriptors: a program that erases from thousands of files must not run out of them."""


def _words_in_file(path: str, words: Collection[bytes]) -> Iterator[bytes]:
    overlap = max(map(len, words), default=0)
    end = b""
    for chunk in _read_chunks(path):
        text = end + chunk.lower()
        yield from (word for word in words if word in text)
        end = text[-overlap:] if overlap else b""


def _read_chunks(path: str) -> Iterator[bytes]:
    """The bytes of a file, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        if path.endswith(("-wal", "-journal")) or not hasattr(os, "pread"):
            with Path(path).open("rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk
            return
        status, start = Path(path).stat(), 0
        key = (status.st_dev, status.st_ino)
        with _readers_guard:
            reader = next((reader for reader, file in _readers.items() if file == key), None)
            if reader is not None:
                del _readers[reader]  # no other thread closes what is read
        reader = os.open(path, os.O_RDONLY) if reader is None else reader
        try:
            while chunk := os.pread(reader, _CHUNK_BYTES, start):
                start += len(chunk)
                yield chunk
        finally:
            with _readers_guard:
                _readers[reader] = key
                while len(_readers) > MAX_READERS:
                    oldest = next(iter(_readers))
                    del _readers[oldest]
                    os.close(oldest)
