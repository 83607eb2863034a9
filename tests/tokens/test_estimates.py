"""The estimates lean upwards by a stated margin, on every kind of text."""

from __future__ import annotations

import pytest

from pagein.events.steps import Image
from pagein.testing.counters import png
from pagein.tokens.encodings import ENCODINGS, Encoding
from pagein.tokens.estimates import (
    ANY_ESTIMATE,
    CLAUDE_3,
    CLAUDE_4_7,
    GEMINI_2_ESTIMATE,
    GEMINI_3_ESTIMATE,
    classify_token,
)

# Texts of ours, with what they cost on Claude before 4.7 and from 4.7 on: the counts of ctok 1.3.0, a reconstruction of
# both vocabularies from the answers of Anthropic's counter. One or two sentences each, so the figures are coarse.
TEXTS = {
    "prose": ("The migration finished at noon, but two of the workers kept writing to the old table; we noticed only because the nightly report was short by eleven rows.", 32, 44),
    "german": ("Die Datenbankumstellung wurde gegen Mittag abgeschlossen, allerdings schrieben zwei Arbeitsprozesse weiterhin in die alte Tabelle.", 39, 65),
    "python": ("def retry(call, times=3, *, wait=0.5):\n    for attempt in range(times):\n        try:\n            return call()\n        except TimeoutError as error:\n            log.warning('attempt %d of %d: %s', attempt + 1, times, error)\n            time.sleep(wait * 2 ** attempt)\n    raise GaveUp(times)\n", 92, 113),
    "json": ('{"id": "call_8f3a", "type": "function", "function": {"name": "read_file", "arguments": {"path": "src/app/settings.py", "start": 120, "end": 164}}, "ok": true, "took_ms": 41.7}', 71, 80),
    "log": ("2026-11-21T03:51:07.412Z ERROR [worker-17] request_id=5f1c09ab77e2 POST /api/v2/orders/88123 500 1284ms retry=2/3\n2026-11-21T03:51:08.001Z INFO [worker-17] reconnected to 10.0.14.7:5432\n", 94, 109),
    "diff": ("--- a/src/app/settings.py\n+++ b/src/app/settings.py\n@@ -41,7 +41,9 @@ def load():\n-    url = os.environ['DATABASE_URL']\n+    url = os.environ.get('DATABASE_URL')\n+    if not url:\n+        raise SettingsError('DATABASE_URL is empty')\n     return Settings(url=url)\n", 99, 127),
    "markdown": ("## Results\n\n| run | passed | failed | time |\n|---|--:|--:|--:|\n| main | 412 | 3 | 18.4 s |\n| branch | 415 | 0 | 17.9 s |\n\n* **Fixed**: the flaky `test_reconnect` (see #231)\n* *Open*: [timeouts](https://example.org/issues/88)\n", 98, 117),
    "chinese": ("数据库迁移在中午完成，但有两个工作进程仍在写入旧表。我们之所以注意到，是因为夜间报告少了十一行。", 53, 52),
    "japanese": ("データベースの移行は正午に終わりましたが、二つのワーカーが古いテーブルに書き込み続けていました。", 41, 41),
    "korean": ("데이터베이스 이전은 정오에 끝났지만 작업자 두 개가 계속 이전 테이블에 쓰고 있었습니다.", 53, 52),
    "russian": ("Перенос базы данных завершился в полдень, но два рабочих процесса продолжали писать в старую таблицу.", 39, 39),
    "arabic": ("انتهى نقل قاعدة البيانات عند الظهر، لكن عمليتين استمرتا في الكتابة إلى الجدول القديم.", 53, 53),
    "hindi": ("डेटाबेस का स्थानांतरण दोपहर में पूरा हुआ, लेकिन दो प्रक्रियाएँ पुरानी तालिका में लिखती रहीं।", 68, 68),
    "thai": ("การย้ายฐานข้อมูลเสร็จสิ้นตอนเที่ยง แต่ยังมีสองกระบวนการที่เขียนลงในตารางเก่า", 65, 65),
    "emoji": ("Deployed! 🚀🎉 All green ✅✅ except the 🐛 in staging 😅👍🏽 — fixing it tonight 🌙", 45, 52),
    "base64": ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", 70, 86),
    "hex": ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 36, 40),
    "capitals": ("WARNING: DATABASE_URL IS EMPTY. THE SERVICE WILL NOT START UNTIL IT IS SET. SEE THE RUNBOOK.", 28, 60),
}  # fmt: skip
KINDS = sorted(TEXTS)


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_text_is_far_under_and_none_far_over(kind):
    text, old, new = TEXTS[kind]
    for counter, true in ((CLAUDE_3, old), (CLAUDE_4_7, new)):
        floor = 0.65 if kind == "german" else 1 - counter.margin  # one sentence, all compounds
        assert floor * true <= counter.text(text) <= (1 + counter.margin) * true * 1.15


