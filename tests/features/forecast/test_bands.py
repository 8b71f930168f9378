# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A band is that of published runs of the family, and wider for a step with less of its time in large products."""

from __future__ import annotations

import dataclasses

import pytest
from fabricate_forecasts import compiled

from jaxbench.catalog import hardware, targets
from jaxbench.features.forecast import bands, estimate, network, work
from jaxbench.features.forecast.bands import Range
from jaxbench.features.forecast.schedule import Times


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize("part", ["memory", "attention", "messages"])
def test_every_part_has_a_range_with_its_source(platform, part):
    found = hardware.part_range(platform, part)
    assert 0.5 < found.fastest <= 1 < found.slowest < 3
    assert "/" in found.source, "a repository, or a file of this one"


def test_a_band_reaches_as_much_further_as_the_additional_rest_may_take():
    assert bands.widened(0.9, 1.4, 0.2, Range(0.75, 2.0)) == pytest.approx((0.85, 1.6))
    assert bands.widened(0.9, 1.4, -0.2, Range(0.75, 2.0)) == (0.9, 1.4), "never narrower than that of the runs"


def test_the_rest_is_weighted_by_its_seconds():
    record = dataclasses.replace(
        compiled(8).forecast, seconds_by={"roofline": 0.5, "memory": 0.2, "kernel": 0.1}, large_s=0.4
    )
    times = Times(work_s=0.8, communication_s=0.3, scheduled_s=1.0)
    found = bands.rest_range(record, times, 1.0)
    memory, attention, messages = (hardware.part_range("gpu", part) for part in ("memory", "attention", "messages"))
    # 0.1 s of small products, which have rates of their own.
    slowest = 0.1 + 0.2 * memory.slowest + 0.1 * attention.slowest + 0.2 * messages.slowest
    assert found.slowest == pytest.approx(slowest / 0.6)
    assert bands.rest_share(record.large_s, 1.0) == pytest.approx(0.6)
    assert bands.rest_share(0.0, 1.0) == 0.0, "without products nothing is known"


@pytest.mark.parametrize("large", [0.9, 0.1])
def test_a_forecast_of_little_large_products_says_so_and_has_the_wider_band(large):
    made = compiled(8)
    record = dataclasses.replace(made.forecast, kernels=1, seconds_by={"roofline": 0.05, "memory": 0.06}, large_s=large)
    times, on = Times(work_s=1.0, communication_s=0.1, scheduled_s=1.0), work.chip(record.device_kind)
    banded, known = estimate.banded(record, times, on), hardware.forecast_band("xla")
    notes = [note for note in banded.notes if bands.WIDER in note]
    if large > 0.5:
        assert (banded.low_s, banded.high_s) == pytest.approx((known.low, known.high)) and not notes
    else:
        assert banded.high_s > known.high + 0.3 and banded.low_s <= known.low
        assert len(notes) == 1 and notes[0].startswith("90 % of the step is not large matrix products")
        assert estimate.banded(banded, times, on).notes == banded.notes, "said once, also after extrapolation"


def test_large_products_are_counted_once_per_turn_of_a_loop_and_at_their_own_rate():
    target = targets.parse("h100:8")
    made = compiled(8)
    events = tuple(dataclasses.replace(each, large_s=0.03) if hasattr(each, "how") else each for each in made.events)
    timed = estimate.timed(made.forecast, events, target, network.of(target))
    assert timed.large_s == pytest.approx(0.06)
