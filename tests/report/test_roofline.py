# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The roofline: ceilings from the profile, every kernel and training step below them, earlier runs in grey."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import fabricate
import fabricate_cases as fab
import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from report import runs

from jaxbench.core import store
from jaxbench.report import build
from jaxbench.report.drawing import canvas, notes
from jaxbench.report.figures import roofline
from jaxbench.report.figures.roofline import Spot, of_cases
from jaxbench.statistics.bootstrap import Estimate

GPU_CARD = fab.card()
GPU_CARD["machine"] |= runs.GPU
GPU_CARD["peaks"] = [
    fab.peak("flop_per_s", 2, 3.5e14, op="matmul", platform="gpu"),
    fab.peak("bytes_per_s", 2, 4e12, op="triad", level="memory", platform="gpu"),
]


def spot(**facts: Any) -> Spot:
    rate = Estimate(value=facts.pop("value", 1e10))
    common: dict[str, Any] = dict(label="gelu", at=1.0, platform="cpu", value=rate)
    return Spot(**{**common, **facts})


def drawn(spots: list[Spot], card: dict[str, Any] | None = None, dtype: str = "float32") -> Figure:
    with canvas.style():
        figure = roofline.under(spots, card=card or fab.card(), title="x", dtype=dtype)
        assert figure is not None
        return figure


def texts(figure: Figure) -> str:
    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


def ceilings(figure: Figure) -> list[Line2D]:
    return [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2]


def test_ceilings_are_those_of_the_card_on_all_cores() -> None:
    figure = drawn([spot()])
    flat = [line for line in ceilings(figure) if line.get_ydata()[0] == line.get_ydata()[1]]
    assert [line.get_ydata()[0] for line in flat] == [1.9e11], "two cores, not one"
    slopes = {round(line.get_ydata()[0] / line.get_xdata()[0]) for line in ceilings(figure) if line not in flat}
    assert slopes == {15_000_000_000, 110_000_000_000}
    for said in ("float32 190 GFLOP/s", "memory 15.0 GB/s", "cache 110 GB/s"):
        assert said in texts(figure)


def test_the_ceiling_of_the_rows_dtype_is_the_heavy_one() -> None:
    card = fab.card()
    card["peaks"].append(fab.peak("flop_per_s", 2, 9e10, op="matmul", dtype="float64"))
    for dtype, heavy in (("float32", 1.9e11), ("float64", 9e10)):
        flat = [line for line in ceilings(drawn([spot()], card, dtype)) if line.get_ydata()[0] == line.get_ydata()[1]]
        widths = {line.get_ydata()[0]: line.get_linewidth() for line in flat}
        assert max(widths, key=lambda value: widths[value]) == heavy and len(set(widths.values())) == 2


def test_catalogue_peaks_are_dashed() -> None:
    figure = drawn([spot(platform="gpu", value=1e12)], GPU_CARD)
    dashed = [line for line in ceilings(figure) if line.get_linestyle() == "--"]
    assert len(dashed) == 2 and "float32 peak" in texts(figure) and "memory peak 4.80 TB/s" in texts(figure)


def test_without_a_bandwidth_there_is_no_roofline() -> None:
    card = fab.card()
    card["peaks"] = [peak for peak in card["peaks"] if peak["quantity"] == "flop_per_s"]
    assert roofline.under([spot()], card=card, title="x", dtype="float32") is None
    assert roofline.under([spot(kind="earlier")], card=fab.card(), title="x", dtype="float32") is None


def test_each_platform_has_its_own_panel_and_ceilings() -> None:
    card = fab.card()
    card["peaks"] += GPU_CARD["peaks"]
    figure = drawn([spot(), spot(platform="gpu", value=1e12)], card)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["cpu", "gpu"]


def test_marks_say_what_a_spot_is() -> None:
    kinds = (dict(state="refused"), dict(state="wrong"), dict(kind="earlier"), dict(kind="kernel"))
    figure = drawn([spot(at=i + 1.0, **kind) for i, kind in enumerate(kinds)] + [spot(state="hollow")])
    (axes,) = figure.axes
    styles = {line.get_xdata()[0]: line for line in axes.lines if len(line.get_xdata()) == 1}
    assert (styles[1.0].get_marker(), styles[2.0].get_marker(), styles[3.0].get_marker()) != ("o", "o", "o")
    assert any(line.get_markerfacecolor() == "white" for line in axes.lines)
    for said in (notes.REFUSED, notes.WRONG, "other runs on this machine", notes.HOLLOW):
        assert said in texts(figure)


def test_kernels_stand_at_their_intensity(tmp_path: Path) -> None:
    found = runs.findings(tmp_path, "matmul")
    spots = of_cases(found.rows)
    assert len(spots) == len(found.rows)
    assert {s.label for s in spots} == {"matmul"}
    n = 512
    at = next(s for s, row in zip(spots, found.rows, strict=True) if row.point.elements == n)
    assert at.at == pytest.approx(2 * n**3 / (12 * n * n)) and at.value.value == pytest.approx(9e10, rel=0.05)


