"""The example runs offline and with an endpoint, and says what it promises."""

import pytest
from endpoint_play import example, reads_and_answers, with_endpoint

pytestmark = pytest.mark.slow

EXAMPLE = "openai_agents_report.py"


@pytest.mark.slow
def test_the_example_answers_from_page_3():
    done = example(EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert "Page 3 was signed by Ada Ferrante-Okafor" in done.stdout


@pytest.mark.slow
def test_one_flag_runs_it_with_a_real_endpoint():
    answer = reads_and_answers("pages 1 to 12", "signed page 3")
    assert "It is Ada Ferrante-Okafor." in with_endpoint(EXAMPLE, answer)
