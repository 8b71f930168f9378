# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Which points the next rounds visit, which rounds count, when a run ends by itself, and what the page says of it."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from datetime import UTC, datetime, timedelta

import fabricate
import numpy as np
import pytest

from jaxbench.analysis import gates, headline, points, run_rows
from jaxbench.core import store
from jaxbench.core.schema import FailureRecord, RoundRecord
from jaxbench.core.store import RunFolder
from jaxbench.report import run_report, sentences
from jaxbench.statistics import looks, timing, turns
from jaxbench.statistics.bootstrap import OPTIONAL_STOPPING, BootstrapSamples
from jaxbench.statistics.timing import elapsed_s

BEGUN = datetime(2026, 11, 25, tzinfo=UTC)
WHOLE = ("jit_auto/strong/1", "jit_auto/strong/2", "jit_auto/weak/1", "jit_auto/weak/2")
PARTS = ("jit_auto/strong/2/alone", "jit_auto/strong/2/local")
OVERSUBSCRIBED = "jit_auto/strong/4"


def planned(names, budget_s=60.0):
    """The plan of these points, and of one that shares cores."""
    points = []
    for name in (*names, OVERSUBSCRIBED):
        strategy, scaling, devices, *part = name.split("/")
        explains = name.rpartition("/")[0] if part else ""
        points.append({
            "point": name, "strategy": strategy, "scaling": scaling, "devices": int(devices), "arm": "",
            "global_batch": 64 * (int(devices) if scaling == "weak" else 1), "explains": explains,
            "oversubscribed": name == OVERSUBSCRIBED,
        })  # fmt: skip
    return {"points": points, "auto": {"budget_s": budget_s}}


def measured(names, rounds, noise, *, sets=4, first=0, every_s=1.0, seed=0):
    """The records of rounds that visit all of these points. noise: standard deviation of the logarithm of each."""
    random, made = np.random.default_rng(seed), []
    for r in range(first, first + rounds):
        for name in names:
            seconds = 0.1 * math.exp(noise.get(name, 0.01) * random.standard_normal())
            worker = f"session0/cpu{name.split('/')[2]}#{r % sets}"
            when = (BEGUN + timedelta(seconds=every_s * r)).isoformat()
            made.append(RoundRecord(
                point=name, round=r, steps=1, block_s=(seconds,), double_block_s=(), warmup_block_s=(), settled=True,
                compilations=0, worker=worker, time=when,
            ))  # fmt: skip
    return made


def look(names, records, budget_s=60.0, platform="", **how):
    return looks.look({**planned(names, budget_s), "platform": platform}, records, sets=4, **how)


def test_the_first_rounds_visit_everything_but_what_shares_cores():
    found = look((*WHOLE, *PARTS), [])
    assert (found.ended, found.visits) == ("", (*WHOLE, *PARTS))
    assert math.isinf(found.half_width) and found.spent_s == 0


def test_a_quiet_run_ends_when_it_has_enough_rounds():
    names = (*WHOLE, *PARTS)
    early = look(names, measured(names, 16, {}))
    assert early.half_width < looks.HALF_WIDTH and early.ended == "" and set(early.visits) == set(WHOLE)
    late = look(names, measured(names, 32, {}))
    assert (late.ended, late.visits) == ("precise", ())
    assert late.to_json()["half_width"] == round(late.half_width, 5) and late.to_json()["rounds"] == 32


def test_the_widest_claim_gets_the_next_rounds():
    found = look(WHOLE, measured(WHOLE, 40, {"jit_auto/weak/2": 0.3}))
    assert found.ended == "" and found.claims[0].point == "jit_auto/weak/2"
    assert found.visits == ("jit_auto/weak/1", "jit_auto/weak/2")


def test_claims_that_are_almost_as_wide_are_narrowed_together():
    """With twice the devices and the same time the efficiency is a half, and so is the width of its interval."""
    found = look(WHOLE, measured(WHOLE, 40, {"jit_auto/weak/2": 0.2, "jit_auto/strong/2": 0.4}))
    assert set(found.visits) == set(WHOLE)


def test_the_budget_ends_a_noisy_run_before_the_rounds_that_would_exceed_it():
    records = measured(WHOLE, 40, {"jit_auto/weak/2": 0.3})
    assert look(WHOLE, records, budget_s=42.0).ended == "budget"
    assert look(WHOLE, records, budget_s=44.5).ended == ""


