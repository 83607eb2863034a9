"""One file, the environment over it: what is found, what wins, what is refused, and what comes of it."""

import inspect
import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagein import AgentMemory, AutoCheckpoint, Budget
from pagein._common.validation import options_of
from pagein.cli import main
from pagein.context.compaction.ladder import RUNGS, Ladder
from pagein.context.compaction.policies.tiers import Tiers
from pagein.context.compaction.registry import POLICIES
from pagein.errors import ConfigurationError, PageinError
from pagein.facts.settings import Settings
from pagein.formats import format_named
from pagein.memory.config import KEYS, load
from pagein.memory.config.keys import IN_CODE, OWNERS, SECTIONS, SHORT
from pagein.memory.config.page import EXAMPLE, render_page
from pagein.memory.config.sources import RESERVED_VARIABLES
from pagein.memory.options import Options
from pagein.models.retrying import RetryingModel

ROOT = Path(__file__).parent.parent.parent


def write(folder, text, name="pagein.toml"):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def dotted(name, value):
    """A line of TOML; what JSON writes of these values is TOML too."""
    return f"{name} = {json.dumps(value)}\n"


@pytest.fixture
def at(tmp_path):
    """Loads a text, as a file that is named; ``env`` over it."""

    def loaded(text="", **env):
        return load(write(tmp_path, text), environ=env)

    return loaded


# The table


def test_every_key_is_documented():
    assert [key.name for key in KEYS.values() if not key.doc] == []


def test_every_option_of_a_memory_is_a_key_a_section_or_given_in_code():
    opened = set(inspect.signature(AgentMemory.open).parameters) - {"url", "options"}
    tops = {name.partition(".")[0] for name in KEYS} - {"server"}
    in_code = {name for name in IN_CODE if "." not in name}
    assert tops <= opened | set(Options.__annotations__) <= tops | in_code, "a key, or a line of IN_CODE, is missing"
    assert not set(KEYS) & set(IN_CODE)


def test_every_field_that_takes_a_value_is_a_key_or_given_in_code():
    made_elsewhere = {"facts.weights", "facts.capacity", "summarizer.spending.price", "summarizer.breaker.clock"}
    for section, owner in OWNERS.items():
        fields = {f"{section}.{each}" for each in inspect.signature(owner).parameters if each[0] != "_"}
        renamed = {f"{section}.name"} if section.startswith(("policy.", "summarizer")) else set()
        missing = fields - set(KEYS) - set(IN_CODE) - made_elsewhere - renamed
        assert missing == set(), "annotate them with their documentation, or name them in IN_CODE"


def test_every_default_fits_its_key_and_its_owner():
    for key in KEYS.values():
        if key.default not in (None, ""):
            assert key.accepts(key.default), key.name
    for key in (key for key in KEYS.values() if key.name.rpartition(".")[0] in OWNERS):
        section, _, last = key.name.rpartition(".")
        parameter = inspect.signature(OWNERS[section]).parameters.get(last)
        if parameter is not None and isinstance(parameter.default, int | float | str):
            assert key.default == parameter.default, key.name


def test_the_defaults_that_no_type_tells_are_those_of_a_memory_told_nothing():
    names = ("page_in", "format", "embedder", "resume")
    told = {name: KEYS[name].default for name in names}
    with AgentMemory.open(":memory:") as plain, AgentMemory.open(":memory:", **told) as same:
        assert plain._runtime.state.page_in.share == same._runtime.state.page_in.share
        assert plain._runtime.format == same._runtime.format
        assert plain._runtime.schedule == same._runtime.schedule
        assert plain._runtime.search._embedder is same._runtime.search._embedder is None
    opened = inspect.signature(AgentMemory.open).parameters
    for name in ("session", "tenant", "readonly", "timeout", "synchronous"):
        assert KEYS[name].default == opened[name].default
    assert KEYS["policy.ladder.rungs"].default == tuple(each.name for each in RUNGS)


def test_the_formats_are_those_there_are():
    for name in KEYS["format"].constraint.choices:
        assert format_named(name).name == name
    with pytest.raises(ConfigurationError) as refused:
        format_named("none")
    assert str(refused.value).count("'") - 2 == 2 * len(KEYS["format"].constraint.choices)


def test_every_variable_is_one_keys_alone():
    variables = [key.variable for key in KEYS.values()] + [f"PAGEIN_{short.upper()}" for short in SHORT]
    assert len(set(variables)) == len(variables)
    assert not set(variables) & set(RESERVED_VARIABLES)
    assert not set(SECTIONS) & set(KEYS)


