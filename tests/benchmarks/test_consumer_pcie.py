# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Published training on consumer GPUs against the link model."""

from __future__ import annotations

import pytest

from benchmarks import consumer_pcie


def test_the_optimizers_step_and_the_throughput_give_a_batch_of_one():
    assert consumer_pcie.batch(15.4, 4.5) == pytest.approx(1.0, abs=0.01)


def test_two_rented_gpus_are_slower_than_one_and_four_at_the_edge_of_the_band():
    two, four = consumer_pcie.language_model()
    assert two.slow < two.published < two.bare < two.hidden < 15.4
    assert two.inside and two.published / 15.4 == pytest.approx(0.29, abs=0.005)
    assert not four.inside and four.published == pytest.approx(four.hidden, rel=0.02)
    assert two.peer > two.bare


def test_small_models_lose_and_large_ones_gain():
    steps = consumer_pcie.implied_steps()
    assert [name for name, ratio, *_ in steps if ratio < 1] == ["Small CNN", "MobileNetV2"]
    assert all(0 < fast < slow for _, _, fast, slow in steps)
    assert [fast for *_, fast, _ in steps] == sorted(fast for *_, fast, _ in steps)