def test_points_that_explain_others_get_what_their_factor_needs():
    """One factor is resolved after a few rounds; one indistinguishable from 1 gets every third round until then."""
    names, noise = (*WHOLE, *PARTS), {"jit_auto/strong/2": 0.3, PARTS[0]: 0.3, PARTS[1]: 0.01}
    few = look(names, measured(WHOLE, 32, noise) + measured(PARTS, 8, noise, first=4))
    assert PARTS[0] in few.visits and PARTS[1] in few.visits  # no interval excludes 1
    quiet = {"jit_auto/weak/2": 0.3}
    resolved = look(names, measured(WHOLE, 40, quiet) + measured(PARTS, 8, quiet, first=4))
    assert not set(PARTS) & set(resolved.visits)


def test_a_run_goes_on_until_a_factor_is_narrow_by_all_of_its_rounds():
    """The page gives a factor of a waterfall the interval of its own rounds. That must not end a run sooner."""
    whole, part = WHOLE[1], PARTS[1]
    process = np.array([-0.05, 0.02, 0.04, -0.01])  # the sets differ, so the run's factor is large
    changed = {whole: lambda r: process[r % 4], part: lambda r: -0.2}
    records = measured(WHOLE, 40, {}) + [each for each in measured([part], 7, {}, first=4) if each.round % 4 < 3]
    records = [
        dataclasses.replace(
            each, block_s=(each.block_s[0] * math.exp(changed.get(each.point, lambda r: 0)(each.round)),)
        )
        for each in records
    ]
    names = (*WHOLE, part)
    values = {
        name: {(0, each.round): math.log(each.block_s[0]) for each in records if each.point == name} for name in names
    }
    about = {each["point"]: each for each in planned(names)["points"] if each["point"] in names}
    times = looks.Times(about, values, [((0, r), str(r % 4)) for r in range(40)], 40.0)
    units = times.shared(part, whole)
    resampling = times.resampling.at(units)
    own = [resampling.mean(np.array([values[name][unit] for unit in units]), units) for name in (part, whole)]
    by_run, apart = turns.half_width(*times.means(units, part, whole)), abs(own[0].value - own[1].value)
    assert len(units) == looks.ABLATION_ROUNDS and turns.half_width(*own) < apart < by_run
    assert not times.resolved(part, whole, looks.ABLATION_ROUNDS)
    assert part in look(names, records).visits


def test_where_noise_lasts_a_narrow_interval_does_not_end_the_run():
    """All rounds may lie in the same spell. Then all claims continue together, because they need time, not visits."""
    records, random = measured(WHOLE, 36, {}), np.random.default_rng(0)
    slow = dict(enumerate(np.exp(0.02 * np.repeat(random.standard_normal(6), 6))))
    lasting = [dataclasses.replace(r, block_s=(r.block_s[0] * slow[r.round],)) for r in records]
    assert look(WHOLE, records).ended == "precise"
    found = look(WHOLE, lasting)
    assert found.half_width < looks.HALF_WIDTH and (found.ended, found.visits) == ("", WHOLE)


def test_failed_points_are_not_visited_again_and_without_claims_nothing_is():
    records = measured(WHOLE, 12, {})
    found = look(WHOLE, records, failed=("jit_auto/weak/2", "jit_auto/weak/1"))
    assert found.visits == WHOLE[:2]
    assert look(WHOLE, records, failed=WHOLE).ended == "nothing"


def test_one_point_alone_claims_its_time():
    found = look(WHOLE[:1], measured(WHOLE[:1], 40, {}, seed=1))
    assert (found.ended, found.to_json()["point"]) == ("precise", WHOLE[0])


def test_the_noise_of_a_claim_does_not_depend_on_the_order_of_equal_sets():
    """The half-width agrees with the report on the same rounds."""
    records = measured(WHOLE, 40, {"jit_auto/weak/2": 0.1})
    (weak,) = (claim for claim in look(WHOLE, records).claims if claim.point == "jit_auto/weak/2")
    logs = [np.log([r.block_s[0] for r in records if r.point == name]) for name in ("jit_auto/weak/1", weak.point)]
    naive = 1.96 * np.std(logs[0] - logs[1]) / 40**0.5
    assert naive < weak.half_width < 4 * naive


def test_a_look_is_fast():
    names = (*WHOLE, *(f"jit_auto/{s}/2/{part}" for s in ("strong", "weak") for part in ("a", "b", "c", "d")))
    records = measured(names, 60, {"jit_auto/weak/2": 0.3})
    look(names, records)
    began = time.process_time()
    look(names, records)
    assert time.process_time() - began < 0.05


def test_points_without_stated_flops_are_compared_by_their_examples():
    """Boosted trees state no FLOPs: the work of a pair was 0 / 0."""
    records = measured(WHOLE, 12, {})
    prepared = [
        dataclasses.replace(each, compile_report=dataclasses.replace(each.compile_report, flops_per_step=0.0))
        for name in WHOLE
        for each in [fabricate.point_record(strategy="jit_auto", devices=int(name[-1]), scaling=name.split("/")[1])]
    ]
    assert {each.point for each in prepared} == set(WHOLE)
    assert look(WHOLE, [*prepared, *records]).claims == look(WHOLE, records).claims


