"""A real PgBouncer in transaction mode in front of a test's PostgreSQL; skipped loudly where it is not installed."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

_SECONDS = 120.0


@contextlib.contextmanager
def pooler(url: str, *, size: int = 2) -> Iterator[str]:
    """The address of a pooler with ``size`` connections to the server at ``url``, without pagein's parameter."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("NOT TESTED: there is no pgbouncer here (Debian: apt-get install pgbouncer)")
    server = conninfo_to_dict(url)
    folder = Path(tempfile.mkdtemp(prefix="pagein-pgb-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "ini").write_text(f"""[databases]
* = host={server["host"]} port={server.get("port", 5432)} dbname={server["dbname"]} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 200
logfile = {folder}/log
pidfile = {folder}/pid
""")
    command = [program, str(folder / "ini")]
    if os.getuid() == 0:  # it does not run as root
        owner = pwd.getpwuid(Path(server["host"]).stat().st_uid).pw_name
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, owner)
        command[1:1] = ["-u", owner]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        _wait(address, folder)
        yield address
    finally:
        process.terminate()
        process.wait(_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(address: str, folder: Path) -> None:
    until = time.monotonic() + _SECONDS
    while True:
        try:
            psycopg.connect(address, prepare_threshold=None).close()
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise RuntimeError((folder / "log").read_text() if (folder / "log").exists() else "no log") from None
            time.sleep(0.05)
        else:
            return
