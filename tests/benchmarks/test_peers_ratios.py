# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The best of several peers is chosen in one half of the rounds and measured in the other."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.ratios import DRAWS, Ratio, best_over, geometric_mean


def test_the_choice_and_its_ratio_come_from_different_rounds() -> None:
    suite = np.ones(6)
    first = np.array([1.0, 9.0, 1.0, 8.0, 1.0, 7.0])  # fast only in the rounds that select
    second = np.array([2.0, 3.0, 2.0, 3.0, 2.0, 3.0])
    ratio = best_over({"suite": suite}, {"first": first, "second": second}, np.random.default_rng(0))
    assert (ratio.best, ratio.middle, ratio.rounds) == ("first", 8.0, 3)


def test_the_best_of_equal_peers_has_no_advantage() -> None:
    random, found = np.random.default_rng(0), []
    for _ in range(200):
        suite, *peers = 1 + 0.2 * random.standard_normal((6, 10)).clip(-2, 2)
        found.append(best_over({"suite": suite}, {str(i): peer for i, peer in enumerate(peers)}, random).middle)
    assert abs(np.mean(found) - 1) < 0.03  # chosen and measured in all rounds: 0.93


def test_the_best_form_of_the_suite_is_chosen_in_the_same_way() -> None:
    lucky, steady = np.array([1.0, 9.0, 1.0, 9.0]), np.array([2.0, 2.0, 2.0, 2.0])
    ratio = best_over({"lucky": lucky, "steady": steady}, {"peer": np.full(4, 3.0)}, np.random.default_rng(0))
    assert (ratio.ours, ratio.middle) == ("lucky", 3.0 / 9.0)
    random, found = np.random.default_rng(0), []
    for _ in range(200):
        peer, *ours = 1 + 0.2 * random.standard_normal((6, 10)).clip(-2, 2)
        found.append(best_over({str(i): own for i, own in enumerate(ours)}, {"peer": peer}, random).middle)
    assert abs(np.mean(found) - 1) < 0.04


def test_a_factor_common_to_a_round_cancels() -> None:
    drift = np.exp(np.random.default_rng(0).normal(0, 1, 40))
    ratio = best_over({"suite": drift}, {"a": 3 * drift, "b": 2 * drift}, np.random.default_rng(1))
    assert ratio.best == "b" and np.isclose(ratio.middle, 2)
    assert np.isclose(ratio.interval()[1], 2)


def test_the_interval_holds_the_truth() -> None:
    random, held = np.random.default_rng(0), 0
    for _ in range(200):
        suite, peer = np.exp(0.1 * random.standard_normal((2, 30)))
        low, high = best_over({"suite": suite}, {"peer": 1.5 * peer}, random).interval()
        held += low <= 1.5 <= high
    assert held >= 180


def test_geometric_mean() -> None:
    four, quarter = (Ratio("a", "", x, np.full(DRAWS, x), rounds) for x, rounds in ((4.0, 15), (0.25, 12)))
    mean = geometric_mean([four, quarter])
    assert np.isclose(mean.middle, 1) and np.allclose(mean.interval(), 1) and mean.rounds == 12
