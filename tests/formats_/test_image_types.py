"""Images whose type is wrong or not taken: one of them made a provider refuse every later request of the run."""

import base64
import re

import pytest

from pagein import AgentMemory, TaskStep
from pagein.events.steps import Image
from pagein.formats import validate

FORMATS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock", "langchain")
JPEG, BMP, SVG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\xff\xd9", b"BM" + bytes(60), b"<svg/>"
TYPE = re.compile(r"image/[a-z+]+|'format': '[a-z]+'|\[image [0-9a-f]{12}\]")


def sent_types(request):
    return [text.removeprefix("'format': '").strip("'") for text in TYPE.findall(str(request))]


def request_of(image, format):
    with AgentMemory.open(":memory:", budget=80_000, format=format) as memory:
        memory.record(TaskStep((image,)))
        request = memory.to_request()
        validate(request, format)
        return request


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("declared", ["image/png", "image/jpg", "image/JPEG", "application/octet-stream", ""])
def test_the_type_is_that_of_the_bytes(format, declared):
    (kind,) = sent_types(request_of(Image(JPEG, declared), format))
    assert kind.removeprefix("image/") == "jpeg"


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "langchain"])
@pytest.mark.parametrize(("data", "declared"), [(BMP, "image/bmp"), (BMP, "image/png"), (SVG, "image/svg+xml")])
def test_an_image_that_the_provider_refuses_is_named(format, data, declared):
    image = Image(data, declared)
    assert sent_types(request_of(image, format)) == [f"[image {image.digest[:12]}]"]


def test_anthropic_gets_no_image_that_is_too_large():
    """One of them ended the run: "image exceeds 5 MB maximum"."""
    image = Image(b"\x89PNG\r\n\x1a\n" + bytes(4_000_000), "image/png")
    assert sent_types(request_of(image, "anthropic")) == [f"[image {image.digest[:12]}]"]
    assert sent_types(request_of(image, "openai")) == ["image/png"]


@pytest.mark.parametrize(
    ("format", "part"),
    [
        ("anthropic", {"type": "image", "source": {"type": "base64", "media_type": "image/{}", "data": ...}}),
        ("openai", {"type": "image_url", "image_url": {"url": "data:image/{};base64,..."}}),
        ("openai-responses", {"type": "input_image", "image_url": "data:image/{};base64,..."}),
        ("gemini", {"inlineData": {"mimeType": "image/{}", "data": ...}}),
        ("bedrock", {"image": {"format": "{}", "source": {"bytes": ...}}}),
    ],
)
@pytest.mark.parametrize(("kind", "data", "is_sent"), [("jpg", JPEG, True), ("png", JPEG, True), ("bmp", BMP, False)])
def test_a_message_with_such_an_image_is_recorded(format, part, kind, data, is_sent):
    def fill(value):
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        encoded = base64.b64encode(data).decode()
        return encoded if value is ... else value.format(kind).replace("...", encoded)

    key = "parts" if format == "gemini" else "content"
    with AgentMemory.open(":memory:", budget=80_000, format=format) as memory:
        row = {"role": "user", key: [fill(part)]}
        memory.record_messages([row], format)
        assert memory.steps[0].content[0].data == data
        memory.record_messages([row, {"role": "user", key: [fill(part)]}], format)
        assert len(memory.steps) == 2  # what is sent otherwise is known again
        request = memory.to_request()
        validate(request, format)
        assert all(name.endswith("jpeg") == is_sent for name in sent_types(request))