# What is wrong with a value


def good(key):
    """Values that a key may have."""
    rule = key.constraint
    match rule.kind:
        case "whole":
            return st.integers(int(rule.least) + rule.exclusive, int(rule.largest))
        case "number":
            return st.floats(rule.least, rule.largest, exclude_min=rule.exclusive, allow_subnormal=False)
        case "switch":
            return st.booleans()
        case "list":
            return st.lists(st.sampled_from(rule.choices or ("preference", "goal")), min_size=1, max_size=3)
        case "table":
            return st.just({"temperature": 0})
    examples = {
        "embedder": ["auto", "openai:m@http://localhost#3"], "summarizer.model": ["ollama:qwen3"],
        "summarizer.base_url": ["http://localhost:1"], "summarizer.key_variable": ["MY_KEY"],
    }  # fmt: skip
    return st.sampled_from(rule.choices or examples.get(key.name, ["one", "two words", "ünï"]))


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=8), st.binary(max_size=4),
    st.lists(st.one_of(st.integers(), st.text(max_size=5), st.none()), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2), st.sampled_from([10**400, math.nan, -0.0, "\ud800", "a\0b"]),
)  # fmt: skip


def really_fits(key, value):
    """By other means than the key's own: what a good value's type and range say."""
    rule = key.constraint
    if rule.kind in ("whole", "number"):
        kinds = (int,) if rule.kind == "whole" else (int, float)
        if type(value) not in kinds or str(value) == "nan":
            return False
        return rule.least < value <= rule.largest or (value == rule.least and not rule.exclusive)
    if rule.kind == "switch":
        return type(value) is bool or (type(value) is str and value in rule.choices)
    if rule.kind == "table":
        return type(value) is dict
    if rule.kind == "list":
        return type(value) is list and all(type(each) is str for each in value)
    return type(value) is str


@given(name=st.sampled_from(list(KEYS)), data=st.data())
def test_a_value_is_taken_or_refused_by_type_and_range(name, data):
    key = KEYS[name]
    value = data.draw(good(key))
    assert key.accepts(value), value
    other = data.draw(ANYTHING)
    if not really_fits(key, other):
        assert not key.accepts(other)


WRONG = {
    "whole": ["1", 1.5, -1],
    "number": ["1", None, -1],
    "switch": ["yes", 1],
    "text": [1],
    "list": [1],
    "table": ["a"],
}
NEEDED = {"budget": {"window": 1_000}, "summarizer": {"name": "m"}, "summarizer.price": {"input": 1, "output": 1}}
CHECKED = [
    name
    for name in KEYS
    if name.rpartition(".")[0] in OWNERS and name.rpartition(".")[2] in options_of(OWNERS[name.rpartition(".")[0]])
]


