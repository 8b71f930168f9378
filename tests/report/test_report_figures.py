# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The figure: three formats, reproducible bytes, drawn as in its docstring."""

import json
import logging
from pathlib import Path
from typing import Any

import fabricate
import matplotlib
import pytest
from matplotlib.figure import Figure
from thin import thin

from jaxbench.analysis import run_rows
from jaxbench.analysis.run_rows import Row
from jaxbench.catalog import published
from jaxbench.core.store import RunFolder
from jaxbench.errors import UserError
from jaxbench.report.drawing import axes, canvas, marks, notes
from jaxbench.report.figures.training import draw_scaling, of_rows
from jaxbench.report.run_report import find


def rows_of(path: Path, **facts: Any) -> list[Row]:
    return find(RunFolder(fabricate.run_folder(path, **facts))).rows


TABLE = published.overlays()[0]
P100 = (TABLE, ["InceptionV3", "ResNet-50", "ResNet-152", "AlexNet", "VGG16"])


def draw(rows: list[Row], **options: Any) -> Figure:
    with canvas.style():
        return of_rows(rows, title="cnn", **options)


def rendered(rows: list[Row], **options: Any) -> dict[str, bytes]:
    return canvas.render(lambda: of_rows(rows, title="cnn", **options))


def texts(figure: Figure) -> str:
    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


def markers(figure: Figure, face: str) -> list[int]:
    """Device counts (nearest) of the markers with this `face` ("white" or "filled") in the speed-up panel."""
    found = []
    for line in figure.axes[1].lines:
        hollow = line.get_markerfacecolor() == "white"
        if line.get_marker() in marks.MARKERS and hollow == (face == "white"):
            found += [round(x) for x in line.get_xdata()]
    return sorted(found)


@pytest.mark.full
@pytest.mark.usefixtures("every_format")
def test_three_formats_with_the_same_bytes_every_time(tmp_path: Path) -> None:
    rows = rows_of(tmp_path / "run", cores=2)
    first, second = (rendered(rows, overlaid=P100) for _ in range(2))
    assert first == second
    canvas.write(first, tmp_path / "one", "scaling")
    assert {p.name: p.read_bytes() for p in (tmp_path / "one").iterdir()} == {
        f"scaling.{k}": v for k, v in first.items()
    }
    assert first["png"].startswith(b"\x89PNG") and first["pdf"].startswith(b"%PDF") and b"<svg" in first["svg"]
    assert b"<text" not in first["svg"], "text is drawn as paths, so no reader's fonts can change it"


@pytest.mark.usefixtures("every_format")
def test_seven_inches_wide(tmp_path: Path) -> None:
    png = rendered(rows_of(tmp_path))["png"]
    assert int.from_bytes(png[16:20], "big") == 1400  # pixels at 200 dpi


def test_oversubscribed_is_hollow_and_explained(tmp_path: Path) -> None:
    figure = draw(rows_of(tmp_path, cores=2, scalings=("strong",)))
    assert markers(figure, "white") == [4, 8] and markers(figure, "filled") == [1, 2]
    assert notes.HOLLOW in texts(figure)


