"""The settings of a server."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args
from urllib.parse import parse_qs, urlsplit

from pagein.errors import ConfigurationError
from pagein.server.wire import find_endpoint

Mode = Literal["view", "observe", "off"]

_VERSION = r"/v\d+[a-z]*\d*"

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server: bytes of a body, threads for views, requests waiting for one, open memories, seconds."""

    body_bytes: int = 64 * MEGABYTE
    threads: int = 4
    waiting: int = 256
    memories: int = 64
    memory_bytes: int = 256 * MEGABYTE
    connect_seconds: float = 15.0
    event_seconds: float = 600.0
    """The longest silence of an upstream, within a stream too."""
    drain_seconds: int = 30


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of a server: its store, its upstreams by name, the first of which is the default, and what it does.

    ``keys`` maps the SHA-256 of a proxy key, in hexadecimal, to a tenant; they are required where the server listens to
    other machines. ``options`` are those of every memory. Raises ConfigurationError.
    """

    store: str
    upstreams: Mapping[str, str]
    host: str = "127.0.0.1"
    port: int = 8790
    window: int | None = None
    mode: Mode = "view"
    strict: bool = False
    tenant: str = ""
    keys: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    origins: tuple[str, ...] = ()
    """The origins of the web pages of other sites that may ask for models."""
    tenant_secret: str = field(default="", repr=False)
    """Where it is set, each credential of the provider is a tenant of its own, named by a hash with this key."""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ConfigurationError(f"mode is one of {', '.join(get_args(Mode))}, not {self.mode!r}")
        if not self.upstreams:
            raise ConfigurationError("there is no upstream: give one, such as https://api.anthropic.com")
        for name, url in self.upstreams.items():
            if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", url):
                raise ConfigurationError(f"the upstream {name!r} is an address that begins with http:// or https://, not {url!r:.80}")  # fmt: skip
            if not re.fullmatch(r"[a-z0-9_-]{1,40}", name) or name == "v1":
                raise ConfigurationError(f"an upstream's name is of small letters, digits, - and _, not {name!r:.60}")
        if self.window is not None and self.window < 1:
            raise ConfigurationError(f"a window is 1 token or more, not {self.window}")
        if self.host not in LOOPBACK and not self.keys:
            raise ConfigurationError(
                f"listening on {self.host} lets other machines in: set keys for them in [server.clients], or use 127.0.0.1"
            )

    def upstream_of(self, path: str) -> tuple[str, str, str]:
        """The name and the address of the upstream of a path, and the path there: ``/name/v1/...`` chooses one by name."""
        first, _, rest = path.lstrip("/").partition("/")
        name, target = (first, f"/{rest}") if first in self.upstreams else (next(iter(self.upstreams)), path)
        plain = re.sub("/+", "/", f"/{target}")  # bases that end in a slash are joined with paths that begin with one
        target = plain if find_endpoint(plain) else f"/{target.lstrip('/')}"
        base = self.upstreams[name].rstrip("/")
        # Base addresses are given with and without the version.
        target = re.sub(f"^{_VERSION}(?=/)", "", target) if re.search(f"[^/]{_VERSION}$", base) else target
        return name, base, target


def find_credential(headers: Mapping[str, str], query: bytes) -> str:
    """The credential of the provider in a request; "" for none. Google's keys may stand in the address."""
    named = (headers.get(name) for name in ("authorization", "x-api-key", "x-goog-api-key", "api-key"))
    return next(filter(None, named), "") or parse_qs(query.decode("latin-1")).get("key", [""])[0]


def tenant_of_credential(secret: str, credential: str) -> str:
    """The tenant of a credential of the provider: a keyed hash, so that the store does not tell which one it was."""
    key = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
    return f"credential-{hashlib.blake2b(credential.encode('utf-8', 'surrogatepass'), key=key, digest_size=12).hexdigest()}"


def hash_key(key: str) -> str:
    """The SHA-256 of a proxy key, as ``[server.clients]`` has it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def foreign_part(headers: Mapping[str, str], host: str, *, has_key: bool) -> Literal["host", "origin", ""]:
    """Which header tells of a page of another site that has a browser ask here; "" for a request that is served.

    ``host`` is the server's own. A page elsewhere whose name leads here has another host: with a key, it may have one.
    """
    own, named, origin = {*LOOPBACK, host}, host_name(headers.get("host", "")), headers.get("origin")
    if not has_key and named not in own:
        return "host"
    is_own_page = origin is None or host_name(origin.partition("//")[2]) in {*own, named}
    return "" if is_own_page else "origin"


def host_name(netloc: str) -> str:
    """The name of a host, without its port, in lower case; "" for what is none."""
    try:
        return (urlsplit(f"//{netloc}").hostname or "").lower()
    except ValueError:
        return ""
