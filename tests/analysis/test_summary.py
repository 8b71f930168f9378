# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""summary.csv: one table for training steps and for cases; unknown is empty."""

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases as fab
import pytest

from jaxbench.analysis import alpha_beta, points, run_rows
from jaxbench.core import schema, store
from jaxbench.core.store import RunFolder
from jaxbench.report import columns, table

EXACT: dict[str, Any] = {"noise": 0.0, "drift": 0.0}


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def of_cases(path: Path, *made: fab.Made, machine: dict[str, Any] | None = None) -> list[dict[str, str]]:
    run = RunFolder(fab.case_folder(path, made, **EXACT))
    rows = run_rows.analyse(points.load_cases(run), manifest=run.manifest(), machine=machine)
    return read(table.to_csv(columns.FILE, alpha_beta.fitted(rows, alpha_beta.fit_all(rows))))


def test_a_kernel(tmp_path: Path) -> None:
    made = fab.matmul(2000, call_s=0.2, loop_s=0.19)
    (line,) = of_cases(tmp_path, made, machine=fab.card())
    assert (line["op"], line["shape"], line["elements"], line["cores"]) == ("matmul", "2000x2000x2000", "2000", "1")
    assert (line["flops"], line["flop_per_s"], line["peak_share"]) == ("1.6e+10", "8e+10", "0.8")
    assert (line["step_s"], line["loop_s"], line["wrong"]) == ("0.2", "0.19", "0")
    assert (line["gate"], line["check_ok"], line["status"]) == ("passed", "true", "ok")
    assert (line["throughput"], line["throughput_unit"]) == ("5", "calls/s")
    assert line["mfu_note"].startswith("percent of measured peak") and line["mfu"] == ""
    for name in ("strategy", "global_batch", "speedup", "algbw", "busbw", "alpha_s", "payload_bytes", "mesh"):
        assert line[name] == "", name


def test_a_collective_with_its_line(tmp_path: Path) -> None:
    made = fab.alpha_beta("all_reduce", 2, [2**k for k in range(10, 24)], alpha_s=1e-4, beta=1e9)
    alone = fab.collective("all_reduce", 1024, 1, call_s=1e-4)
    *lines, one = of_cases(tmp_path, *made, alone)
    for line in lines:
        assert float(line["alpha_s"]) == pytest.approx(1e-4, rel=1e-3)
        assert float(line["beta_bytes_per_s"]) == pytest.approx(1e9, rel=1e-3)
    last = lines[-1]
    assert float(last["busbw"]) == pytest.approx(2**23 / (1e-4 + 2**23 / 1e9))
    assert (last["payload_bytes"], last["devices"], last["mesh"], last["axis"]) == (str(2**23), "2", "2", "x")
    assert one["busbw"] == one["busbw_lo"] == one["alpha_s"] == "" and float(one["algbw"]) > 0


def test_a_refused_row_stays_with_its_reason(tmp_path: Path) -> None:
    (line,) = of_cases(tmp_path, fab.matmul(64, call_s=1e-4, wrong=3))
    assert (line["gate"], line["wrong"]) == ("refused", "3")
    assert "right result: 3 values are wrong" in line["gate_reason"]


def test_a_case_that_failed_is_a_row(tmp_path: Path) -> None:
    (line,) = of_cases(tmp_path, fab.matmul(64, call_s=1.0, rounds=0, recorded=False, failure="out of memory"))
    assert (line["status"], line["op"], line["gate"], line["step_s"]) == ("failed", "matmul", "", "")
    assert line["reason"] == "measure: out of memory" and line["throughput_unit"] == ""


def of_training(path: Path, machine: dict[str, Any] | None, **facts: Any) -> dict[str, dict[str, str]]:
    run = RunFolder(fabricate.run_folder(path, noise=0, drift=0, rounds=3, **facts))
    rows = run_rows.analyse(points.load(run), config=run.config(), machine=machine)
    lines = read(table.to_csv(columns.FILE, rows))
    return {f"{line['scaling']}/{line['devices']}": line for line in lines}


def test_a_training_step_says_its_share_of_the_measured_peak(tmp_path: Path) -> None:
    lines = of_training(tmp_path, fab.card(), law=lambda scaling, n: 1.0, cores=2, base_step_s=0.04)
    for name, cores in (("strong/1", 1), ("strong/2", 2), ("strong/8", 2)):  # the card's machine has 2 cores
        assert float(lines[name]["peak_share"]) == pytest.approx(3.2e9 / 0.04 / (cores * 1e11)), name
    assert lines["strong/1"]["mfu"] == ""
    note = lines["strong/1"]["mfu_note"]
    assert "no MFU: XLA calls" in note and "80 % of this machine's measured matmul peak, 100 GFLOP/s per core" in note
    assert (lines["strong/1"]["flops"], lines["strong/1"]["bytes_moved"], lines["strong/1"]["op"]) == (
        "3.2e+09",
        "",
        "",
    )


def test_without_a_card_or_with_a_catalogued_peak_the_measured_one_is_not_used(tmp_path: Path) -> None:
    assert of_training(tmp_path / "a", None)["strong/1"]["peak_share"] == ""
    other = fab.card(peaks=[fab.peak("flop_per_s", 1, 1e11, op="matmul", dtype="bfloat16")])
    assert of_training(tmp_path / "b", other)["strong/1"]["peak_share"] == ""
    both = fab.card(peaks=[fab.peak("flop_per_s", 16, 4e14, op="matmul", platform="gpu")])
    gpu = of_training(tmp_path / "c", both, platform="gpu", device_kind="NVIDIA H200")["strong/1"]
    assert gpu["peak_share"] == gpu["mfu"] != "" and "measured" not in gpu["mfu_note"]


def test_the_compiler_s_bytes_are_the_bytes_of_a_training_step(tmp_path: Path) -> None:
    path = fabricate.run_folder(tmp_path, devices=(1,), scalings=("strong",), rounds=1)
    first, *others = (path / store.RECORDS).read_text().splitlines()
    line = json.loads(first)
    line["passport"]["compiler_bytes_per_step"] = 5e9
    (path / store.RECORDS).write_text("\n".join([json.dumps(line), *others, ""]))
    (row,) = run_rows.analyse(points.load(RunFolder(path)), config={})
    assert row.point.record and row.point.record.passport == dataclasses.replace(
        fabricate.passport(collectives=(), expected_gradient_bytes=0), compiler_bytes_per_step=5e9
    )
    (record,) = table.records(columns.FILE, [row])
    assert record["bytes_moved"] == 5e9


def test_unknown_values_are_none(tmp_path: Path) -> None:
    run = RunFolder(fab.case_folder(tmp_path, [fab.matmul(64, call_s=1e-4)], rounds=1))
    rows = run_rows.analyse(points.load_cases(run), manifest=run.manifest(), machine=None)
    (record,) = table.records(columns.FILE, rows)
    assert record["strategy"] is None and record["step_s_lo"] is None
    assert isinstance(run.records()[0], schema.CaseRecord)
