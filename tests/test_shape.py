"""The house keeps its shape: who may import whom, how large a thing may grow, what an import costs, what has a proof."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import pagein
from tests._support import shape

SOURCE = Path(pagein.__file__).parent
TESTS = Path(__file__).parent

RULE = (
    {"errors"},
    {"events"},
    {"tokens", "formats", "log"},
    {"models"},
    {"search"},
    {"context", "backends"},
    {"summaries"},
    {"facts"},
    {"memory"},
    {"evaluation", "integrations", "server", "worker"},
    {"testing"},
    {"cli"},
)
"""The dependency rule: a package imports from itself and from those on the lines above, not from its neighbours."""

SHARED = {"_common"}
"""What every package may import: it imports errors alone."""


def modules():
    return sorted(SOURCE.rglob("*.py"))


def name_of(path):
    return path.relative_to(SOURCE).as_posix()


def room(name):
    return name.split(".")[1]


def imported(path):
    """The rooms a module imports from, wherever in it."""
    for node in shape.nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pagein"):
            names = [node.module] if node.module != "pagein" else [f"pagein.{each.name}" for each in node.names]
            yield from (room(name) for name in names)
        elif isinstance(node, ast.Import):
            yield from (room(each.name) for each in node.names if each.name.startswith("pagein."))


def test_the_rule_names_every_package():
    names = {Path(name_of(path)).parts[0].removesuffix(".py") for path in modules()}
    assert names - {"__init__", "__main__"} - SHARED == set().union(*RULE)


def test_a_module_imports_only_from_the_packages_above():
    wrong = {}
    for path in modules():
        own = Path(name_of(path)).parts[0].removesuffix(".py")
        level = next((at for at, names in enumerate(RULE) if own in names), 1)
        upward = set(imported(path)) - {own} - SHARED - set().union(*RULE[:level])
        if upward and own not in ("__init__", "__main__"):  # the front door opens on every package
            wrong[name_of(path)] = upward
    assert wrong == {}


def test_only_the_codec_knows_msgspec_and_only_the_encodings_know_splintr():
    users = {
        each: {
            name_of(path)
            for path in modules()
            if re.search(rf"^\s*(import|from) {each}\b", path.read_text(), re.MULTILINE)
        }
        for each in ("msgspec", "splintr", "rich", "cyclopts")
    }
    assert users["splintr"] == {"tokens/encodings.py"}
    assert all(name.startswith("log/") for name in users["msgspec"])
    assert all(name.startswith("cli/") for name in users["rich"] | users["cyclopts"])


# Sizes


def functions():
    for path in modules():
        for node in shape.nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name_of(path)}:{node.name}", node.end_lineno - node.lineno + 1


def test_functions_are_short():
    sizes = dict(functions())
    long = {name: size for name, size in sizes.items() if size > 40}
    assert {name: size for name, size in sizes.items() if size > 80} == {}
    assert len(long) <= len(sizes) * 0.05, f"{len(long)} of {len(sizes)} are over 40 lines: {long}"


def test_modules_are_short():
    sizes = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert {name: size for name, size in sizes.items() if size > 600} == {}


# Names


def definitions(path):
    """The public classes, functions and methods of a module, with whether they are a test or belong to one."""

    def walk(body, inside=""):
        for node in body:
            is_named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_named and not node.name.startswith("_"):
                yield f"{inside}{node.name}", node
                if isinstance(node, ast.ClassDef):
                    yield from walk(node.body, f"{inside}{node.name}.")

    yield from walk(shape.tree(path).body)


def documented_bases():
    """Tells whether a base of a class has a docstring for a method: then it need not be said again."""
    classes = {
        node.name: node for path in modules() for node in shape.tree(path).body if isinstance(node, ast.ClassDef)
    }

    def says(name, method):
        body = classes[name].body if name in classes else ()
        named = (node for node in body if getattr(node, "name", "") == method)
        return any(map(ast.get_docstring, named)) or says_a_base(name, method)

    def says_a_base(name, method):
        bases = classes[name].bases if name in classes else ()
        named = (base.value if isinstance(base, ast.Subscript) else base for base in bases)
        return any(isinstance(base, ast.Name) and says(base.id, method) for base in named)

    return says_a_base


def test_modules_and_public_names_have_a_docstring():
    is_inherited = documented_bases()
    silent = [name_of(path) for path in modules() if not ast.get_docstring(shape.tree(path))]
    for path in modules():
        in_tests = "testing/" in name_of(path)
        silent += [
            f"{name_of(path)}:{name}"
            for name, node in definitions(path)
            if not ast.get_docstring(node)
            and not (in_tests and "." in name)
            and not is_overload(node)
            and not name.startswith("AsyncAgentMemory.")
            and not is_inherited(*name.rpartition(".")[::2])
        ]
    assert silent == []


def test_a_method_has_the_same_docstring_sync_and_async():
    sync, awaited = vars(pagein.AgentMemory), vars(pagein.AsyncAgentMemory)
    public = {name for name in awaited if not name.startswith("_")}
    assert public == {name for name in sync if not name.startswith("_")}
    assert [name for name in public if not awaited[name].__doc__ or awaited[name].__doc__ != sync[name].__doc__] == []


def is_overload(node):
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in getattr(node, "decorator_list", ()))


def test_nothing_is_called_a_manager():
    banned = re.compile(r"Manager|Handler|Helper|Processor|Util|utils|helpers", re.IGNORECASE)
    named = [f"{name_of(path)}:{name}" for path in modules() for name, _ in definitions(path)]
    assert [name for name in (*named, *map(name_of, modules())) if banned.search(name)] == []


def test_nothing_names_the_place_it_was_made_in():
    forbidden = re.compile("/" + r"work/|\.\./" + "shared|/" + "tmp/(dev|bash)")
    told = [path for path in (*modules(), *TESTS.rglob("*.py")) if forbidden.search(path.read_text("utf-8"))]
    assert told == []


def test_all_is_everything_public_and_each_is_documented():
    assert list(pagein.__all__) == sorted(pagein.__all__)
    public = {
        name
        for name, each in vars(pagein).items()
        if not name.startswith("_") and not isinstance(each, types.ModuleType) and name != "TYPE_CHECKING"
    }
    assert public <= set(pagein.__all__)
    for name in pagein.__all__:
        found = getattr(pagein, name)
        assert isinstance(found, types.UnionType) or found.__doc__, f"{name} has no docstring"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nonsense"):
        pagein.Nonsense  # noqa: B018 - the look is the test


def test_every_constant_is_read():
    assert shape.unread_constants() == set()


# Figures that may only fall; ``python -m tests._support.shape`` prints them.


@pytest.mark.slow
def test_the_figures_of_the_shape_only_fall(tmp_path):
    top = shape.top_entries()
    with shape.warm_memory(tmp_path) as memory:
        recording = shape.files_entered(lambda: memory.record(pagein.TaskStep("And now?")))
        viewing = shape.files_entered(memory.view)
    assert (len(top), sum(name.endswith(".py") for name in top)) <= (19, 1)
    assert shape.participle_share() <= 0.006
    assert shape.vague_share() <= 0.004
    assert shape.question_share() <= 0.006
    assert shape.repeated_classes() == {}
    assert len(recording) <= 18, recording
    assert len(viewing) <= 21, viewing
    assert shape.lines() <= 78_122


# Importing


def fresh(code, cwd):
    """Runs code in a new interpreter, which finds nothing but what is installed."""
    return subprocess.run([sys.executable, "-B", "-c", code], cwd=cwd, capture_output=True, text=True, check=True)


HEAVY = (
    "asyncio", "cyclopts", "hypothesis", "importlib.resources", "numpy", "pytest", "rich", "sqlite3",
    "pagein.search", "pagein.evaluation", "pagein.cli", "pagein.facts", "pagein.models", "pagein.summaries", "pagein.testing",
)  # fmt: skip
"""What no import and no plain turn loads: each is for what a run may never ask for."""

OF_A_TURN = ("logging", "msgspec", "splintr", "pagein.log.codec", "pagein.backends.memory")
"""What only a turn loads."""

SLIGHT = {"pagein.search", "pagein.facts", "pagein.facts.owners", "pagein.summaries", "pagein.summaries.job"}
"""What may load of them: the names of a room, and which names are reserved."""


def loaded(heavy):
    """Code that tells which of these modules are there, they and what is in them."""
    return (
        f"found = sorted(m for m in sys.modules for h in {heavy!r} if m == h or m.startswith(h + '.'))\n"
        f"assert set(found) <= {SLIGHT!r}, found"
    )


def test_an_import_prints_nothing_writes_nothing_and_loads_nothing_heavy(tmp_path):
    run = fresh(f"import sys, pagein\n{loaded(HEAVY + OF_A_TURN)}", tmp_path)
    assert (run.stdout, run.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_plain_turn_loads_what_it_needs(tmp_path):
    turn = """
