"""Fit the likelihood that a sentence binds, and measure it on sentences that were held back.

``python -m benchmarks.ledger`` prints the measure; ``--write`` stores the weights in the package.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import pagein.context.ledger
from pagein.context.ledger.likelihood import BIAS, MIN_LIKELIHOOD, sentence_features
from pagein.context.ledger.statements import find_statements

HERE = Path(__file__).parent
WEIGHTS = Path(pagein.context.ledger.__file__).with_name("likelihood.json")
FOLDS = 10
MIN_COUNT = 2
"""Sentences that a feature must be in."""


def read_sentences(name: str) -> list[str]:
    """Return the sentences of a file, without its headings."""
    lines = (HERE / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit the model; print the shares that it takes of sentences that it was not fitted on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the weights in the package")
    options = parser.parse_args(arguments)
    binding, talk, fresh = map(read_sentences, ("binding.txt", "talk.txt", "held_back.txt"))
    features = [set(sentence_features(sentence)) for sentence in (*binding, *talk)]
    counts = Counter(feature for sentence in features for feature in sentence)
    rows = [{name: 1 for name in sentence if counts[name] >= MIN_COUNT} for sentence in features]
    vectorizer, model = DictVectorizer(), LogisticRegression(class_weight="balanced", max_iter=3_000)
    matrix, labels = vectorizer.fit_transform(rows), np.array([1] * len(binding) + [0] * len(talk))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=1)
    likely = cross_val_predict(model, matrix, labels, cv=folds, method="predict_proba")[:, 1] > MIN_LIKELIHOOD
    model.fit(matrix, labels)
    unseen = vectorizer.transform([dict.fromkeys(sentence_features(sentence), 1) for sentence in fresh])
    likely_fresh = model.predict_proba(unseen)[:, 1] > MIN_LIKELIHOOD
    by_rules, fresh_by_rules = _by_rules((*binding, *talk)), _by_rules(fresh)
    for name, rules, model_takes in (
        ("binding, in folds", by_rules[labels == 1], likely[labels == 1]),
        ("binding, held back", fresh_by_rules, likely_fresh),
        ("small talk, in folds", by_rules[labels == 0], likely[labels == 0]),
    ):
        sys.stdout.write(
            f"{name:<22} n {len(rules):>4}   rules {rules.mean():.2f}   rules or model {(rules | model_takes).mean():.2f}\n"
        )
    if options.write:
        names = vectorizer.get_feature_names_out()
        weights = {name: round(float(weight), 2) for name, weight in zip(names, model.coef_[0], strict=True)}
        weights[BIAS] = round(float(model.intercept_[0]), 2)
        WEIGHTS.write_text(json.dumps(weights, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
    return 0


def _by_rules(sentences: Iterable[str]) -> np.typing.NDArray[np.bool_]:
    """Return which sentences the patterns take."""
    statements = (find_statements(sentence, "user") for sentence in sentences)
    return np.array([any(item.likelihood == 1 for item in statement_list) for statement_list in statements])


if __name__ == "__main__":
    sys.exit(main())