def test_small_sizes_far_below_the_roof_are_counted_not_drawn() -> None:
    figure = drawn([spot(), spot(value=1e3), spot(value=2e3)])
    assert "2 of small sizes" in texts(figure)
    assert figure.axes[0].get_ylim()[0] > 1e4


def training(path: Path, *, moved: float | None = 4e8, machine: dict[str, Any] | None = None, **facts: Any) -> Path:
    """A training run of this machine with `moved` bytes per step, counted by the compiler."""
    fabricate.run_folder(path, devices=(1, 2), rounds=3, **facts)
    lines = [json.loads(line) for line in (path / store.RECORDS).read_text().splitlines()]
    for line in lines:
        if line["kind"] == "point":
            line["passport"]["compiler_bytes_per_step"] = moved
    (path / store.RECORDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    manifest = json.loads((path / store.MANIFEST).read_text())
    store.write_json(path / store.MANIFEST, {**manifest, **fab.card()["machine"]})
    if machine is not None:
        store.write_json(path / "machine.json", machine)
    return path


def test_training_steps_are_placed_where_the_machine_has_a_card(tmp_path: Path) -> None:
    build.write(training(tmp_path / "with", machine=fab.card()))
    html = (tmp_path / "with" / "report.html").read_text()
    assert (tmp_path / "with/figures/roofline.svg").is_file()
    assert html.index("scaling figure") < html.index("roofline figure")
    build.write(training(tmp_path / "without"))
    build.write(training(tmp_path / "uncounted", moved=None, machine=fab.card()))
    for name in ("without", "uncounted"):
        assert not (tmp_path / name / "figures/roofline.svg").exists()
        assert "roofline figure" not in (tmp_path / name / "report.html").read_text()


def test_a_card_of_another_machine_is_not_used_and_it_says_so(tmp_path: Path) -> None:
    card = fab.card()
    card["machine"]["cpu_model"] = "Another CPU"
    build.write(training(tmp_path, machine=card))
    assert not (tmp_path / "figures/roofline.svg").exists()
    assert (
        "machine profile in the folder is not used: it is from another machine"
        in (tmp_path / "report.html").read_text()
    )


def test_earlier_runs_of_the_same_machine_are_in_the_background(tmp_path: Path) -> None:
    stranger = fab.matmul(512, call_s=0.01, experiment="stranger")
    with runs.undrawn():
        build.write(runs.folder(tmp_path / "matmul", "matmul"))
        build.write(training(tmp_path / "cnn"))
        build.write(runs.folder(tmp_path / "machine-1" / "stream", "stream"))
        build.write(runs.folder(tmp_path / "other", "matmul", [stranger], manifest={"cpu_model": "Another CPU"}))
    here = runs.folder(tmp_path / "here", "curves", machine=fab.card())
    spots = roofline.earlier_spots(here)
    assert {s.label for s in spots} == {"matmul", "cnn", "stream"} and {s.kind for s in spots} == {"earlier"}
    step = next(s for s in spots if s.label == "cnn")
    assert step.at == pytest.approx(3.2e9 / 4e8)
    build.write(here)
    assert (here / "figures/roofline.svg").is_file()


@runs.undrawn()
def test_rows_that_may_not_be_believed_are_no_background(tmp_path: Path) -> None:
    made = [
        fab.matmul(512, call_s=0.01),
        runs.removed(fab.matmul(256, call_s=0.01)),
        runs.wrong(fab.matmul(128, call_s=0.01)),
    ]
    build.write(runs.folder(tmp_path / "matmul", "matmul", made))
    here = runs.folder(tmp_path / "here", "curves")
    (spot,) = roofline.earlier_spots(here)
    assert spot.at == pytest.approx(512 / 6)


@pytest.mark.full
@pytest.mark.parametrize("spoil", ["", "{", "x,y\n1", "\x00"])
def test_a_damaged_sibling_is_passed_over(tmp_path: Path, spoil: str) -> None:
    build.write(runs.folder(tmp_path / "matmul", "matmul"))
    (tmp_path / "matmul" / ("summary.csv" if "," in spoil or "\x00" in spoil else store.MANIFEST)).write_text(spoil)
    assert roofline.earlier_spots(runs.folder(tmp_path / "here", "curves")) == []


@runs.undrawn()
def test_a_training_step_on_accelerators_is_per_device(tmp_path: Path) -> None:
    build.write(training(tmp_path / "cnn"))
    with open(tmp_path / "cnn" / "summary.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    totals = sorted(float(line["flop_per_s"]) / float(line["devices"]) for line in lines)
    manifest = json.loads((tmp_path / "cnn" / store.MANIFEST).read_text())
    store.write_json(tmp_path / "cnn" / store.MANIFEST, {**manifest, **runs.GPU})
    text = (tmp_path / "cnn" / "summary.csv").read_text().replace(",cpu,", ",gpu,")
    (tmp_path / "cnn" / "summary.csv").write_text(text)
    here = runs.folder(tmp_path / "here", "curves", manifest=runs.GPU)
    assert np.allclose(sorted(s.value.value for s in roofline.earlier_spots(here)), totals)
