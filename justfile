# `just` formats, lints, checks types and runs the quick tests. `just --list` shows the rest.

default: format lint types test

# Install the package with everything its tests need.
setup:
    pip install -e '.[dev]'

format:
    ruff format .

lint:
    ruff check --fix .

types:
    mypy

# What a user's editor sees, by the other type checker. Needs pip install 'pyright[nodejs]'.
pyright:
    pyright

# Quick tests: no server, no soak, three parameters of each test and ten generated examples. `just test-all` has the rest.
test *arguments:
    pytest -m "not slow and not server" {{arguments}}

# Every test, as CI runs them.
test-all *arguments:
    pytest {{arguments}}

# Long runs of the same tests: thousands of histories, many kills, a real model. An hour and more.
soak:
    PAGEIN_PROFILE=nightly pytest tests/promises tests/log
    pytest benchmarks/soak
    python -m benchmarks crash --kills 1000
    python -m benchmarks server-crash --kills 300

# Claude Code, Codex and opencode through the proxy: pinned versions from npm, skipped loudly where it is not reached.
clients:
    pytest -rs -n 0 benchmarks/soak/test_clients.py

# The inspector's pages in Chromium, which this installs where there is none. No test may be skipped but the screenshots.
browser:
    #!/usr/bin/env bash
    set -euo pipefail
    command -v chromium || command -v google-chrome || { apt-get update && apt-get install -y chromium; }
    pip install -q 'playwright>=1.50'
    tests=$(pytest -rs -n 0 tests/server/test_inspector_pages.py | tee /dev/stderr)
    ! grep -q 'SKIPPED: ' <<< "$tests"

# What the shape test counts: names, docstrings, sizes, files entered.
shape:
    python -m tests._support.shape

# The site in site/, with links checked. Offline: no page loads anything from elsewhere. Needs pip install -e '.[docs]'.
docs:
    NO_MKDOCS_2_WARNING=1 mkdocs build --strict

# The sdist and the wheel in dist/, checked. Needs pip install build twine.
package:
    python -m build
    twine check --strict dist/*

# What CI runs, in a fresh virtual environment.
ci:
    .ci/run