@pytest.mark.parametrize(("rounds", "refused"), [(4, False), (5, True)])
def test_without_a_base_or_an_interval_only_times_are_drawn(tmp_path: Path, rounds: int, refused: bool) -> None:
    """If its base were refused, a point on 2 devices would become its own base, at 100 %."""
    path = fabricate.run_folder(tmp_path, rounds=rounds, devices=(1, 2), scalings=("strong",), noise=0.002)
    if refused:
        lines = [json.loads(line) for line in (path / "records.jsonl").read_text().splitlines()]
        for line in lines:
            if line["kind"] == "round" and line["point"] == "shard_map/strong/1":
                line["double_block_s"] = line["block_s"][:2]
        (path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = find(RunFolder(path))
    rate, speed, share = draw(found.rows).axes
    ours = [[line for line in axes.lines if line.get_marker() in marks.MARKERS] for axes in (rate, speed, share)]
    assert ours[0] and not (ours[1] or ours[2])
    headings = [column.title for column in found.table().columns]
    assert ("efficiency %" in headings) == refused and "ms per step" in headings
    if refused:
        at = headings.index("efficiency %")
        assert [line.cells[at] for line in found.table().lines] == ["no base"] * 2
    assert found.table().note.startswith("Medians with 95 %" if refused else "Medians without confidence intervals")
    assert not (found.waterfalls or found.controls)


def test_a_figure_of_reportable_points_has_no_hollow_marker(tmp_path: Path) -> None:
    figure = draw(rows_of(tmp_path, cores=8, scalings=("strong",)))
    assert markers(figure, "white") == [] and notes.HOLLOW not in texts(figure)


def test_wrong_points_are_crossed_out(tmp_path: Path) -> None:
    assert notes.WRONG in texts(draw(rows_of(tmp_path, wrong=("shard_map/strong/2",))))


def test_speedups_have_the_ticks_of_devices(tmp_path: Path) -> None:
    _, speed, _ = draw(rows_of(tmp_path, cores=8)).axes
    assert {1, 2, 4} <= {*speed.get_yticks()} <= {2.0**power for power in range(-2, 5)}


def test_strong_and_weak_differ_without_colour(tmp_path: Path) -> None:
    figure = draw(rows_of(tmp_path))
    handles = figure.legends[0].legend_handles
    styles = {(h.get_marker(), h.get_linestyle()) for h in handles}
    assert len(styles) == len(handles) == 3


@pytest.mark.parametrize(("strategies", "panels"), [(1, 3), (2, 3), (4, 6)])
def test_many_strategies_get_a_row_for_each_scaling(tmp_path: Path, strategies: int, panels: int) -> None:
    names = [f"strategy_{i}" for i in range(strategies)]
    figure = draw(rows_of(tmp_path, strategies=names))
    assert len(figure.axes) == panels
    assert all(name in texts(figure) for name in names)


def test_the_overlay_is_on_the_speedup_panel_and_cited(tmp_path: Path) -> None:
    rows = rows_of(tmp_path)
    plain, overlaid = draw(rows), draw(rows, overlaid=P100)
    for name in ("AlexNet", "VGG16", "ResNet-50", "InceptionV3", "ResNet-152", "TensorFlow benchmarks"):
        assert name in texts(overlaid) and name not in texts(plain)
    more = [len(b.lines) - len(a.lines) for a, b in zip(plain.axes, overlaid.axes, strict=True)]
    assert more == [0, 5, 0]


def speedup_panels(figure: Figure) -> list[tuple[str, int]]:
    """(title, how many grey lines with markers: the published ones) of each speed-up panel."""
    found = []
    for panel in figure.axes[1::3]:
        published = [line for line in panel.lines if line.get_color() == "#8a8a8a"]
        found.append((panel.get_title(loc="left"), len(published)))
    return found


def test_published_speedups_are_not_drawn_over_another_base(tmp_path: Path) -> None:
    figure = draw(rows_of(tmp_path, devices=(2, 4, 8)), overlaid=P100)
    assert speedup_panels(figure) == [("speed-up over 2 devices", 0)]
    assert "these are over 2 devices" in texts(figure) and notes.PUBLISHED not in texts(figure)
    (ideal,) = [line for line in figure.axes[1].lines if line.get_label() == "_guide"]
    assert list(ideal.get_xdata()) == [2, 4, 8] and list(ideal.get_ydata()) == [1, 2, 4]


def mixed(path: Path) -> list[Row]:
    """Two strategies: weak starts at 1 device, strong of one of them at 2."""
    rows = rows_of(path, strategies=("pmap", "shard_map"), devices=(1, 2, 4))
    points = [r.point for r in rows if r.point.point != "pmap/strong/1"]
    return run_rows.analyse(points, config={})


def test_a_series_over_another_base_is_left_out_of_the_speedup_panel(tmp_path: Path) -> None:
    rows = mixed(tmp_path)
    figure = draw(rows)
    assert speedup_panels(figure) == [("speed-up over 1 device", 0)]
    assert "one base: pmap strong (base 2 devices)" in texts(figure)
    rate, speed, share = (len(panel.lines) for panel in figure.axes)
    assert rate < share and speed < share
    assert all(round(y) != 2 or round(x) != 4 for line in figure.axes[1].lines for x, y in line.get_xydata()[1:2])


@pytest.mark.parametrize(("devices", "in_margin"), [((1, 2, 4), True), ((1, 2, 4, 8), True), ((1, 4, 16, 512), False)])
def test_published_names_are_in_the_margin_or_in_the_legend(
    tmp_path: Path, devices: tuple[int, ...], in_margin: bool
) -> None:
    figure = draw(rows_of(tmp_path, devices=devices, cores=512), overlaid=P100)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [t.get_text() for t in figure.axes[1].texts].count("VGG16") == in_margin
    assert legend.count("VGG16") == (not in_margin)


NAMES = [r"my$\bad$x", "a" * 300, "$", "/long/path" * 30, "_", "{}", "x\ny", "[b]"]


@pytest.mark.parametrize("name", thin(NAMES, 2))
def test_names_are_text_and_stay_inside_the_figure(tmp_path: Path, name: str) -> None:
    rows = rows_of(tmp_path, strategies=(name, "b"), experiment=name)
    with canvas.style():
        figure = of_rows(rows, title=f"{name}: training throughput")
        figure.draw_without_rendering()
        legend = figure.legends[0].get_window_extent()
    panel, dots = figure.axes[0].get_window_extent(), canvas.DPI / 100
    assert legend.x0 >= 0 and legend.x1 <= 700 * dots and panel.width > 80 * dots
    assert panel.height > 110 * dots, "the panels keep their height"
    assert rendered(rows)["svg"]


@pytest.mark.parametrize(
    ("experiment", "overlay", "names"),
    [
        ("resnet18", TABLE, ["ResNet-50", "ResNet-152"]),
        ("my_vgg", TABLE, ["VGG16"]),
        ("mlp", TABLE, []),
        ("cnn", TABLE, []),
        ("gbdt", f"{TABLE}:AlexNet, VGG16", ["AlexNet", "VGG16"]),
        ("resnet50", "", []),
    ],
)
def test_published_curves_are_of_the_same_kind_of_model(
    tmp_path: Path, experiment: str, overlay: str, names: list[str]
) -> None:
    run = fabricate.run_folder(tmp_path, experiment=experiment, config={"report": {"overlay": overlay}})
    with canvas.style():
        said = texts(draw_scaling(find(RunFolder(run))))
    assert [name for name in P100[1] if name in said.split("\n")] == names
    assert ("P100" in said) == bool(names)


def test_an_overlay_of_an_unknown_model_is_refused() -> None:
    with pytest.raises(UserError, match="names 'VGG-16': did you mean 'VGG16'"):
        published.overlaid(f"{TABLE}:VGG-16")


def test_an_unknown_overlay_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'tf_dgx1_p100_synth'"):
        config = {"report": {"overlay": "tf_dgx1_p100_sinth"}}
        draw_scaling(find(RunFolder(fabricate.run_folder(tmp_path, config=config))))


@pytest.mark.parametrize(
    "facts", [{"rounds": 0}, {"devices": (1,)}, {"devices": (3, 5, 6, 7), "rounds": 2}, {"cores": 0}]
)
def test_odd_runs_can_be_drawn(tmp_path: Path, facts: dict[str, Any]) -> None:
    assert rendered(rows_of(tmp_path, **facts))["svg"]


def test_the_users_settings_are_left_alone(tmp_path: Path) -> None:
    before, level = dict(matplotlib.rcParams), logging.getLogger("fontTools").level
    rendered(rows_of(tmp_path))
    assert dict(matplotlib.rcParams) == before and logging.getLogger("fontTools").level == level


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.2), (1.0, 2.0), (1800.0, 4200.0), (3.0, 7e6), (0.02, 0.3)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    ticks = axes.round_ticks(low, high)
    assert 2 <= len(ticks) <= 7
    assert all(low <= tick <= high for tick in ticks)
