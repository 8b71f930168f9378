# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Three or more processes are resampled; with fewer, the variance between processes is added to every interval."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import fabricate
import pytest

from jaxbench.analysis import points, scaling, spread
from jaxbench.analysis.spread import ASSUMED, Spread
from jaxbench.errors import UserError
from jaxbench.records import documents
from jaxbench.records.store import RunFolder

CALIBRATED = Spread(sd=0.02, df=7, source="calibrated")


def analyse(path: Path, **facts: Any) -> dict[str, scaling.Row]:
    run = RunFolder(fabricate.run_folder(path, **facts))
    return {row.point.point: row for row in scaling.analyse(points.load(run), config=run.config())}


@pytest.mark.parametrize(
    ("processes", "known", "rests_on"),
    [(1, ASSUMED, "rounds + assumed"), (2, CALIBRATED, "rounds + calibrated"), (3, CALIBRATED, "processes")],
)
def test_an_interval_says_what_it_rests_on(tmp_path: Path, processes: int, known: Spread, rests_on: str) -> None:
    run = RunFolder(fabricate.run_folder(tmp_path, rounds=6, processes=processes))
    row = scaling.analyse(points.load(run), config={}, spread=known)[1]
    assert (row.timing.processes, row.timing.rests_on) == (processes, rests_on)
    assert (row.timing.inside.step_s == row.timing.step_s) is (processes == 3)


def test_one_process_is_less_certain_than_its_rounds(tmp_path: Path) -> None:
    """Its interval was as narrow as with as many processes; for effects of 3 %, resampled rounds covered 30 %."""
    one, many = (analyse(tmp_path / str(n), rounds=6, processes=n, noise=0.002)["shard_map/strong/2"] for n in (1, 6))
    wide, narrow = (row.speedup.hi / row.speedup.lo for row in (one, many))
    assert wide > 1.15 and narrow < 1.05
    assert one.timing.clock_ratio.hi - one.timing.clock_ratio.lo < 0.1, "both clocks are of one process"


def test_images_a_second_and_speedup_agree(tmp_path: Path) -> None:
    """One was a ratio of totals, the other a ratio of medians: a page showed both 1.26 and 1.15."""
    rows = analyse(tmp_path, rounds=6, processes=3, noise=0.3)
    base, row = rows["shard_map/strong/1"], rows["shard_map/strong/2"]
    assert row.timing.examples_per_s.value == pytest.approx(256 / row.timing.step_s.value)
    ratio = row.timing.examples_per_s.value / base.timing.examples_per_s.value
    assert row.speedup.value == pytest.approx(ratio)


def test_a_spread_that_was_kept_with_a_run_is_read(tmp_path: Path) -> None:
    assert spread.read(tmp_path) is ASSUMED
    (tmp_path / spread.NAME).write_text(json.dumps(dataclasses.asdict(CALIBRATED)))
    assert spread.read(tmp_path) == CALIBRATED
    (tmp_path / spread.NAME).write_text(json.dumps({**dataclasses.asdict(CALIBRATED), "sd": -1}))
    with pytest.raises(UserError, match="is damaged"):
        spread.read(tmp_path)


def test_an_edited_spread_makes_no_narrower_interval(tmp_path: Path) -> None:
    held = dataclasses.asdict(CALIBRATED)
    path = tmp_path / spread.NAME
    path.write_text(json.dumps({**held, "sha256": documents.digest(held)}))
    assert spread.read(tmp_path) == CALIBRATED
    path.write_text(json.dumps({**held, "sd": 1e-6, "sha256": documents.digest(held)}))
    with pytest.raises(UserError, match="its numbers were changed after it was written"):
        spread.read(tmp_path)
