"""Fit the likelihoods that a sentence binds and that its breach does harm, and measure them on others.

``python -m benchmarks.ledger`` prints the measure; ``--write`` stores the weights in the package.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import pagein.context.ledger
from pagein.context.ledger.likelihood import BIAS, MIN_HARM_LIKELIHOOD, MIN_LIKELIHOOD, sentence_features
from pagein.context.ledger.statements import find_statements

HERE = Path(__file__).parent
WEIGHTS = Path(pagein.context.ledger.__file__).with_name("likelihood.txt")
FOLDS = 10
MIN_COUNT = 3
"""Sentences that a feature must be in."""
MIN_WEIGHT = 0.1
"""Weight below which a feature is left out of the package."""


def read_sentences(name: str) -> list[str]:
    """Return the sentences of a file, without its headings."""
    lines = (HERE / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


class FittedModel:
    """A logistic model that tells some sentences from others, with the likelihood of each in folds without it."""

    def __init__(self, sentences: Sequence[str], labels: Sequence[bool], *, has_pairs: bool) -> None:
        """Fit the model on the sentences; the label is True for those to be found.

        Without pairs of words, single words and the types of values are its features.
        """
        self._has_pairs = has_pairs
        features = [self._features(sentence) for sentence in sentences]
        counts = Counter(feature for sentence in features for feature in sentence)
        rows = [{name: 1 for name in sentence if counts[name] >= MIN_COUNT} for sentence in features]
        self._vectorizer = DictVectorizer()
        self._model = LogisticRegression(class_weight="balanced", max_iter=3_000)
        matrix, truth = self._vectorizer.fit_transform(rows), np.array(labels)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=1)
        predicted = cross_val_predict(self._model, matrix, truth, cv=folds, method="predict_proba")
        self.in_folds: np.typing.NDArray[np.float64] = predicted[:, 1]
        self._model.fit(matrix, truth)

    def predict(self, sentences: Iterable[str]) -> np.typing.NDArray[np.float64]:
        """Return the likelihoods of sentences that the model was not fitted on."""
        rows = [dict.fromkeys(self._features(sentence), 1) for sentence in sentences]
        likelihoods: np.typing.NDArray[np.float64] = self._model.predict_proba(self._vectorizer.transform(rows))[:, 1]
        return likelihoods

    def _features(self, sentence: str) -> set[str]:
        return {name for name in sentence_features(sentence) if self._has_pairs or " " not in name}

    def weights(self) -> dict[str, float]:
        """Return the weights of the features, with that of every sentence as ``BIAS``."""
        pairs = zip(self._vectorizer.get_feature_names_out(), self._model.coef_[0], strict=True)
        weights = {name: round(float(weight), 1) for name, weight in pairs if abs(weight) >= MIN_WEIGHT}
        return {**weights, BIAS: round(float(self._model.intercept_[0]), 1)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit the two models; print the shares that they take of sentences that they were not fitted on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the weights in the package")
    options = parser.parse_args(arguments)
    files = ("safety.txt", "binding.txt", "talk.txt", "held_back.txt")
    safety, binding, talk, fresh = map(read_sentences, files)
    sentences = (*safety, *binding, *talk)
    does_bind = [number < len(safety) + len(binding) for number in range(len(sentences))]
    binds = FittedModel(sentences, does_bind, has_pairs=True)
    harms = FittedModel(sentences, [number < len(safety) for number in range(len(sentences))], has_pairs=False)
    likely, likely_fresh = binds.in_folds >= MIN_LIKELIHOOD, binds.predict(fresh) >= MIN_LIKELIHOOD
    harmful = harms.in_folds >= MIN_HARM_LIKELIHOOD
    by_rules, fresh_by_rules = _by_rules(sentences), _by_rules(fresh)
    is_binding = np.array(does_bind)
    for name, rules, model_takes in (
        ("binding, in folds", by_rules[is_binding], likely[is_binding]),
        ("binding, held back", fresh_by_rules, likely_fresh),
        ("small talk, in folds", by_rules[~is_binding], likely[~is_binding]),
    ):
        either = (rules | model_takes).mean()
        sys.stdout.write(f"{name:<22} n {len(rules):>4}   rules {rules.mean():.2f}   rules or model {either:.2f}\n")
    for name, part in (("safety", slice(len(safety))), ("other binding", slice(len(safety), int(is_binding.sum())))):
        taken = harmful[part]
        sys.stdout.write(f"{name + ', in folds':<22} n {len(taken):>4}   taken for safety {taken.mean():.2f}\n")
    if options.write:
        WEIGHTS.write_text(_lines(binds.weights(), harms.weights()), "utf-8")
    return 0


def _lines(*models: Mapping[str, float]) -> str:
    """Return a line for all features of equal weights: the weights of each model, then the features."""
    rows: dict[tuple[float, ...], list[str]] = {}
    for feature in sorted(set().union(*models)):
        rows.setdefault(tuple(model.get(feature, 0.0) for model in models), []).append(feature)
    return "".join("\t".join((*(f"{weight:g}" for weight in key), *rows[key])) + "\n" for key in sorted(rows))


def _by_rules(sentences: Iterable[str]) -> np.typing.NDArray[np.bool_]:
    """Return which sentences the patterns take."""
    statements = (find_statements(sentence, "user") for sentence in sentences)
    return np.array([any(item.likelihood == 1 for item in statement_list) for statement_list in statements])


if __name__ == "__main__":
    sys.exit(main())
