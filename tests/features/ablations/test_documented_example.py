# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The first examples of docs/metrics/waterfall.md are what the code prints."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import fabricate_losses
from fabricate_losses import Loss

from jaxbench.analysis import loss_sentences, points, run_rows, waterfall
from jaxbench.core.store import RunFolder

PAGE = (Path(__file__).parents[3] / "docs" / "metrics" / "waterfall.md").read_text()
TWO = "shard_map/strong/2"


def printed(folder: Path, loss: Loss, others: float) -> str:
    """The sentences of a run in which other processes took this share of the CPUs in all rounds of two devices."""
    run = RunFolder(fabricate_losses.folder(folder, {2: loss}, rounds=30, noise=0.01))
    rows = []
    for row in run_rows.analyse(points.load(run), config=run.config()):
        if row.point_id == TWO:
            rounds = [
                dataclasses.replace(
                    each, cpus=2, cpu_s=tuple(walls), others_s=tuple(2 * others * s for s in walls), steal_s=()
                )
                for each in row.point.rounds
                for walls in [(*each.block_s, *each.double_block_s)]
            ]
            row = dataclasses.replace(row, point=dataclasses.replace(row.point, rounds=tuple(rounds)))
        rows.append(row)
    found = waterfall.find(rows)
    said = [*loss_sentences.sentences(found), *loss_sentences.withheld(waterfall.withheld(rows))]
    return "\n".join([*said, *loss_sentences.advice(found)])


def test_the_first_examples_are_printed(tmp_path: Path) -> None:
    examples = re.findall(r"```\n(.*?)\n```", PAGE, re.DOTALL)[:2]
    unequal = printed(tmp_path / "unequal", Loss(unequal=0.75, machine=0.99, communication=0.95), 0.0)
    busy = printed(tmp_path / "busy", Loss(machine=0.5, communication=0.95), 0.44)
    assert [" ".join(each.split()) for each in examples] == [" ".join(each.split()) for each in (unequal, busy)]