@pytest.mark.parametrize("name", CHECKED)
def test_a_bad_value_is_refused_where_its_object_is_made(name, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a")
    section, _, parameter = name.rpartition(".")
    option = options_of(OWNERS[section])[parameter]
    for value in WRONG[option.constraint.kind]:
        if not option.constraint.accepts(value) and not (value is None and option.optional):
            with pytest.raises(PageinError, match=parameter):
                OWNERS[section](**{**NEEDED.get(section, {}), parameter: value})


BAD = {
    "whole": ["1", 1.5, True, [1], {}, -1, 10**13], "number": ["1", True, [1], {}, -1, 10**13], "switch": [1, "yes", [], {}],
    "text": [1, True, [], {}], "path": [1, True, [], {}, " "], "list": ["one", 1, [1], [["a"]], {}], "table": [1, "a", [1], True],
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_a_bad_value_in_a_file_is_told_with_its_file_key_value_and_what_may_be(name, at, tmp_path):
    key = KEYS[name]
    for value in BAD[key.constraint.kind]:
        if value == {} and key.constraint.kind != "table":
            line = f"{name} = {{}}\n"
        elif isinstance(value, str | int | float | list):
            line = dotted(name, value)
        else:
            continue
        with pytest.raises(ConfigurationError) as told:
            at(line)
        text = str(told.value)
        assert text.startswith(f"{tmp_path / 'pagein.toml'}: {name} is {key.constraint.allowed_values}, not "), text
        assert (repr(value) if value != {} else "a table") in text


@pytest.mark.parametrize(
    "name", [key.name for key in KEYS.values() if key.constraint.kind not in ("text", "path", "list")]
)
def test_a_bad_value_in_the_environment_is_told_with_its_variable(name, at):
    key = KEYS[name]
    with pytest.raises(ConfigurationError, match=key.variable) as told:
        at("", **{key.variable: "x1"})
    assert f"{name} is {key.constraint.allowed_values}, not 'x1'" in str(told.value)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e400", "1979-05-27", "9" * 5000])
def test_no_number_that_is_none(at, text):
    with pytest.raises(ConfigurationError):
        at(f"page_in = {text}")
    with pytest.raises(ConfigurationError):
        at(PAGEIN_PAGE_IN=text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[budget]\nwindow = 100\noutput = 200", r"pagein.toml: \[budget\]: a budget must leave tokens"),
        ("[budget]\nwindow = 100\nlow = 0.9\nhigh = 0.5", r"\[budget\]: marks must be"),
        ("[facts.weights]\nsimilarity = 0.9", r"\[facts\]: similarity 0.9 and confidence"),
        ("[facts.capacity]\nuse = 0.9", r"\[facts\]: the shares of an eviction"),
        ('[facts]\ncategories = ["a b!"]', r"\[facts\]: "),
        ("policy = 'tiers'\n[policy_]", "unknown key 'policy_': did you mean"),
        ("[policy]\nname = 'tiers'\ntiers.fewest = 20", "fewest is at most most: 20, 10"),
        ("[policy]\nname = 'clip'\nshort_long.short = 0.9", "at most 1 together"),
        ("[policy]\ntiers.most = 12", "policy.name says which policy"),
        ("[summarizer]\nstream = true", "there is no model"),
        ("[summarizer]\nmodel = 'openai:m'\nspending.money = 1.0", "a limit in money needs a price"),
        ("[summarizer]\nmodel = 'openai:m'\nprice = {input = 1, output = 2}", "spending.money, which is not set"),
        ("[summarizer]\nmodel = 'openai:m'\nprice = {input = 1}", "at least input and output"),
    ],
)  # fmt: skip
def test_values_that_do_not_go_together_are_refused_when_they_are_loaded(at, text, what):
    with pytest.raises(ConfigurationError, match=what):
        at(text)


# Names


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("budget.windw = 1", "budget.window"), ("windw = 1", "budget.window"), ("pagein = 1", "without [tool.pagein]"),
        ("[tool.pagein]\nbudget = 1", "without [tool.pagein]"), ("polcy = 'clip'", "policy"), ("checkpoints = 5", "[checkpoints]"),
        ("[facts.wieghts]\nuse = 1", "facts.weights"), ("xyzzy = 1", "--docs"), ("[memory]\nsimilarity_weight = 0.6", "'facts.weights.similarity'"), ("memory.confidence_weight = 0.4", "'facts.weights.confidence'"), ("token_limit = 8000", "'budget.window'"), ("PAGE_IN = 0.1", "page_in"), ("'budget.window' = 1\n[budget]\nwindow = 2", "without its quotes"), ("policy.tiers = 5", "[policy.tiers]"),
        ("[page_in]\na = 1", "a number from 0 to 0.5, not a table"),
    ],
)  # fmt: skip
def test_a_name_there_is_not_is_told_with_the_nearest(at, text, near):
    with pytest.raises(ConfigurationError) as told:
        at(text)
    assert near in str(told.value)


def test_a_variable_that_was_meant_for_us_is_refused_and_others_are_not_ours(at):
    with pytest.raises(ConfigurationError, match="did you mean PAGEIN_BUDGET_WINDOW"):
        at(PAGEIN_BUGDET_WINDOW="1")
    with pytest.raises(ConfigurationError, match="PAGEIN_FACTS_XYZZY"):
        at(PAGEIN_FACTS_XYZZY="1")
    others = {"PAGEIN_SERVICE_HOST": "1", "PAGEIN_PORT": "tcp://1", "PAGEIN_CACHE": "/c", "PAGEIN_DEPLOY_TOKEN": "t"}
    assert at(**others).values == {}


# Keys


SECRET = "sk-proj-abcdef1234567890"