RUN_BEGUN = datetime(2026, 11, 23, tzinfo=UTC)
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
        line["time"] = (RUN_BEGUN + timedelta(seconds=every_s * number)).isoformat()
    write_lines(path, lines)
    return RunFolder(path)


def look_of(run, ended=""):
    """A look, as in the manifest."""
    rows = run_rows.analyse(points.load(run), config=run.config())
    width, point = max(headline.half_widths(rows))
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
    rows = run_rows.analyse(points.load(run), config=run.config())
    assert [name for _, name in headline.half_widths(rows)] == ["shard_map/strong/2"]


def test_the_intervals_of_a_run_that_looked_are_wider():
    samples, owners = 1 + 0.02 * np.random.default_rng(0).standard_normal(6), np.arange(6)
    workers = [(unit, str(unit // 2)) for unit in range(6)]
    fixed, looked = (
        BootstrapSamples(range(6), workers, auto_rounds=each).centre(samples, owners, range(6))
        for each in (False, True)
    )
    assert fixed[0] == looked[0]
    assert np.log(looked[1] / looked[0]) == pytest.approx(OPTIONAL_STOPPING * np.log(fixed[1] / fixed[0]))


def test_the_page_says_what_ended_it(tmp_path):
    run = looked_at(tmp_path, NOISY, budget_s=12.0, scalings=("strong", "weak"))
    manifest, found = run.manifest(), look_of(run, "budget")
    manifest["plan"]["auto"].update(ended="budget", looks=[found])
    store.write_json(tmp_path / store.MANIFEST, manifest)
    (section,) = [part for part in run_report.find(run).sections() if part.heading == "Rounds"]
    text = " ".join(section.sentences)
    assert "Stopped after 6 rounds in 3 processes, because its budget of 12 s for rounds is spent: shard_map/" in text
    assert f"± {100 * found['half_width']:.1f} points, not to ± 3 points" in text
    assert "the A/A spread (same program measured twice) is up to" in text and "--config.measure.budget_s" in text


def ended(path, noise, **changes):
    """The folder of this run after a look, with changes to the end in its manifest; and the resulting sentence."""
    run = looked_at(path, noise)
    manifest = run.manifest()
    manifest["plan"]["auto"] |= {"ended": "precise", "looks": [look_of(run, "precise")], **changes}
    rows = run_rows.analyse(points.load(run), config=run.config())
    return sentences.of_rounds(manifest, [row.point for row in rows], [], rows)


def test_sets_that_follow_each_other_have_the_interval_of_the_page(tmp_path):
    """Their looks have none: no two processes share a time. On the first GPU, the sentence about rounds failed."""
    look = {"rounds": 6, "ended": "budget", "half_width": None, "point": "", "spent_s": 30.0}
    (said,) = ended(tmp_path / "quiet", QUIET, ended="budget", looks=[look])
    assert "its budget of 60 s for rounds is spent. At the end " in said
    said, more = ended(tmp_path / "noisy", NOISY, ended="budget", looks=[look])
    assert "points, not to ± 3 points" in said and "budget_s" in more


def test_a_run_in_which_every_point_failed_was_not_interrupted(tmp_path):
    run = looked_at(tmp_path, QUIET)
    rows = run_rows.analyse(points.load(run), config=run.config())

    def said(failed):
        failure = FailureRecord(point="p", experiment="mlp", devices=1, stage="check", reason="it fails")
        found = [dataclasses.replace(row.point, failure=failure if i < failed else None) for i, row in enumerate(rows)]
        return sentences.of_rounds(run.manifest(), found, [], rows)

    assert said(len(rows)) == ["No rounds: every point failed."]
    assert said(0) == said(1) == ["Not finished: it was interrupted, and the same command continues it."]


def test_a_run_that_was_stopped_by_hand_is_no_precise_one(tmp_path):
    """Looking after each round and stopping at a favourable number gives an interval without coverage."""
    assert ended(tmp_path / "quiet", QUIET)[0].startswith(
        "Stopped after 6 rounds in 3 processes, once every confidence interval was within"
    )
    (said,) = ended(tmp_path / "noisy", NOISY)
    assert said.startswith("Stopped by hand and not by its own rule: it claims that every interval is within ± 3")
    other = {"rounds": 8, "ended": "precise", "half_width": 0.01, "point": "p", "spent_s": 1.0}
    (said,) = ended(tmp_path / "longer", QUIET, looks=[other])
    assert "its last look was after 8 rounds, but it has 6" in said


TWO = "shard_map/strong/2"


def neighbour(record, others_s, factor):
    """The record of a round during which another process took `others_s` and made the blocks `factor` times as long."""
    times = {"block_s": tuple(factor * s for s in record.block_s), "double_block_s": ()}
    return dataclasses.replace(record, **times, cpus=2, cpu_s=record.block_s, others_s=(others_s,))


def run_with_neighbour(path, contended_rounds, *, auto=True):
    """A run of 16 rounds; in some, a neighbour takes half of the CPUs of two devices, which take twice as long."""
    fabricate.run_folder(path, devices=(1, 2), scalings=("strong",), rounds=16, processes=4, noise=0.01, drift=0.0)
    lines = [json.loads(line) for line in (path / store.RECORDS).read_text().splitlines()]
    for line in lines:
        if line["kind"] == "round":
            slow = line["point"] == TWO and line["round"] in contended_rounds
            line["block_s"] = [(2 if slow else 1) * s for s in line["block_s"]]
            line["double_block_s"] = []
            others_s = [max(0.05, s) if slow else 0.0 for s in line["block_s"]]
            line |= {"cpus": 2, "cpu_s": line["block_s"], "others_s": others_s, "steal_s": []}
            line["time"] = (RUN_BEGUN.replace(minute=line["round"])).isoformat()
    (path / store.RECORDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    if auto:
        manifest = json.loads((path / store.MANIFEST).read_text())
        manifest["plan"]["auto"] = {"budget_s": 60.0, "ended": "", "looks": []}
        store.write_json(path / store.MANIFEST, manifest)
    run = RunFolder(path)
    return {row.point_id: row for row in run_rows.analyse(points.load(run), config=run.config())}


def test_contended_rounds_leave_the_efficiency_as_it_is_without_a_neighbour(tmp_path):
    quiet = run_with_neighbour(tmp_path / "quiet", ())[TWO]
    row = run_with_neighbour(tmp_path / "busy", (2, 3, 9, 14))[TWO]
    assert (row.timing.rounds, len(row.point.left_out), len(row.point.every_round)) == (12, 4, 16)
    assert row.efficiency.value == pytest.approx(quiet.efficiency.value, rel=0.01)
    assert row.efficiency.half_width < 2 * quiet.efficiency.half_width
    all_rounds, counted = gates.load_of(row.point), gates.load_of(row.point, row.point.rounds)
    assert (all_rounds.contended, counted.contended, counted.others) == (0.25, 0.0, 0.0)
    assert all_rounds.others == pytest.approx(0.2, abs=0.1), "8 of 20 seconds at a half of the CPUs"


def test_a_round_is_left_out_for_every_point(tmp_path):
    """The process of one device sees only its own CPU, but a neighbour on the other one slows it down, too."""
    base = run_with_neighbour(tmp_path, (2, 3, 9, 14))["shard_map/strong/1"]
    assert {each.round for each in base.point.left_out} == {2, 3, 9, 14}


@pytest.mark.parametrize(("rounds", "auto"), [(range(7), True), ((2, 3, 9, 14), False)])
def test_all_rounds_count_where_too_few_remain_or_their_number_is_fixed(tmp_path, rounds, auto):
    row = run_with_neighbour(tmp_path, rounds, auto=auto)[TWO]
    assert row.timing.rounds == 16 and not row.point.left_out


def test_the_page_says_how_many_rounds_do_not_count(tmp_path):
    rows = run_with_neighbour(tmp_path, (2, 3, 9, 14))
    (sentence,) = sentences._left_out([row.point for row in rows.values()])
    assert sentence.startswith("12 of 16 rounds were free of disturbance. The others do not count, because another ")
    assert not sentences._left_out([dataclasses.replace(row.point, left_out=()) for row in rows.values()])


def test_more_rounds_replace_those_that_do_not_count():
    records = measured(WHOLE, 32, {})
    assert look(WHOLE, records, platform="cpu").ended == "precise"
    busy = [neighbour(r, 0.1, 2) if r.point == WHOLE[1] and r.round % 4 == r.round // 8 else r for r in records]
    found = look(WHOLE, busy, platform="cpu")
    assert found.ended == "" and {claim.rounds for claim in found.claims} == {24} and set(found.visits) == {*WHOLE}


def test_rounding_by_ticks_of_the_kernel_is_nobody():
    (record,) = measured(WHOLE[:1], 1, {})
    assert not timing.taken_by(neighbour(record, 0.042, 1)) and timing.taken_by(neighbour(record, 0.043, 1))
    assert not timing.taken_by(dataclasses.replace(record, others_s=(1.0,))), "the number of CPUs is unknown"


def test_a_run_without_points_has_no_rounds_to_leave_out():
    assert sentences._left_out([]) == []
