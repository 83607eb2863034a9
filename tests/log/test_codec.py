"""The stored form of a body: round trip, stable bytes, versions, blobs, and refusals."""

import dataclasses
import sys
import zlib
from typing import get_args

import msgspec
import pytest
from hypothesis import given

from pagein.errors import LogError, LogTooNew, LogUnreadable
from pagein.events.entries import Body, Compaction, Observed, Pin, Replacement, Stub
from pagein.events.steps import (
    ActionStep,
    Image,
    Observation,
    Opaque,
    PlanningStep,
    Step,
    TaskStep,
    Text,
    ToolCall,
    Usage,
)
from pagein.log import codec as codec_module
from pagein.log.codec import (
    INFLATED_MAX_BYTES,
    INLINE_COMPACTION_MAX_BYTES,
    INLINE_IMAGE_MAX_BYTES,
    INLINE_TEXT_MAX_BYTES,
    KINDS,
    UPCASTERS,
    blob_names,
    decode,
    encode,
    hash_bytes,
)
from pagein.log.hash_chain import link, origin
from pagein.testing.strategies import HAZARDS, ONE_OF_EACH, bodies, bodies_with_text_everywhere


def again(record):
    return decode(record.kind, record.version, record.body, {b.name: b.data for b in record.blobs}.__getitem__)


def no_blobs(name):
    raise KeyError(name)


@given(bodies())
def test_any_body_comes_back_equal_and_of_the_same_bytes(body):
    record = encode(body)
    assert again(record) == body
    assert type(again(record)) is type(body)
    assert encode(again(record)) == record
    assert blob_names(record.body) == tuple(blob.name for blob in record.blobs)
    record.body.decode("utf-8", "strict")


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda text: repr(text[:20]))
def test_hazards_come_back_unchanged_in_every_place(hazard):
    for body in bodies_with_text_everywhere(hazard):
        assert again(encode(body)) == body


def test_every_kind_of_the_union_has_a_name_and_a_version():
    union = {*get_args(Step), *(each for each in get_args(Body) if each is not Step)}
    assert {kind.of for kind in KINDS} == union
    assert len({kind.name for kind in KINDS}) == len(union)
    assert {type(each) for each in ONE_OF_EACH} == union
    assert all(kind.version >= 1 for kind in KINDS)


def test_the_samples_set_every_field_of_every_kind():
    """A field added to a body and not to its stored shape would be lost; encode() refuses it, and this says so here."""
    unset = set()
    for kind in KINDS:
        samples = [each for each in ONE_OF_EACH if type(each) is kind.of]
        for each in dataclasses.fields(kind.of):
            default = each.default
            if default is not dataclasses.MISSING and all(getattr(s, each.name) == default for s in samples):
                unset.add((kind.name, each.name))
    assert unset == set()


STORED = {
    ("action", 1): "content tool_calls observations model usage extra",
    ("checkpoint", 1): "name state",
    ("compaction", 1): "replacements policy reason tokens_before tokens_after",
    ("compaction", 2): "replacements policy reason tokens_before tokens_after fidelity",
    ("compaction", 3): "replacements policy reason tokens_before tokens_after fidelity",
    ("compaction", 4): "replacements policy reason tokens_before tokens_after fidelity",
    ("fact_confirmed", 1): "fact confidence sources author reason",
    ("fact_removed", 1): "fact reason author",
    (
        "fact_stated",
        1,
    ): "content category confidence scope owner valid_from valid_until sources supersedes disputes author reason",
    ("facts_extracted", 1): "session upto author",
    ("facts_shown", 1): "text",
    ("erased", 1): "spans reason gone",
    ("facts_used", 1): "facts",
    ("final_answer", 1): "content extra",
    ("observed", 1): "action index observation late",
    ("pin", 1): "text",
    ("pin", 2): "text author",
    ("planning", 1): "content extra",
    ("summary", 1): "content author",
    ("system", 1): "content extra",
    ("task", 1): "content extra",
    ("undo", 1): "position",
    ("unpin", 1): "position",
    ("mark", 1): "position importance",
    ("Image", 1): "data media_type url detail extra",
    ("Observation", 1): "call_id content status index extra",
    ("Opaque", 1): "provider kind body text",
    ("Replacement", 1): "first last stubs summary author",
    ("Replacement", 2): "first last stubs summary author record",
    ("Source", 1): "session handle",
    ("Stub", 1): "slot index text tier parts",
    ("RetentionScore", 1): "kind total in_sight reachable",
    ("Text", 1): "text extra",
    ("ToolCall", 1): "id name arguments at extra",
    ("Usage", 1): "input_tokens output_tokens cached_tokens",
}
"""What is on disk, by kind and version, and what is nested in it. A line is added, never changed."""


def test_no_stored_shape_changes_without_a_new_version():
    """Fails when a field is added: raise the version of the kind, write the upcaster, add a line above."""
    from pagein.events import entries, steps

    for kind in KINDS:
        assert " ".join(each.name for each in dataclasses.fields(kind.of)) == STORED[kind.name, kind.version]
    for name, stored in {name: stored for (name, _), stored in sorted(STORED.items())}.items():  # the latest
        nested = getattr(steps, name, None) or getattr(entries, name, None)
        if nested:
            assert " ".join(each.name for each in dataclasses.fields(nested)) == stored


