# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Verdicts on real measurements: pairs of processes, and a CI check from calibration to alarm."""

from __future__ import annotations

import dataclasses
import json
import subprocess

import pytest
from doorway import QUICK_MLP, command, environment, jaxbench
from thin import thin

from jaxbench.core import schema
from jaxbench.core.store import RunFolder
from jaxbench.features.comparison import sequential
from jaxbench.records import documents

# One device; the other arm has many times the work, more than any noise.
ONE = (*QUICK_MLP, "--config.mesh.devices=1")
SLOW = "--config.model.width=4096"


def workers(run):
    """The workers of the valid rounds: a repeated round replaces the earlier one."""
    rounds = {r.round: r.worker for r in RunFolder(run).records() if isinstance(r, schema.RoundRecord)}
    return set(rounds.values())


@pytest.mark.full
def test_pairs_are_measured_until_the_answer_and_continued(tmp_path):
    words = ("ab", "mlp", "--a=", f"--b={SLOW}", f"--workdir={tmp_path}", *ONE)
    first = jaxbench(*words, "--budget_s=0.1")
    assert first.returncode == 2 and "after 1; one pair takes" in first.stdout, first.stdout + first.stderr
    run = RunFolder.begin(tmp_path / "a", RunFolder(tmp_path / "a").config())
    begun = [record for record in run.records() if isinstance(record, schema.RoundRecord)][-1]
    run.append(dataclasses.replace(begun, round=2, worker="session0/cpu1#1"))  # as if the next pair was interrupted
    run.close()
    again = jaxbench(*words)
    assert again.returncode == 1 and "Slower" in again.stdout, again.stdout + again.stderr
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert found["verdict"] == "slower" and found["across"] == ["model.width"]
    pairs = found["overall"]["processes"]["a"]
    assert pairs in sequential.LOOKS and len(workers(tmp_path / "a")) == len(workers(tmp_path / "b")) == pairs
    assert "session0/cpu1#1" not in workers(tmp_path / "a")
    for arm in "ab":
        records = RunFolder(tmp_path / arm).records()
        assert len({record.steps for record in records if isinstance(record, schema.RoundRecord)}) == 1
    reported = jaxbench("report", f"--run={tmp_path / 'a'}")
    assert reported.returncode == 0, reported.stdout


REFUSED = [
    (("--a=--config.modle.width=3", "--b="), "modle"),
    (("--a=--preset=smoke", "--b="), "'--preset=smoke'"),
    (("--a='", "--b="), "cannot be read"),
    (("--a=", "--b=--config.measure.rounds=3"), "rounds is 2 in A and 3 in B"),
    (("--a=", "--b=", "--config.measure.processes=2"), "--config.measure.processes=2 has no effect on ab"),
    (("--a=", "--b=--config.batch=0"), "batch"),
    (("--a=", "--b=", "--margin=-2"), "--margin=-2.0"),
]


@pytest.mark.parametrize(("words", "said"), thin(REFUSED, 1))
def test_an_arm_that_cannot_be_is_one_sentence(tmp_path, words, said):
    done = jaxbench("ab", "mlp", f"--workdir={tmp_path}", *ONE, *words)
    assert done.returncode == 3 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1


def differs_by(folder, threshold):
    """Puts another threshold into the calibration."""
    file = folder / "baselines" / "calibration.json"
    held = json.loads(file.read_text())
    for machine in held["machines"].values():
        machine["mlp"]["threshold"] = threshold
    file.write_text(json.dumps({**held, documents.SHA256: documents.digest(held)}))


@pytest.mark.full
def test_a_gate_from_calibration_to_alarm(tmp_path):
    def here(*words):
        return subprocess.run(
            command(*words), capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=300
        )

    measured = here("run", "mlp", "--workdir=first", *ONE, "--config.measure.rounds=6", "--config.measure.processes=3")
    assert measured.returncode == 0, measured.stdout + measured.stderr
    assert len(workers(tmp_path / "first")) == 3
    assert here("baseline", "--run=first", "--name=main").returncode == 0
    early = here("check", "mlp", "--name=main")
    assert early.returncode == 3 and "run jaxbench calibrate first" in early.stderr
    calibrated = here("calibrate", "mlp", *ONE, "--config.measure.rounds=16")
    assert calibrated.returncode == 0 and "35 comparisons" in calibrated.stdout, calibrated.stdout + calibrated.stderr
    # From here on nothing depends on this machine's noise: the calibration is from a noisy and then from a quiet
    # machine, and the baseline was 10,000 times as fast.
    differs_by(tmp_path, 1.31)
    refused = here("check", "mlp", "--name=main", "--workdir=never")
    assert refused.returncode == 3 and "131 %" in refused.stderr, refused.stderr
    assert not (tmp_path / "never").exists()
    differs_by(tmp_path, 0.05)
    faster = tmp_path / "baselines" / "main" / "records.jsonl"
    lines = [json.loads(line) for line in faster.read_text().splitlines()]
    for line in lines:
        line.pop(documents.SHA256)  # as in older runs, which have no chain of hashes
        if line["kind"] == "round":
            for clock in ("block_s", "double_block_s"):  # both, otherwise they disagree by an impossible amount
                line[clock] = [t / 1e4 for t in line[clock]]
    faster.write_text("".join(json.dumps(line) + "\n" for line in lines))
    checked = here("check", "mlp", "--name=main", "--workdir=now")
    assert checked.returncode == 1 and "Slower" in checked.stdout, checked.stdout + checked.stderr
    assert "<failure" in (tmp_path / "now" / "junit.xml").read_text()
    assert "slower" in (tmp_path / "now" / "summary.md").read_text().lower()
    other = here("check", "cnn", "--name=main")
    assert other.returncode == 3 and "mlp, not cnn" in other.stderr
