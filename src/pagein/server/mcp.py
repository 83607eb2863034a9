"""The MCP server: the memory's tools and what it holds, over stdio and streamable HTTP.

A call names its run with ``run``; without it the server's own is meant, else the run that was recorded in last. Every call
opens the memory and closes it, so several servers and a proxy may share a store.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

import anyio.to_thread
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from pagein._common.retry import retry_on_conflict
from pagein._common.version import __version__
from pagein.backends.open import open_store
from pagein.errors import PageinError, UnknownHandle
from pagein.facts.owners import is_reserved
from pagein.memory.agent_memory import AgentMemory
from pagein.memory.tools import TOOLS

TOOL_NAMES = ("recall", "expand", "pin", "note", "remember", "forget")
CONSENT = "consent"
VIEW_BUDGET_TOKENS = 32_000
MAX_RUNS = 50
CONFLICT_ATTEMPTS = 16

INSTRUCTIONS = (
    "What happened in this run, whole: recall searches it, expand gives an original back by the handle in brackets. "
    "Text marked as left out can be read so."
)

_RUN = {"type": "string", "description": "Name of the run; by default the current one."}
_READ_ONLY = ("recall", "expand")


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The store of an MCP server, the tenant, the run that calls without one mean ("" for the newest), memory options."""

    store: str
    tenant: str = ""
    run: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def tool_definitions() -> list[dict[str, Any]]:
    """The tools, each with its name, description and the JSON schema of its arguments, in their order."""
    by_name = {tool["name"]: tool for tool in TOOLS}
    return [
        {
            "name": name,
            "description": by_name[name]["description"],
            "inputSchema": {
                **by_name[name]["parameters"],
                "properties": {
                    **by_name[name]["parameters"]["properties"],
                    "run": _RUN if name == "recall" else {"type": "string"},
                },
            },
        }
        for name in TOOL_NAMES
    ]


def build_server(settings: McpSettings) -> Server[Any]:
    """The server. It has no state of its own."""
    desk = _Desk(settings)

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool["name"],
                description=tool["description"],
                input_schema=tool["inputSchema"],
                annotations=types.ToolAnnotations(read_only_hint=tool["name"] in _READ_ONLY),
            )
            for tool in tool_definitions()
        ]
        return types.ListToolsResult(tools=tools, cache_scope="private", ttl_ms=3_600_000)

    async def list_templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(_TEMPLATES), cache_scope="private")

    async def list_resources(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        names = await anyio.to_thread.run_sync(desk.newest_runs)
        resources = [
            types.Resource(
                uri=f"pagein://run/{quote(name, safe='')}/view", name=f"view of {name}", mime_type="application/json"
            )
            for name in names[:MAX_RUNS]
        ]
        return types.ListResourcesResult(resources=resources, cache_scope="private")

    async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            kind, text = await anyio.to_thread.run_sync(lambda: desk.read(uri))
        except (PageinError, _Unknown) as error:
            raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from None
        contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[contents], cache_scope="private")

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        arguments = dict(params.arguments or {})
        question = await anyio.to_thread.run_sync(lambda: desk.question(params.name, arguments))
        if question:
            consent = await _ask(context, params, question)
            if consent is not None:
                return consent
        text, failed = await anyio.to_thread.run_sync(lambda: desk.call(params.name, arguments))
        return _text_result(text, failed=failed)

    return Server(
        "pagein", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool,
        on_list_resources=list_resources, on_list_resource_templates=list_templates, on_read_resource=read_resource,
    )  # fmt: skip


Context = ServerRequestContext[Any]

_TEMPLATES = tuple(
    types.ResourceTemplate(uri_template=uri, name=name, description=description)
    for uri, name, description in (
        ("pagein://run/{run}/view", "view", "What a model would see of a run now, as JSON."),
        ("pagein://run/{run}/step/{handle}", "step", "The original behind a handle, whole."),
        ("pagein://facts/{owner}", "facts", "The facts of a scope: user, project, task, session or tenant."),
    )
)