@pytest.mark.parametrize(
    "text",
    [
        f"summarizer.api_key = '{SECRET}'", f"api_key = '{SECRET}'", f"summarizer.key = '{SECRET}'",
        f"[summarizer]\nmodel = 'openai:m'\nkey_variable = '{SECRET}'",
        f"[summarizer]\nmodel = 'openai:m'\noptions.extra_headers = {{ Authorization = 'Bearer {SECRET}' }}",
        f"[summarizer]\nmodel = 'openai:m'\noptions.api-key = '{SECRET}'",
        f"[summarizer]\nmodel = 'openai:m'\nbase_url = 'https://me:{SECRET}@host/v1'",
        f"embedder = 'openai:m@https://me:{SECRET}@host'", f"password = '{SECRET}'",
    ],
)  # fmt: skip
def test_a_key_in_a_file_is_refused_and_not_repeated(at, text):
    with pytest.raises(ConfigurationError, match="key") as told:
        at(text)
    assert SECRET[:12] not in str(told.value)
    assert "variable" in str(told.value)


def test_a_key_in_a_variable_of_ours_is_refused_unless_that_is_where_it_is_said_to_be(at):
    with pytest.raises(ConfigurationError, match="PAGEIN_SUMMARIZER_API_KEY") as told:
        at(PAGEIN_SUMMARIZER_API_KEY=SECRET)
    assert SECRET not in str(told.value)
    there = "[summarizer]\nmodel = 'vllm:m'\nkey_variable = 'PAGEIN_SUMMARIZER_API_KEY'"
    assert "summarizer.key_variable" in at(there, PAGEIN_SUMMARIZER_API_KEY=SECRET).values


@pytest.mark.parametrize(
    "line",
    ["summarizer.base_url = 'https://host'", "summarizer.key_variable = 'K'", "embedder = 'openai:m@https://host'"],
)  # fmt: skip
def test_a_file_that_was_only_found_does_not_say_where_keys_go(tmp_path, line):
    path = write(tmp_path, f"{line}\nsummarizer.model = 'openai:m'")
    with pytest.raises(ConfigurationError, match="only found: name the file"):
        load(start=tmp_path, environ={})
    name = line.split()[0]
    assert load(path, environ={}).values[name].source == str(path)
    path.write_text("summarizer.model = 'openai:m'")
    over = load(start=tmp_path, environ={KEYS[name].variable: line.split("'")[1]})
    assert over.values[name].source == KEYS[name].variable


# Where it is from


def test_without_a_file_nothing_is_set_and_the_options_are_none(tmp_path):
    config = load(start=tmp_path, environ={})
    assert config.file is None
    assert config.options() == {}
    assert config.value("page_in") == KEYS["page_in"].default


