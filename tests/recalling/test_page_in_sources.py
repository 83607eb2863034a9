"""The sources of a page-in: what a request's row says of the text that it had."""

from pagein.context.page_in.sources import has_checksum, text_checksum


def test_checksums_tell_the_passages_of_a_long_step_apart():
    # Of 16 bits two of these were equal, and a request was made again with the other passage.
    rows = [f"{number}: look TypeError: src/app/main.py look the {number * 37}" for number in range(424)]
    texts = ["\n".join(rows[start : start + 24]) for start in range(400)]
    assert len({text_checksum(text) for text in texts}) == len(texts)
    assert all(has_checksum(text, text_checksum(text)) for text in texts)


def test_a_row_with_a_shorter_checksum_is_read():
    assert has_checksum("a passage", text_checksum("a passage") & 0xFFFF)
    assert not has_checksum("another", text_checksum("a passage") & 0xFFFF)
