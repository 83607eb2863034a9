"""A document costs by its pages or words, sound and film by their seconds; what cannot be read costs all that is sent."""

from __future__ import annotations

import base64
import io
import json
import random
import struct
import time
import zipfile
import zlib

import pytest

from pagein import AgentMemory
from pagein.events.steps import Opaque
from pagein.tokens.counter import part_tokens
from pagein.tokens.encodings import Encoding
from pagein.tokens.media import (
    GEMINI_PAGE_TOKENS,
    MAX_INFLATED_BYTES,
    PAGE_TEXT_TOKENS,
    SOUND_TOKENS,
    count_pages,
    read_media,
)

COUNT = Encoding("o200k_base")
NOISE = random.Random(7).randbytes(400_000)


def make_pdf(pages, *, noise=NOISE, packed=False):
    """A PDF with so many pages, in an object stream where it is ``packed``."""
    objects = b"".join(b"<</Type /Page /Parent 2 0 R /Contents %d 0 R>>\n" % number for number in range(pages))
    tree = b"<</Type /Pages /Count %d>>\n" % pages
    if packed:
        stream = zlib.compress(tree + objects)
        head = b"<</Type /ObjStm /N %d /First 9 /Filter /FlateDecode /Length %d>>" % (pages, len(stream))
        tree, objects = b"", b"5 0 obj " + head + b" stream\r\n" + stream + b"\nendstream endobj\n"
    return b"%PDF-1.7\n" + tree + objects + b"9 0 obj <<>> stream\n" + noise + b"\nendstream endobj\n%%EOF"


def make_wave(seconds, rate=24_000):
    size = seconds * rate * 2
    head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", size + 36, b"WAVE", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
    return head + struct.pack("<4sI", b"data", size) + b"\0" * size


def make_archive(parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


def as_text(data):
    return base64.b64encode(data).decode()


DOCUMENTS = {
    "anthropic": lambda data: {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}},
    "openai": lambda data: {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}},
    "openai-responses": lambda data: {"type": "input_file", "file_data": f"data:application/pdf;base64,{data}"},
    "gemini": lambda data: {"inlineData": {"mimeType": "application/pdf", "data": data}},
    "bedrock": lambda data: {"document": {"format": "pdf", "name": "a", "source": {"bytes": data}}},
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "object streams"])
@pytest.mark.parametrize("pages", [1, 12, 300])
def test_pages_are_counted(pages, packed):
    assert count_pages(make_pdf(pages, packed=packed)) == pages


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_document_is_read_in_both_alphabets(encode):
    assert read_media(encode(make_pdf(20)).decode(), is_gemini=False).pages == 20


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_costs_by_its_pages_not_its_letters(name):
    row = DOCUMENTS[name](as_text(make_pdf(20)))
    cost = part_tokens(Opaque(name, "file", json.dumps(row)), COUNT)
    page = GEMINI_PAGE_TOKENS if name == "gemini" else PAGE_TEXT_TOKENS
    assert 20 * page <= cost <= 20 * (page + 3_100) + 100
    twice = part_tokens(Opaque(name, "file", json.dumps([row, row])), COUNT)
    assert twice >= 2 * cost - 100


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.7\n" + NOISE,  # encrypted, or none at all
        make_pdf(0),
        b"RIFF....WAVE" + NOISE,
        b"PK\x03\x04" + NOISE,
        make_archive({"a.txt": "no office file", "b": NOISE}),
        make_archive({"word/document.xml": "<w:t>Hello.</w:t>", "b": NOISE})[:-60],
        NOISE,
    ],
)
def test_what_cannot_be_read_costs_all_that_is_sent(data):
    body = json.dumps(DOCUMENTS["anthropic"](as_text(data)))
    assert part_tokens(Opaque("anthropic", "document", body), COUNT) >= COUNT.text(body)


WORDS = " ".join(f"The boat {number} lies at the pier." for number in range(400))
OFFICE = {
    "word/document.xml": "<w:document><w:p><w:t>" + WORDS.replace(". ", ".</w:t></w:p><w:p><w:t>") + "</w:t></w:p></w:document>",
    "xl/worksheets/sheet1.xml": "<sheetData><row><c><v>" + WORDS.replace(" ", "</v></c><c><v>") + "</v></c></row></sheetData>",
    "ppt/slides/slide1.xml": f"<p:sld><a:t>{WORDS}</a:t></p:sld>",
}  # fmt: skip


@pytest.mark.parametrize(
    "data", [WORDS.encode(), *(make_archive({name: xml, "media/image1.png": NOISE}) for name, xml in OFFICE.items())]
)
def test_an_office_file_and_a_text_cost_by_their_words(data):
    row = {"type": "input_file", "file_data": f"data:application/x;base64,{as_text(data)}"}
    cost = part_tokens(Opaque("openai-responses", "input_file", json.dumps(row)), COUNT)
    assert COUNT.text(WORDS) <= cost <= 1.2 * COUNT.text(WORDS) + 60


