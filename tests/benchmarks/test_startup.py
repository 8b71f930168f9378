# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What the benchmark of cold and warm starts makes of its pairs, and one pair of the smallest run."""

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import startup
from benchmarks.startup import Started


def pairs(*ratios: float, compiled: int = 0) -> list[dict[str, Started]]:
    cold = Started(seconds=60.0, preparation_s=40.0, compiled=20, loaded=0)
    return [
        {"cold": cold, "warm": Started(seconds=30.0, preparation_s=40.0 * each, compiled=compiled, loaded=20)}
        for each in ratios
    ]


def test_the_goals_are_half_of_the_preparation_and_no_compilation():
    rng = np.random.default_rng(0)
    assert startup.missed(pairs(0.3, 0.4, 0.5), rng) == []
    (slow,) = startup.missed(pairs(0.5, 0.6, 0.7), rng)
    assert slow.startswith("A warm preparation takes 0.6 [0.5, 0.7] of a cold one")
    assert startup.missed(pairs(0.3, compiled=2), rng) == ["A warm run compiled 2 programs."]


def test_the_table_has_the_median_of_the_ratios_within_pairs(capsys):
    Console(width=120).print(startup.table(pairs(0.3, 0.5, 0.4), np.random.default_rng(0)))
    shown = capsys.readouterr().out
    assert "3 pairs" in shown and "0.4 [0.3, 0.5]" in shown and "0.5 [0.5, 0.5]" in shown


def test_pairs_of_other_words_stay_apart(tmp_path: Path):
    (tmp_path / "pairs.json").write_text(json.dumps({"words": ["gpt"], "pairs": []}))
    with pytest.raises(SystemExit, match="has runs of gpt: choose another --workdir"):
        startup.pairs_of(["cnn"], 1, tmp_path, Console(quiet=True))


@pytest.mark.full
def test_a_warm_run_loads_what_the_first_one_has_compiled(tmp_path: Path):
    words = ["mlp", *startup.SHORT, "--config.mesh.devices=1", "--share_machine"]
    (pair,) = startup.pairs_of(words, 1, tmp_path, Console(quiet=True))
    cold, warm = pair["cold"], pair["warm"]
    assert warm.compiled == 0 and warm.loaded == cold.compiled + cold.loaded and cold.compiled > 0
    assert startup.pairs_of(words, 1, tmp_path, Console(quiet=True)) == [pair], "it is kept"
