# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""measure.rounds=auto: the time and the precision of its rounds, and the page's reason for the end."""

import json
from datetime import UTC, datetime, timedelta

import fabricate
import numpy as np
import pytest

from jaxbench.analysis import points, scaling, stopping
from jaxbench.analysis.intervals import LOOKED, Draws
from jaxbench.analysis.records_by_point import elapsed_s
from jaxbench.records import store
from jaxbench.records.store import RunFolder
from jaxbench.report import findings, rounds

BEGUN = datetime(2026, 11, 23, tzinfo=UTC)
QUIET, NOISY = 0.001, 0.2


def write_lines(path, lines):
    (path / store.RECORDS).write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_lines(path):
    return [json.loads(line) for line in (path / store.RECORDS).read_text().splitlines()]


def looked_at(path, noise, *, rounds=6, every_s=1.0, budget_s=60.0, most=20, devices=(1, 2), **how):
    """The folder of a run with measure.rounds=auto and two rounds per process, with records in order of time."""
    made = {"scalings": ("strong",), "rounds": rounds, "processes": rounds // 2, "noise": noise, "drift": 0.0, **how}
    fabricate.run_folder(path, devices=devices, **made)
    manifest = json.loads((path / store.MANIFEST).read_text())
    about = {"budget_s": budget_s, "rounds_each": 2, "most_rounds": most, "ended": "", "looks": []}
    manifest["plan"]["auto"] = about
    store.write_json(path / store.MANIFEST, manifest)
    lines = sorted(read_lines(path), key=lambda line: (line["kind"] == "round", line.get("round", 0)))
    for number, line in enumerate(lines):
        line["time"] = (BEGUN + timedelta(seconds=every_s * number)).isoformat()
    write_lines(path, lines)
    return RunFolder(path)


def look_of(run, ended=""):
    """A look, as in the manifest."""
    rows = scaling.analyse(points.load(run), config=run.config())
    width, point = max(stopping.half_widths(rows))
    return {"rounds": 6, "ended": ended, "half_width": width, "point": point, "spent_s": 12.0}


def timed(run):
    return [record for record in run.records() if record.kind == "round"]


def test_the_budget_is_the_time_of_rounds_and_of_what_lies_between(tmp_path):
    first, *others = timed(looked_at(tmp_path, NOISY))
    own = sum((*first.warmup_block_s, *first.block_s, *first.double_block_s))
    assert elapsed_s([first, *others]) == pytest.approx(11 + own)  # twelve rounds of two points, a second apart


def test_time_between_sessions_is_not_spent(tmp_path):
    run = looked_at(tmp_path, NOISY, session=lambda point, round: int(round >= 4))
    lines = read_lines(tmp_path)
    for line in lines:
        if line["kind"] == "round" and line["round"] >= 4:
            line["time"] = (datetime.fromisoformat(line["time"]) + timedelta(days=1)).isoformat()
    write_lines(tmp_path, lines)
    assert 10 < elapsed_s(timed(run)) < 20


def test_only_what_a_report_claims_must_be_narrow(tmp_path):
    run = looked_at(tmp_path, QUIET, devices=(1, 2, 4), cores=2)
    rows = scaling.analyse(points.load(run), config=run.config())
    assert [name for _, name in stopping.half_widths(rows)] == ["shard_map/strong/2"]


def test_the_intervals_of_a_run_that_looked_are_wider():
    samples, owners = 1 + 0.02 * np.random.default_rng(0).standard_normal(6), np.arange(6)
    workers = [(unit, str(unit // 2)) for unit in range(6)]
    fixed, looked = (Draws(range(6), workers, looked=each).centre(samples, owners, range(6)) for each in (False, True))
    assert fixed[0] == looked[0]
    assert np.log(looked[1] / looked[0]) == pytest.approx(LOOKED * np.log(fixed[1] / fixed[0]))


def test_the_page_says_what_ended_it(tmp_path):
    run = looked_at(tmp_path, NOISY, budget_s=12.0, scalings=("strong", "weak"))
    manifest, found = run.manifest(), look_of(run, "budget")
    manifest["plan"]["auto"].update(ended="budget", looks=[found])
    store.write_json(tmp_path / store.MANIFEST, manifest)
    (section,) = [part for part in findings.find(run).sections() if part.heading == "Rounds"]
    text = " ".join(section.sentences)
    assert "Stopped after 6 rounds in 3 processes, because its budget of 12 s for rounds is spent: shard_map/" in text
    assert f"± {100 * found['half_width']:.1f} points, not to ± 3 points" in text
    assert "the A/A spread (same program measured twice) is up to" in text and "--config.measure.budget_s" in text


def ended(path, noise, **changes):
    """The folder of this run after a look, with changes to the end in its manifest; and the resulting sentence."""
    run = looked_at(path, noise)
    manifest = run.manifest()
    manifest["plan"]["auto"] |= {"ended": "precise", "looks": [look_of(run, "precise")], **changes}
    rows = scaling.analyse(points.load(run), config=run.config())
    return rounds.sentences(manifest, [row.point for row in rows], rows=rows)


def test_a_run_that_was_stopped_by_hand_is_no_precise_one(tmp_path):
    """Looking after each round and stopping at a favourable number gives an interval without coverage."""
    assert ended(tmp_path / "quiet", QUIET)[0].startswith("Ended after 6 rounds in 3 processes, because every interval")
    (said,) = ended(tmp_path / "noisy", NOISY)
    assert said.startswith("Stopped by hand and not by its own rule: it claims that every interval is within ± 3")
    other = {"rounds": 8, "ended": "precise", "half_width": 0.01, "point": "p", "spent_s": 1.0}
    (said,) = ended(tmp_path / "longer", QUIET, looks=[other])
    assert "its last look was after 8 rounds, but it has 6" in said
