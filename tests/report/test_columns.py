# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The columns of summary.csv: a fixed order, each defined, each with a source; and the single table of columns."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import fabricate
import fabricate_arms
import fabricate_cases
import fabricate_cases as fab
import fabricate_losses
import fabricate_power
import fabricate_ranks
import fabricate_tokens
import numpy as np
import pytest
from report import runs
from rich.console import Console

from jaxbench import levers
from jaxbench.analysis import alpha_beta, points, run_rows
from jaxbench.core import schema, store
from jaxbench.core.store import RunFolder
from jaxbench.report import columns, page, run_report, table
from jaxbench.report.run_report import RunReport
from jaxbench.report.table import ALWAYS, TEXT, Cell, Column, ratio
from jaxbench.statistics.bootstrap import Estimate

HERE = Path(__file__).parent
METRICS = HERE.parents[1] / "docs" / "metrics"
LOSS = fabricate_losses.Loss(share=0.9, unequal=0.9, runtime=0.9)
NAMES = [name for column in columns.FILE for name in column.names]


def test_columns_are_only_added_at_the_end() -> None:
    """Other people's scripts read the file. A new column gets a line at the end of summary_columns.txt, no other."""
    listed = Path(columns.__file__).with_name("summary_columns.txt").read_text().split()
    assert NAMES[: len(listed)] == listed
    assert NAMES == listed, f"append to jaxbench/report/summary_columns.txt: {NAMES[len(listed) :]}"
    assert len(set(NAMES)) == len(NAMES)


def test_every_lever_has_a_column() -> None:
    assert set(levers.defaults()) - {"ladder"} <= set(NAMES)


def test_the_documentation_has_the_same_table() -> None:
    wanted = "\n".join(columns.documentation().markdown())
    assert wanted in (METRICS / "README.md").read_text(), f"docs/metrics/README.md should hold\n{wanted}"


def sections() -> dict[str, str]:
    """The text under each heading of docs/metrics/, by the heading's anchor."""
    text = "\n".join(file.read_text() for file in sorted(METRICS.glob("*.md")))
    parts = re.split(r"^##+ (.*)$", text, flags=re.MULTILINE)
    anchors = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in parts[1::2])
    return dict(zip(anchors, parts[2::2], strict=True))


def test_every_column_of_a_table_leads_to_a_definition() -> None:
    assert {column.definition for column in columns.COLUMNS} <= set(sections())
    assert list(sections()) == list(page.definitions()), "the page reads the same headings"


@pytest.mark.parametrize("column", columns.FILE, ids=lambda column: column.name)
def test_every_column_is_defined_where_it_says(column: Column) -> None:
    stem = re.sub(r"_(lo|hi)$", "", column.name)
    assert f"`{stem}`" in sections()[column.definition]


def test_every_column_leads_somewhere(tmp_path: Path) -> None:
    """An attribute path broken by renaming would silently leave its column empty."""
    machine = fabricate_cases.card()
    gpu: dict[str, Any] = dict(platform="gpu", device_kind="NVIDIA H200")
    found: list[RunReport] = []
    for name, facts in (("cpu", dict(cores=2, wrong=("shard_map/weak/1",))), ("gpu", gpu)):
        found.append(run_report.find(RunFolder(fabricate.run_folder(tmp_path / name, **facts))))
    link = {"op": "all_reduce", "dtype": "float32", "devices": 2, "oversubscribed": False, "alpha_s": 1e-5}
    card = fabricate_cases.card(links=[{**link, "beta_bytes_per_s": 1e9, "bus_bytes_per_s": 1e9}])
    explained = fabricate_losses.folder(tmp_path / "explained", {2: LOSS}, peak=True)
    store.write_json(explained / "machine.json", card)
    found.append(run_report.find(RunFolder(explained)))
    found.append(run_report.find(RunFolder(fabricate_ranks.folder(tmp_path / "ranks", (1.0, 1.3)))))
    work = schema.StepWork(
        product_flops={"bfloat16": 3e9}, all_products_counted=True, reads_batch=True, idle_fields=("x",), steps=8,
        changing_steps=4, parameter_arrays=2, still_arrays=("w",), still_share=0.9, moved_share=0.1, examples=16,
        examples_with_gradient=8,
    )  # fmt: skip
    found.append(run_report.find(RunFolder(fabricate.run_folder(tmp_path / "work", devices=(1, 2), work=work))))
    found.append(run_report.find(RunFolder(fabricate_tokens.folder(tmp_path / "tokens", joules=1.0))))
    found.append(run_report.find(RunFolder(fabricate_power.folder(tmp_path / "power"))))
    for kind in ("precision", "inputs", "inference", "sharing"):
        found.append(run_report.find(RunFolder(fabricate_arms.folder(tmp_path / kind, kind))))
    for view in ("matmul", "collectives", "transfer", "curves"):
        run = RunFolder(runs.folder(tmp_path / view, view, machine=machine if view == "matmul" else None))
        found.append(run_report.find(run))
    rows = [row for each in found for row in each.rows]
    records = list(table.records(columns.FILE, rows))
    for line in csv.DictReader(io.StringIO(table.to_csv(columns.FILE, rows))):
        for column in columns.FILE:
            for name in column.names:
                of_number(line[name], name) if column.unit else text_for_people(line[name], name)
    assert any(record["lost_other"] for record in records), "a sum of several factors, which has no interval"
    known = {name for record in records for name, value in record.items() if value is not None}
    text = {"tokens_per_s", "real_tokens_per_s", "real_share", "mfu_unmasked"}  # of experiments on text
    newer = {"contended", "cpu_share", "others_share", "steal_share", "loss_before", "loss_after"}  # of newer records
    others = set(levers.defaults()) & set(NAMES) - set(fabricate_arms.DEFAULTS)  # that the fabricated runs do not have
    assert set(NAMES) - known - {"clock_note"} == text | newer | others - {"mesh"}
    shown = {column.name for each in found for column in each.table().columns}
    assert shown == {column.name for column in columns.COLUMNS if column.on} - newer