def _text_result(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


# Asking before something is forgotten that somebody else stated


async def _ask(
    context: Context, params: types.CallToolRequestParams, question: str
) -> types.CallToolResult | types.InputRequiredResult | None:
    """Ask the user; None if they agree. From revision 2026-07-28 on the question is a result, and the call comes again."""
    schema = {
        "type": "object",
        "properties": {CONSENT: {"type": "boolean", "title": "Forget it"}},
        "required": [CONSENT],
    }
    answer = (params.input_responses or {}).get(CONSENT)
    if answer is None:
        capabilities = context.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return _text_result(
                f"error: {question} Only the user may say so, and this client cannot ask them.", failed=True
            )
        if context.protocol_version >= "2026-07-28":
            form = types.ElicitRequestFormParams(message=question, requested_schema=schema)
            return types.InputRequiredResult(input_requests={CONSENT: types.ElicitRequest(params=form)})
        answer = await context.session.elicit_form(question, schema, related_request_id=context.request_id)
    agreed = (
        isinstance(answer, types.ElicitResult) and answer.action == "accept" and (answer.content or {}).get(CONSENT)
    )
    return None if agreed else _text_result("It was not forgotten: the user did not agree.", failed=False)


# What the store holds


class _Unknown(Exception):
    """A resource or a run that there is none of."""


class _Desk:
    """The calls of the tools and resources. Everything here blocks."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings

    def newest_runs(self) -> list[str]:
        """The names of the runs, those recorded in last first."""
        settings = self._settings
        ages: list[tuple[float, str]] = []
        with closing(open_store(settings.store, tenant=settings.tenant)) as store:
            for name in store.sessions():
                head = 0 if is_reserved(name) else store.head(name)
                if head:
                    last = next(iter(store.log(name).read(head - 1, head)), None)
                    ages.append((0.0 if last is None else last.at, name))
        return [name for _, name in sorted(ages, reverse=True)]

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """The text of a tool's result, and whether it failed."""
        if name not in TOOL_NAMES:
            return f"error: no tool {name!r:.100}; there are {', '.join(TOOL_NAMES)}", True
        rest = {key: value for key, value in arguments.items() if key != "run"}
        try:
            text = retry_on_conflict(lambda: self._call(arguments.get("run"), name, rest), attempts=CONFLICT_ATTEMPTS)
        except (PageinError, _Unknown) as error:
            text = f"error: {error}"
        return text, text.startswith("error:")

    def _call(self, run: Any, name: str, arguments: Mapping[str, Any]) -> str:
        with self._open(run) as memory:
            return memory.call_tool(name, arguments)

    def question(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The question to ask before a call; "" for none. It is for what the model did not state itself."""
        id = str(arguments.get("id", "")).strip("[] \n")
        if name != "forget" or not id:
            return ""
        try:
            with self._open(arguments.get("run"), readonly=True) as memory:
                if id.startswith("s"):
                    said = next((entry.text for entry in memory.ledger() if entry.handle == id), "")
                    return f"Forget that this holds: {said!r:.300}?" if said else ""
                fact = memory.facts.get(id)
                is_own = fact.author == "model"
                return "" if is_own else f"Forget this fact, stated by {fact.author}: {fact.content!r:.300}?"
        except (PageinError, _Unknown):
            return ""  # the call says what is wrong

    def read(self, uri: str) -> tuple[str, str]:
        """The type and the text of a resource. Raises _Unknown, PageinError."""
        match [unquote(part) for part in uri.removeprefix("pagein://").split("/")]:
            case ["run", run, "view"]:
                with self._open(run, readonly=True, budget=VIEW_BUDGET_TOKENS) as memory:
                    return "application/json", json.dumps(memory.to_messages(), ensure_ascii=False, indent=1)
            case ["run", run, "step", handle]:
                with self._open(run, readonly=True) as memory:
                    try:
                        return "text/plain", str(memory.expand(handle))
                    except UnknownHandle as error:
                        raise _Unknown(str(error)) from None
            case ["facts", owner]:
                with self._open(None, readonly=True) as memory:
                    facts = memory.facts.list()
                lines = [f"[{fact.id}] {fact.content}" for fact in facts if owner in (fact.scope, fact.owner)]
                return "text/plain", "\n".join(lines) or "There are none."
        raise _Unknown(f"there is no {uri:.200}")

    @contextmanager
    def _open(self, run: Any, **options: Any) -> Iterator[AgentMemory]:
        name = self._choose(run)
        settings = self._settings
        with AgentMemory.open(
            settings.store, session=name, tenant=settings.tenant, **{**settings.options, **options}
        ) as memory:
            yield memory

    def _choose(self, run: Any) -> str:
        if run is not None and not isinstance(run, str):
            raise _Unknown("run is the name of a run")
        name = run or self._settings.run
        names: Sequence[str] = self.newest_runs() if not name or run else ()
        if run and run not in names:
            raise _Unknown(f"there is no run {run!r:.100}; the newest are {', '.join(map(repr, names[:5])) or 'none'}")
        return name or next(iter(names), "default")


async def serve_stdio(settings: McpSettings) -> None:
    """Serve one client over standard input and output, until it closes them."""
    server = build_server(settings)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


@asynccontextmanager
async def http_app(settings: McpSettings, host: str) -> AsyncIterator[Any]:
    """The ASGI app of a server at ``/mcp``, for as long as the context is open."""
    server = build_server(settings)
    app = server.streamable_http_app(host=host)
    async with server.session_manager.run():
        yield app
