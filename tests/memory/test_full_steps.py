"""Full steps leave nothing out: every field of every part is there, or can be told from what is."""

import json

from pagein.events.steps import ActionStep, Image, Observation, Opaque, TaskStep, Text, ToolCall
from pagein.memory.operations.history import full_steps

BESIDE = Opaque("anthropic", "cache_control", '{"cache_control": {"type": "ephemeral"}}')
KEPT = {"type": "opaque", "provider": "anthropic", "kind": "cache_control", "body": BESIDE.body, "text": ""}


def test_fields_beside_parts_calls_and_results_are_there():
    step = ActionStep(
        (Text("x", BESIDE),), (ToolCall("a", "f", "{}", 0, BESIDE),), (Observation("a", "r", index=0, extra=BESIDE),)
    )
    found = full_steps([(0, step)])[0]
    assert found["content"][0]["extra"] == KEPT
    assert (found["tool_calls"][0]["at"], found["tool_calls"][0]["extra"]) == (0, KEPT)
    assert (found["observations"][0]["index"], found["observations"][0]["extra"]) == (0, KEPT)
    (image,) = full_steps([(0, TaskStep((Image(b"x", detail="low", extra=BESIDE),)))])[0]["content"]
    assert (image["detail"], image["extra"]) == ("low", KEPT)
    json.dumps(found)