REPR = re.compile(r"\w+\(.*=.*\)|[\[{(].*[\]})]|<.*>|None|nan|inf|True|False")


def of_number(cell: str, name: str) -> None:
    assert cell == "" or math.isfinite(float(cell)), f"{name}: {cell}"


def text_for_people(cell: str, name: str) -> None:
    assert not REPR.fullmatch(cell), f"{name}: {cell}"


def test_no_cell_of_a_committed_table_is_written_as_python_shows_it() -> None:
    files = sorted((HERE.parents[1] / "docs" / "figures").rglob("*.csv"))
    assert len(files) > 10
    for path in files:
        for line in csv.DictReader(io.StringIO(path.read_text())):
            for name, cell in line.items():
                text_for_people(cell, f"{path}, {name}")


@pytest.mark.parametrize("value", [(1, 2), {"a": 1}, [1.0], object()])
def test_an_illegal_cell_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="a CSV cell is text, a number, a boolean or empty"):
        table.to_csv([Column("x", lambda row: row)], [value])


def test_cells_by_type() -> None:
    rows = [Estimate(value=0.5), Estimate(), True, np.bool_(False), np.int64(3), np.float32(0.25), "a,b", None, 1e-12]
    written = list(csv.reader(io.StringIO(table.to_csv([Column("x", lambda row: row)], rows))))
    assert [cell for (cell,) in written[1:] if cell] == ["0.5", "true", "false", "3", "0.25", "a,b", "1e-12"]
    assert len(written) == 1 + len(rows)


ROWS = [{"who": "[b]a[/b]", "time": Estimate(value=2.0, lo=1.5, hi=2.5), "word": "wrong"}]
COLUMNS = (
    Column("who", lambda row: row["who"], kind=TEXT, terminal=ALWAYS),
    Column("time", lambda row: row["time"], ratio, heading="x time", bounds=True, terminal=ALWAYS, interval=2),
    Column("word", lambda row: row["word"], kind=TEXT, style=str, terminal=1),
    Column("none", lambda row: row.get("none"), terminal=ALWAYS),
)


def test_one_declaration_is_every_medium() -> None:
    made = table.fill(COLUMNS, ROWS, note="a note")
    assert (made.results.note, made.quality.note) == ("a note", ""), "they are on one page"
    assert made.lines[0].cells == ("[b]a[/b]", "2.00 [1.50, 2.50]", Cell("wrong", "wrong"))
    assert made.markdown()[0] == "| who | x time | word |", "a column without any value is left out"
    assert made.markdown()[2] == "| [b]a[/b] | 2.00 [1.50, 2.50] | **wrong** |"
    assert list(csv.DictReader(io.StringIO(table.to_csv(COLUMNS, ROWS)))) == [
        {"who": "[b]a[/b]", "time": "2", "time_lo": "1.5", "time_hi": "2.5", "word": "wrong", "none": ""}
    ]


@pytest.mark.parametrize(
    ("width", "seen", "gone"),
    [
        (60, ("[b]a[/b]", "2.00 [1.50, 2.50]", "wrong"), ()),
        (30, ("2.00 [1.50",), ("wrong",)),
        (16, ("2.00",), ("[1.50",)),
    ],
)
def test_the_terminal_leaves_out_what_does_not_fit(width: int, seen: tuple[str, ...], gone: tuple[str, ...]) -> None:
    console = Console(width=width, file=io.StringIO())
    console.print(table.fill(COLUMNS, ROWS).terminal(width))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(word in text for word in seen) and not any(word in text for word in gone)


def test_the_base_of_a_ratio_is_1_without_an_interval(tmp_path: Path) -> None:
    made = run_report.find(RunFolder(fabricate.run_folder(tmp_path, devices=(1, 2), scalings=("strong",)))).table()
    at = [column.name for column in made.columns].index("speedup")
    base, other = (line.cells[at] for line in made.lines)
    assert base == "1" and "[" in other


# summary.csv: one table for training steps and for cases; unknown is empty.


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
    assert [lines["strong/1"][name] for name in ("flops", "bytes_moved", "op")] == ["3.2e+09", "", ""]


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
    line["compile_report"]["compiler_bytes_per_step"] = 5e9
    (path / store.RECORDS).write_text("\n".join([json.dumps(line), *others, ""]))
    (row,) = run_rows.analyse(points.load(RunFolder(path)), config={})
    assert row.point.record and row.point.record.compile_report == dataclasses.replace(
        fabricate.compile_report(collectives=(), expected_gradient_bytes=0), compiler_bytes_per_step=5e9
    )
    (record,) = table.records(columns.FILE, [row])
    assert record["bytes_moved"] == 5e9