import sys, pagein
from pagein.backends.memory import InMemoryLog
with pagein.AgentMemory(InMemoryLog(), budget=4_000) as memory:
    memory.record(pagein.TaskStep("Build the shop."), pagein.ActionStep("I look around."))
    assert memory.to_messages()
    assert memory.expand("s1")
"""
    fresh(turn + loaded(HEAVY), tmp_path)


def test_every_public_name_is_found_wherever_it_loads_from():
    for room in ("", ".memory", ".search", ".memory.checkpoints", ".memory.erasure", ".facts"):
        module = importlib.import_module(f"pagein{room}")
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
        assert not hasattr(module, "no_such_name")


@pytest.mark.slow
def test_every_package_can_be_imported_first(tmp_path):
    folders = (path.parent.relative_to(SOURCE.parent) for path in SOURCE.rglob("__init__.py"))
    # The examples import an integration first, in processes of their own: its framework takes seconds.
    names = [".".join(folder.parts) for folder in folders if not {"testing", "integrations"} & {*folder.parts}]
    assert len(names) > 25
    # Whatever is imported first, the front door comes before it, and with it all that it opens on.
    # Patterns are compiled once: that is half of the work of an import.
    code = "import importlib, re, sys, pagein\nre._MAXCACHE = 100_000\nbase = set(sys.modules)\n" + "".join(
        f"importlib.import_module({name!r})\n"
        "[sys.modules.pop(m) for m in list(sys.modules) if m.startswith('pagein') and m not in base]\n"
        for name in names
    )
    assert fresh(code, tmp_path).stdout == ""


# Proofs

SEAMS = {
    "LogTests": ("backends", {"head", "append", "read", "verify", "close"}),
    "StoreTests": ("backends", {"log", "sessions", "head", "search_index", "erase", "close"}),
    "FormatTests": ("formats", {"name", "parse", "render", "problems"}),
    "CounterTests": ("tokens", {"name", "margin", "text", "image"}),
    "PolicyTests": ("context", {"name", "__call__"}),
    "ModelTests": ("models", {"name", "window", "write"}),
    "SearchIndexTests": ("backends", {"catch_up", "index", "search", "forget", "close"}),
}


def implementations(package, members):
    """The classes of a room that fill its seam."""
    root = importlib.import_module(f"pagein.{package}")
    for each in pkgutil.walk_packages(root.__path__, f"pagein.{package}."):
        module = importlib.import_module(each.name)
        for name, found in vars(module).items():
            if isinstance(found, type) and found.__module__ == each.name and not getattr(found, "_is_protocol", False):
                fields = set(dir(found)) | set(getattr(found, "__dataclass_fields__", ()))
                if members <= fields:
                    yield name, found


@pytest.mark.parametrize("suite", SEAMS)
def test_every_implementation_has_a_conformance_subclass(suite):
    found = dict(implementations(*SEAMS[suite]))
    assert found
    proofs = [path.read_text("utf-8") for path in TESTS.rglob("test_*.py")]
    proven = "\n".join(text for text in proofs if re.search(rf"class \w+\((\w+\.)?{suite}\)", text))
    missing = [name for name, each in found.items() if not is_proven(name, each, proven)]
    assert missing == []


def is_proven(name, implementation, proven):
    """Named where its suite is subclassed: by its class, by a value of it, or as policies are, by what it is called."""
    module = sys.modules[implementation.__module__]
    values = [each for each, value in vars(module).items() if isinstance(value, implementation)]
    known = getattr(implementation, "name", None)
    default = getattr(implementation, "__dataclass_fields__", {}).get("name")
    known = known if isinstance(known, str) else getattr(default, "default", None)
    spelled = isinstance(known, str) and f'"{known}"' in proven
    return spelled or any(re.search(rf"\b{each}\b", proven) for each in (name, *values))