def test_the_nearest_file_holds_alone(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    outer = write(tmp_path, "budget = 1000\nuser = 'outer'")
    assert load(start=inner, environ={}).file == outer
    project = write(tmp_path / "a", "[tool.pagein]\nbudget = 2000\n[tool.ruff]\nx = 1", "pyproject.toml")
    write(inner, "[project]\nname = 'other'", "pyproject.toml")
    config = load(start=inner, environ={})
    assert (config.file, config.value("budget.window"), config.value("user")) == (project, 2000, None)
    beside = write(tmp_path / "a", "budget = 3000")
    assert load(start=inner, environ={}).file == beside


def test_it_is_looked_for_from_the_working_folder(tmp_path, monkeypatch):
    write(tmp_path, "budget = 1000")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAGEIN_BUDGET_HIGH", "0.9")
    assert load().options()["budget"] == Budget(1000, high=0.9)


def test_the_environment_is_over_the_file_and_an_empty_variable_is_none(at):
    text = "budget = 1000\npage_in = 0.1\nfacts.scopes = ['user']\nfacts.tools = true"
    config = at(
        text, PAGEIN_BUDGET="2000", PAGEIN_PAGE_IN="", PAGEIN_FACTS_SCOPES="task, user", PAGEIN_FACTS_TOOLS="False"
    )
    assert config.value("budget.window") == 2000
    assert config.value("page_in") == 0.1
    assert config.value("facts.scopes") == ("task", "user")
    assert config.value("facts.tools") is False
    assert config.values["budget.window"].source == "PAGEIN_BUDGET"
    assert config.values["page_in"].source.endswith("pagein.toml")


def test_one_key_by_two_variables_is_refused(at):
    with pytest.raises(ConfigurationError, match=r"PAGEIN_BUDGET_WINDOW and PAGEIN_BUDGET set one key"):
        at(PAGEIN_BUDGET="1000", PAGEIN_BUDGET_WINDOW="2000")


def test_each_key_is_overridden_by_its_variable(at):
    def text(value):
        match value:
            case bool():
                return str(value).lower()
            case tuple():
                return ",".join(value)
        return str(value)

    beside = {"PAGEIN_POLICY_NAME": "ladder", "PAGEIN_SUMMARIZER_MODEL": "openai:m"}
    for key in KEYS.values():
        value = key.default
        if value not in (None, "", ()):
            assert at(**beside | {key.variable: text(value)}).value(key.name) == value, key.name


@pytest.mark.parametrize(
    ("text", "what"),
    [("budget = x\n", "is no TOML: .*line 1"), ("a = 1\na = 2", "is no TOML"), ("a = " + "[" * 9999, "TOML"), ("x = " + "9" * 5000, "TOML")],
)  # fmt: skip
def test_a_file_that_is_no_toml_is_told_with_its_place(at, tmp_path, text, what):
    with pytest.raises(ConfigurationError, match=what) as told:
        at(text)
    assert str(tmp_path / "pagein.toml") in str(told.value)


def test_a_file_that_is_not_there_is_a_folder_or_no_utf8_is_told(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.toml cannot be read: No such file"):
        load(tmp_path / "none.toml", environ={})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(tmp_path, environ={})
    (tmp_path / "latin.toml").write_bytes(b"user = '\xe9'")
    with pytest.raises(ConfigurationError, match="is no TOML"):
        load(tmp_path / "latin.toml", environ={})


def test_a_named_pyproject_must_have_our_table(tmp_path):
    path = write(tmp_path, "[project]\nname = 'x'", "pyproject.toml")
    with pytest.raises(ConfigurationError, match=r"has no \[tool.pagein\]"):
        load(path, environ={})
    path.write_text("[tool]\npagein = 5")
    with pytest.raises(ConfigurationError, match=r"is a table, \[tool.pagein\]"):
        load(start=tmp_path, environ={})


def test_a_mark_of_order_and_windows_lines_are_read(tmp_path):
    (tmp_path / "pagein.toml").write_bytes("\ufeffuser = 'älice'\r\nbudget = 1000\r\n".encode())
    assert load(start=tmp_path, environ={}).value("user") == "älice"


# What comes of it


def test_a_file_becomes_the_options_of_a_memory(at, tmp_path):
    options = at(
        "session = 's'\ntimeout = 1\nuser = 'alice'\nprompts = 'words'\nresume = 'fresh'\npage_in = 0\nbudget = 1000\n"
        "[policy]\nname = 'tiers'\ntiers.most = 12\nwindow.keep = 3\n"
        "[facts]\ncategories = ['style']\nweights = {similarity = 1, confidence = 0}\n[checkpoints]\nevery = 5"
    ).options()
    assert options["policy"] == Tiers(most=12)
    assert options["budget"] == Budget(1000)
    assert options["checkpoints"] == AutoCheckpoint(every=5)
    assert options["prompts"] == str(tmp_path / "words")
    assert isinstance(options["facts"], Settings)
    assert (options["facts"].categories, options["facts"].weights.similarity) == (("style",), 1)
    assert {name: options[name] for name in ("session", "timeout", "user", "resume", "page_in")} == {
        "session": "s", "timeout": 1, "user": "alice", "resume": "fresh", "page_in": 0,
    }  # fmt: skip


def test_a_memory_opens_with_them(at, tmp_path):
    config = at(
        "budget = 9000\npolicy = 'window'\nuser = 'alice'\n[facts]\nmax_injection_tokens = 100\n[checkpoints]\nclose = false"
    )
    with AgentMemory.open(tmp_path / "run.db", **config.options()) as memory:
        assert memory.budget == Budget(9000)
        assert memory.facts.settings.max_injection_tokens == 100
        memory.record_messages([{"role": "user", "content": "hello"}])


def test_without_a_window_the_rest_is_over_the_models(at):
    plain = at("model = 'gpt-4o'\nbudget.high = 0.8").options()["budget"]
    from pagein.tokens.windows import budget_for

    assert plain == replace(budget_for("gpt-4o"), high=0.8)


def test_a_ladder_has_its_rungs_with_the_parameters_of_their_sections(at):
    plain = at("policy = 'ladder'").options()["policy"]
    assert plain == Ladder()
    clipping = at("[policy]\nname = 'ladder'\nclip.share = 0.2").options()["policy"]
    assert clipping.rungs == (replace(RUNGS[0], share=0.2), *RUNGS[1:])
    short = at("[policy]\nname = 'ladder'\nladder.rungs = ['prune', 'mask']\nmask.keep = 20").options()["policy"]
    assert short.rungs == (POLICIES["prune"](), replace(POLICIES["mask"](), keep=20))
    with pytest.raises(ConfigurationError, match="one or more of"):
        at("[policy]\nname = 'ladder'\nladder.rungs = []")


@pytest.mark.parametrize(("text", "facts"), [("facts = true", True), ("facts = false", False), ("facts.enabled = false\nfacts.tools = true", False)])  # fmt: skip
def test_facts_are_on_or_off(at, text, facts):
    assert at(text).options()["facts"] is facts


def test_a_summarizer_is_its_name_or_a_model_with_the_patience_that_was_set(at, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    assert at("summarizer = 'openai:gpt-4o-mini'").options()["summarizer"] == "openai:gpt-4o-mini"
    config = at(
        "[summarizer]\nmodel = 'vllm:qwen'\nwindow = 9000\noptions.temperature = 0\nwaits.attempts = 2\n"
        "breaker.failures = 5\nspending.money = 1.5\nprice = {input = 1, output = 2}"
    )
    made = config.options()["summarizer"]
    assert isinstance(made, RetryingModel)
    assert (made.name, made.window, made._retry_policy.attempts) == ("qwen", 9000, 2)
    (spending,) = made._limiters
    assert spending.limits == (None, 1.5)
    assert config.options()["summarizer"]._limiters != made._limiters
    bare = at("[summarizer]\nmodel = 'vllm:qwen'\nwindow = 9000").options()["summarizer"]
    assert not isinstance(bare, RetryingModel)


def test_a_summarizer_that_cannot_be_made_is_told_when_it_is_wanted(at, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = at("[summarizer]\nmodel = 'openai:gpt-4o-mini'\nwindow = 9000")
    with pytest.raises(ConfigurationError, match=r"pagein.toml: \[summarizer\]: .*OPENAI_API_KEY"):
        config.options()


def test_a_configuration_stays_as_it_was_loaded(at):
    config = at("budget = 1000")
    with pytest.raises(TypeError):
        config.values["budget.window"] = 5
    with pytest.raises(ConfigurationError, match="no key 'nonsense'"):
        config.value("nonsense")
    with pytest.raises(PageinError):
        load(environ={"PAGEIN_BUDGET": "x"}, start="/")


# The page and the command


def test_the_page_is_what_the_code_says():
    written = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    assert written == render_page(), "run: pagein config --docs > docs/configuration.md"
    for key in KEYS.values():
        assert f"| `{key.name}` | " in written


def test_the_example_of_the_page_can_be_loaded(at):
    options = at(EXAMPLE).options
    assert set(at(EXAMPLE).values) >= {"policy.tiers.most", "facts.weights.similarity", "summarizer.waits.attempts"}
    assert tomllib.loads(EXAMPLE)["budget"] == 80_000
    assert callable(options)


def test_the_command_says_what_holds_and_from_where(tmp_path, monkeypatch, capsys):
    write(tmp_path, "budget = 1000\nuser = 'alice'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAGEIN_PAGE_IN", "0.3")
    assert main(["config", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    rows = {each["key"]: (each["value"], each["from"]) for each in said["keys"]}
    assert set(rows) == set(KEYS)
    file = str(tmp_path / "pagein.toml")
    assert said["file"] == file
    assert rows["budget.window"] == (1000, file)
    assert rows["page_in"] == (0.3, "PAGEIN_PAGE_IN")
    assert rows["timeout"] == (5.0, "default")
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["config"]) == 0
    assert "PAGEIN_PAGE_IN" in capsys.readouterr().out


def test_the_command_writes_the_page_and_tells_mistakes_in_one_line(tmp_path, monkeypatch, capsys):
    assert main(["config", "--docs"]) == 0
    assert capsys.readouterr().out == render_page()
    path = write(tmp_path, "budgt = 1000")
    assert main(["config", "--file", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "did you mean 'budget'?" in err
    assert err.count("\n") == 1


class Wrong:
    """A policy with a mistake: it returns a text."""

    name = "wrong"

    def __call__(self, view, budget):
        return "nothing"


def test_a_policy_that_is_none_is_refused_with_what_it_is():
    with pytest.raises(ConfigurationError, match=r"such as Tiers\(\), not <class"):
        AgentMemory.open(":memory:", policy=Tiers)
    refusal = pytest.raises(ConfigurationError, match=r"a policy returns a Plan or None, and .* returned 'nothing'")
    with AgentMemory.open(":memory:", policy=Wrong(), budget=500) as memory, refusal:
        memory.compact()


def test_step_types_are_classes_in_a_list_or_one_class():
    with pytest.raises(ConfigurationError, match="step_types are subclasses of MemoryStep, not 5"):
        AgentMemory.open(":memory:", step_types=5)
