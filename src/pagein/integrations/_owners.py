"""Whose memory a call is for: owners that are functions of the framework's call, so that one process serves many users.

A conversation of another owner is another session, under the same name, too: nobody is shown what another said.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from pagein.errors import ConfigurationError, PageinError
from pagein.formats.parsing import is_utf8
from pagein.memory.options import Options, check_options

OwnerOf = Callable[[Any], str]
"""Names the owner of a call, from what the framework hands over: a config, or a run context."""

OWNERS = ("user", "project", "task")

OWNER_MARK = "pagein:owner"
"""Key in the fields of an answer that no model is sent: the mark of the user whom it was given to."""

_LIKE_OWNED = re.compile(rf"(?:{'|'.join(OWNERS)})[=%]")


@dataclass(frozen=True, slots=True)
class OwnedConversation:
    """A conversation by its name, and whose it is: ``owners`` are those that a function named."""

    name: str
    tenant: str = ""
    owners: tuple[tuple[str, str], ...] = ()

    @property
    def session(self) -> str:
        """The conversation's name among those of all owners; a name that looks like an owner's is escaped."""
        name = self.name.replace("%", "%25").replace("=", "%3D") if _LIKE_OWNED.match(self.name) else self.name
        return "".join(f"{kind}={quote(owner, safe='')}/" for kind, owner in self.owners) + name


class OwnerChoice:
    """The owners of a framework's conversations: ``tenant``, and ``user``, ``project`` and ``task`` of the options.

    Each is a name, or a function of the call. ``options`` are those to open a memory with, beside ``owner_options``.
    """

    def __init__(self, tenant: str | OwnerOf, options: Options) -> None:
        given: Mapping[str, Any] = {"tenant": tenant, **{kind: options.get(kind) for kind in OWNERS}}
        self._functions: dict[str, OwnerOf] = {kind: of for kind, of in given.items() if callable(of)}
        self._tenant = "" if callable(tenant) else tenant
        plain = {name: value for name, value in options.items() if name not in self._functions}
        self.options = cast(Options, plain)
        check_options(self.options)

    @property
    def has_functions(self) -> bool:
        """True if an owner depends on the call."""
        return bool(self._functions)

    def conversation(self, name: str, call: Any) -> OwnedConversation:
        """The conversation of that name in a call. Raises ConfigurationError where a function names nobody."""
        return self._owned(name, {kind: _ask(kind, of, call) for kind, of in self._functions.items()})

    def named_conversation(self, name: str, owners: Mapping[str, str]) -> OwnedConversation:
        """The conversation of that name and these owners, outside of the framework's calls. Raises ConfigurationError."""
        if set(owners) != set(self._functions):
            wanted = ", ".join(f"{kind}=" for kind in self._functions) or "none"
            raise ConfigurationError(
                f"say whose conversation {name!r} is meant: pass {wanted}, since functions of the call name them"
            )
        return self._owned(name, {kind: _check(kind, owner) for kind, owner in owners.items()})

    def owner_options(self, conversation: OwnedConversation) -> Options:
        """The options of a conversation's memory."""
        return cast(Options, {**self.options, **dict(conversation.owners)})

    def mark(self, conversation: OwnedConversation) -> str:
        """The mark of the conversation's user and tenant; "" where neither depends on the call."""
        names = {"tenant": conversation.tenant, **dict(conversation.owners)}
        marked = [kind for kind in ("tenant", "user") if kind in self._functions]
        return hashlib.sha256("\0".join(names[kind] for kind in marked).encode()).hexdigest()[:16] if marked else ""

    def check_marks(self, conversation: OwnedConversation, fields: Iterable[Mapping[str, Any] | None]) -> None:
        """Raise ConfigurationError if the model gave one of the answers with these fields to another user or tenant."""
        mark = self.mark(conversation)
        if mark and any(row and row.get(OWNER_MARK, mark) != mark for row in fields):
            raise ConfigurationError(
                f"the messages of {conversation.name!r} hold answers to another user or tenant than this call's. Nothing was "
                "shown: keep the messages of each under a name of their own, or name the group of those who share them"
            )

    def _owned(self, name: str, owners: Mapping[str, str]) -> OwnedConversation:
        in_order = tuple((kind, owners[kind]) for kind in OWNERS if kind in owners)
        return OwnedConversation(name, owners.get("tenant", self._tenant), in_order)


def _ask(kind: str, of: OwnerOf, call: Any) -> str:
    try:
        owner = of(call)
    except PageinError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{kind}= is a function of the call, and failed: {type(error).__name__}: {error}. Nothing was shown."
        ) from error
    return _check(kind, owner)


def _check(kind: str, owner: object) -> str:
    if not isinstance(owner, str) or not owner.strip() or not is_utf8(owner):
        value = f"{owner!r:.80}" if isinstance(owner, str) else f"a value of type {type(owner).__name__}"
        raise ConfigurationError(f"{kind}= names nobody for this call: it gave {value}, not a name. Nothing was shown.")
    return owner