def test_a_text_that_is_no_base64_is_counted_as_it_is():
    body = json.dumps({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": WORDS}})
    assert part_tokens(Opaque("anthropic", "document", body), COUNT) == COUNT.text(body)


def test_sound_and_film_cost_by_their_seconds():
    assert read_media(as_text(make_wave(60)), is_gemini=False).tokens == pytest.approx(60 * SOUND_TOKENS, rel=0.01)
    for head in (b"ID3\x04", b"OggS", b"fLaC", b"\xff\xfb\x90\x64"):
        assert 0 < read_media(as_text(head + NOISE), is_gemini=False).tokens < len(NOISE) // 60
    for head in (b"\0\0\0\x20ftypisom", b"\x1aE\xdf\xa3"):
        assert 0 < read_media(as_text(head + NOISE), is_gemini=True).tokens < len(NOISE) // 40
    body = json.dumps({"type": "input_audio", "input_audio": {"data": as_text(make_wave(60)), "format": "wav"}})
    assert part_tokens(Opaque("openai", "input_audio", body), COUNT) < 3_000


def test_a_document_that_a_tool_wrote_into_arguments_is_text():
    row = {"type": "server_tool_use", "name": "save", "input": {"data": as_text(make_pdf(2))}}
    body = json.dumps(row)
    assert part_tokens(Opaque("anthropic", "item", body), COUNT) >= COUNT.text(body)


def test_a_bomb_is_not_inflated_without_end():
    stream = zlib.compress(b"<</Type /Page>>" + bytes(2 * MAX_INFLATED_BYTES))
    bomb = b"5 0 obj <</Type /ObjStm /Length 9>> stream\n" + stream + b"\nendstream\n"
    assert count_pages(b"%PDF-1.7\n" + bomb * 40) < 40


@pytest.mark.parametrize("form", DOCUMENTS)
def test_a_chat_with_a_document_fits_and_says_when_the_document_is_out_of_view(form):
    data = make_pdf(4)
    document = DOCUMENTS[form](data if form == "bedrock" else as_text(data))
    words = "What is in it? Never invent numbers."
    text = {
        "openai-responses": {"type": "input_text", "text": words},
        "gemini": {"text": words},
        "bedrock": {"text": words},
    }
    parts = [document, text.get(form, {"type": "text", "text": words})]
    key = "parts" if form == "gemini" else "content"
    with AgentMemory.open(":memory:", budget=30_000, format=form) as memory:
        memory.record_messages([{"role": "user", key: parts}])
        assert memory.view().tokens < 26_000
        assert "Never invent numbers" in str(memory.to_messages())
        for number in range(30):
            memory.record_messages(
                [
                    {"role": "assistant", "content": f"Answer {number}. " + "so it is " * 60},
                    {"role": "user", "content": f"Question {number}? " + "lorem ipsum dolor " * 360},
                ],
                format="openai",
                whole=False,
            )
        request = memory.to_messages()
        assert memory.view().tokens <= 30_000
        shown = str(request)
        assert as_text(data)[:200] not in shown
        assert "Never invent numbers" in shown
        assert str(memory.expand("s0")).startswith("[")


@pytest.mark.parametrize("start", ["//main: the entry", "data: a, then ;base64,//Ex", "ID3 "])
def test_a_text_that_begins_like_a_file_is_counted_as_it_is(start):
    data = start + "\nfunc add(a int) int { return a }" * 400
    assert read_media(data, is_gemini=False) is None


def test_a_text_of_a_table_costs_as_often_as_it_is_shown():
    shown = "delivered without a remark"
    cells = '<row><c t="s"><v>0</v></c></row>' * 500
    parts = {"xl/sharedStrings.xml": f"<sst><si><t>{shown}</t></si></sst>", "xl/worksheets/sheet1.xml": cells}
    assert read_media(as_text(make_archive(parts)), is_gemini=False).text.count(shown) == 500


def test_a_large_office_file_costs_more_than_fits_and_odd_ones_take_no_time():
    started = time.process_time()
    assert (
        len(read_media(as_text(make_archive({"word/document.xml": "a " * 9_000_000})), is_gemini=False).text)
        > 8_000_000
    )
    assert read_media(as_text(make_archive({"word/document.xml": "<" * 100_000})), is_gemini=False) is not None
    assert count_pages(b"%PDF-1.7\n" + b"/Type/ObjStm>>stream\n" * 40_000) == 0
    assert time.process_time() - started < 8