def test_stored_bytes_are_pinned():
    """What is signed by digests may not move between releases."""
    assert encode(TaskStep("a\u2028\0\u00e9")).body == '{"content":"a\u2028\\u0000\u00e9"}'.encode()
    assert encode(TaskStep((Text(""),))).body == b'{"content":[{"type":"text","text":""}]}'
    assert encode(TaskStep("a\ud83d\ufffe")).body == (
        b'{"packed":[],"body":{"content":"a\xef\xbf\xbed83d\xef\xbf\xbefffe"}}'
    )
    action = ActionStep(None, (ToolCall("c", "n", "{"),), (None,), "m", Usage(1, 2, 3), Opaque("p", "k", "{}"))
    assert encode(action).body == (
        b'{"tool_calls":[{"id":"c","name":"n","arguments":"{","at":null,"extra":null}],"observations":[null],'
        b'"model":"m","usage":{"input_tokens":1,"output_tokens":2,"cached_tokens":3},'
        b'"extra":{"provider":"p","kind":"k","body":"{}","text":""}}'
    )
    image = encode(TaskStep((Image(b"x" * 2000, "image/png"),)))
    name = "s2:5c0e0ea421571c300b5df6aec0a118b5c3dc02e0683a546341d5efc689df2f58"
    assert (
        image.body
        == (
            f'{{"packed":["{name}"],"body":{{"content":[{{"type":"image","data":{{"$bytes":"{name}"}},'
            '"media_type":"image/png"}]}}'
        ).encode()
    )


def test_digests_are_pinned():
    first = origin("tenant", "session")
    assert first == "s2:e8f08a22f19b2720d834fd662c73f20264f7eb00209341b44c74157a3de90e00"
    assert (
        link(first, position=0, at=1.5, kind="pin", version=1, body=b"{}")
        == "s2:209b01f079d99ff4d7e972909a72f6640e12d7933bf1e1830ddff47cab489660"
    )
    assert origin("a", "bc") != origin("ab", "c")


# What leaves the body