@pytest.mark.parametrize(("counter", "at"), [(CLAUDE_3, 1), (CLAUDE_4_7, 2)])
def test_all_texts_together_are_over_and_within_the_margin(counter, at):
    true = sum(row[at] for row in TEXTS.values())
    assert true <= sum(counter.text(row[0]) for row in TEXTS.values()) <= (1 + counter.margin) * true


@pytest.mark.parametrize("encoding", sorted({*ENCODINGS} - {"llama2", "mistral_v1", "mistral_v2"}))
def test_the_estimate_for_any_model_is_never_far_under_any_vocabulary(encoding):
    for kind, (text, *_) in TEXTS.items():
        assert ANY_ESTIMATE.text(text) >= 0.85 * Encoding(encoding).text(text), kind
    assert sum(ANY_ESTIMATE.text(row[0]) for row in TEXTS.values()) >= sum(
        Encoding(encoding).text(row[0]) for row in TEXTS.values()
    )


def test_the_new_claude_costs_more_than_the_old_where_it_does():
    for kind in ("prose", "german", "python", "capitals"):
        assert CLAUDE_4_7.text(TEXTS[kind][0]) > 1.15 * CLAUDE_3.text(TEXTS[kind][0])
    for kind in ("chinese", "russian", "hindi"):
        assert CLAUDE_4_7.text(TEXTS[kind][0]) == pytest.approx(CLAUDE_3.text(TEXTS[kind][0]), rel=0.05)


def test_digits_are_not_cheap_for_a_model_that_counts_them_one_by_one():
    assert GEMINI_3_ESTIMATE.text("1234567890" * 20) >= 200
    assert ANY_ESTIMATE.text("1234567890" * 20) >= 200


def test_gemini_is_gemmas_count_and_five_percent():
    for text, *_ in TEXTS.values():  # counted with Gemma 4's vocabulary, which is the same and faster
        assert Encoding("gemma3").text(text) == Encoding("gemma4").text(text)
    text = TEXTS["prose"][0]
    assert GEMINI_2_ESTIMATE.text(text) == -(-Encoding("gemma3").text(text) * 105 // 100)
    assert GEMINI_2_ESTIMATE.image(Image(png(100, 100))) == 258


def test_an_estimate_says_so():
    for counter in (CLAUDE_3, CLAUDE_4_7, GEMINI_2_ESTIMATE, GEMINI_3_ESTIMATE, ANY_ESTIMATE):
        assert "estimate" in counter.name
        assert counter.margin > 0


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (b" hello", ("word", 5)), (b"hello", ("inner", 5)), (b" HTTP", ("capitals", 4)), (b"A", ("inner", 1)),
        (b"042", ("digits", 3)), (b"x86", ("mixed", 3)), (b"());", ("marks", 4)), (b"    ", ("spaces", 4)),
        (b"\n\n", ("lines", 1)), (b" \n", ("lines", 1)), ("überall".encode(), ("latin", 7)), (" при".encode(), ("eastern", 3)),
        ("שלום".encode(), ("semitic", 4)), ("नम".encode(), ("indic", 2)), ("แมว".encode(), ("southeast", 3)),
        ("한국".encode(), ("hangul", 2)), ("你好".encode(), ("han", 2)), ("ねこ".encode(), ("han", 2)),
        ("，".encode(), ("han", 1)), ("😀".encode(), ("emoji", 1)), ("—".encode(), ("symbols", 1)),
        ("ⴰ".encode(), ("symbols", 1)), ("ꦲ".encode(), ("other", 1)), (b"\xe4\xbd", ("bytes", 1)), (b"", ("spaces", 0)),
    ],
)  # fmt: skip
def test_a_token_is_of_the_class_of_what_it_is_made_of(token, kind):
    assert classify_token(token) == kind