def test_images_leave_the_body_above_a_kibibyte_and_large_texts_above_thirty_two():
    def blobs(body):
        return [blob.data for blob in encode(body).blobs]

    assert blobs(TaskStep((Image(b"x" * INLINE_IMAGE_MAX_BYTES),))) == []
    assert blobs(TaskStep((Image(b"x" * (INLINE_IMAGE_MAX_BYTES + 1)),))) == [b"x" * (INLINE_IMAGE_MAX_BYTES + 1)]
    picture = Image(b"x" * 2_000)
    assert blobs(Observed(0, 0, Observation("c", (picture,)))) == [picture.data]
    assert blobs(ActionStep(None, (ToolCall("c", "n"),), (Observation("c", (picture,)),))) == [picture.data]
    assert blobs(TaskStep("x" * INLINE_TEXT_MAX_BYTES)) == []
    assert blobs(TaskStep("\u20ac" * (INLINE_TEXT_MAX_BYTES // 3))) == []
    assert blobs(TaskStep("\u20ac" * (INLINE_TEXT_MAX_BYTES // 3 + 1))) == [
        "\u20ac".encode() * (INLINE_TEXT_MAX_BYTES // 3 + 1)
    ]
    assert blobs(TaskStep("\0" * INLINE_TEXT_MAX_BYTES)) == []
    assert blobs(TaskStep("\ud83d" * INLINE_TEXT_MAX_BYTES)) == [b"\xed\xa0\xbd" * INLINE_TEXT_MAX_BYTES]
    assert blobs(Observed(0, 0, Observation("c", (Text("x" * 40_000), Text("x" * 40_000))))) == [b"x" * 40_000]
    for place in bodies_with_text_everywhere("y" * 40_000):
        assert blobs(place) == [b"y" * 40_000]
        assert len(encode(place).body) < 3_000


def test_a_blob_that_is_missing_or_no_text_is_unreadable():
    record = encode(TaskStep("x" * 40_000))
    with pytest.raises(LogUnreadable):
        decode(record.kind, record.version, record.body, no_blobs)
    with pytest.raises(LogUnreadable):
        decode(record.kind, record.version, record.body, lambda _: b"\xff")


# What is refused


@pytest.mark.parametrize(
    "body",
    [
        object(),
        None,
        "text",
        TaskStep(["list"]),
        TaskStep(7),
        TaskStep((b"bytes",)),
        TaskStep((Text(None),)),
        TaskStep((Image("text"),)),
        ActionStep([], [ToolCall("c", "n")]),
        ActionStep(None, (ToolCall("c", "n", {"a": 1}),)),
        ActionStep(None, (ToolCall("c", "n", b"{}"),)),
        ActionStep(usage={"input_tokens": 1}),
        Observed(0, 0, Observation("c", "", "fine")),
        Observed(0, 0, None),
        Observed(2.5, 0, Observation("c")),
        Observed(2**80, 0, Observation("c", object())),
        Pin(object()),
        Pin(float("nan")),
        Pin(["a"] * 3),
        type("Task", (TaskStep,), {})("a subclass"),
    ],
)
def test_what_would_not_come_back_is_refused_by_name(body):
    with pytest.raises(LogError, match="Nothing was written"):
        encode(body)


def test_a_value_that_refers_to_itself_is_refused():
    content = []
    content.append(content)
    with pytest.raises(LogError):
        encode(Pin(content))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"\xff", b'{"content":7}', b'{"content":"\xff"}', b'{"content":"a","more":1}', b"{}",
        b'{"content":[{"type":"song"}]}', b'{"packed":', b'{"packed":[]}', b'{"packed":[],"body":7}',
        b'{"packed":["s2:0"],"body":{"content":{"$text":"s2:0"}}}', b'{"packed":[],"body":{"content":{"$bytes":7}}}',
        b'{"content":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
    ids=lambda body: repr(body[:40]),
)  # fmt: skip
def test_bytes_that_are_no_body_are_unreadable(body):
    with pytest.raises(LogUnreadable, match="no task of version 1"):
        decode("task", 1, body, no_blobs)


def test_more_observations_than_calls_are_unreadable():
    with pytest.raises(LogUnreadable):
        decode("action", 1, b'{"observations":[null]}', no_blobs)


# Versions


def test_a_kind_or_a_version_of_a_later_release_is_too_new():
    for kind, version in (("dream", 1), ("task", 2)):
        with pytest.raises(LogTooNew, match="upgrade pagein"):
            decode(kind, version, b"{}", no_blobs)


def test_every_older_version_has_an_upcaster():
    for kind in KINDS:
        assert {(kind.name, older) for older in range(1, kind.version)} <= set(UPCASTERS)
    with pytest.raises(LogUnreadable):
        decode("task", 0, b"{}", no_blobs)


def test_upcasters_run_in_order_on_what_was_packed_and_what_was_not():
    task = next(kind for kind in KINDS if kind.name == "task")
    kinds = {"task": dataclasses.replace(task, version=3)}
    upcasters = {
        ("task", 1): lambda fields: {"words": fields["text"]},
        ("task", 2): lambda fields: {"content": fields["words"] + "!"},
    }

    def read(version, body):
        return decode("task", version, body, no_blobs, kinds=kinds, upcasters=upcasters)

    assert read(1, b'{"text":"old"}') == TaskStep("old!")
    assert read(2, b'{"words":"newer"}') == TaskStep("newer!")
    assert read(3, b'{"content":"now"}') == TaskStep("now")
    escaped = '{"packed":[],"body":{"text":"\ufffed83d"}}'.encode()
    assert read(1, escaped) == TaskStep("\ud83d!")
    with pytest.raises(LogTooNew):
        read(4, b"{}")


# Its place


def test_plans_and_tasks_of_one_shape_keep_their_kind():
    assert encode(PlanningStep("a")).body == encode(TaskStep("a")).body
    assert encode(PlanningStep("a")).kind != encode(TaskStep("a")).kind


def test_only_what_lies_in_a_store_imports_msgspec():
    from pagein.log import export

    users = [
        name
        for name, module in list(sys.modules.items())
        if name.startswith("pagein") and getattr(module, "msgspec", None) is msgspec
    ]
    assert sorted(users) == [codec_module.__name__, export.__name__]


def test_a_blob_is_named_by_its_hash():
    assert hash_bytes(b"") == "s2:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def masked(count, text="[4 characters masked: s2.0]"):
    """A compaction of so many stubs."""
    each = (Replacement(2 * n, 2 * n + 1, (Stub("observation", 0, text, "mask"),)) for n in range(count))
    return Compaction(tuple(each), "ladder", "", 9, 4)


@pytest.mark.parametrize(
    "text", ["a path", "\ud83d \ufffe \0 e\u0301", "large " * 9_000], ids=["plain", "odd", "large"]
)
def test_a_long_compaction_is_one_deflated_blob_and_comes_back_equal(text):
    record = encode(masked(300, text))
    assert len(record.body) < 1_000
    assert len(record.blobs[-1].data) < INLINE_COMPACTION_MAX_BYTES * 2
    assert again(record) == masked(300, text)
    assert blob_names(record.body) == tuple(each.name for each in record.blobs)


def test_a_short_compaction_is_readable_in_its_row():
    assert encode(masked(3)).blobs == ()
    assert b"4 characters masked" in encode(masked(3)).body


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "cut off"),
        (b"rubbish", "damaged"),
        (zlib.compress(b"{}")[:-3], "cut off"),
        (zlib.compress(b"no json"), "malformed"),
        (zlib.compress(b"[1]"), "compaction"),
        (zlib.compress(b" " * (INFLATED_MAX_BYTES + 1)), "longer than any"),
    ],
)
def test_a_deflated_body_that_is_none_is_refused(data, what):
    record = encode(masked(300))
    with pytest.raises(LogUnreadable, match=what):
        decode(record.kind, record.version, record.body, lambda name: data)
