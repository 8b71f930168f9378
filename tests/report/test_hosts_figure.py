# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Bars of ideal and measured over processes or hosts, with the efficiency above them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fabricate
import pytest
from matplotlib.axes import Axes

from jaxbench.records import store
from jaxbench.records.store import RunFolder
from jaxbench.report import findings, views
from jaxbench.report.drawing import canvas
from jaxbench.report.figures.training import draw_hosts


def panels(path: Path, *, processes: Callable[[int], int], hosts: int = 1, **facts: Any) -> list[Axes]:
    """The panels of a run with `processes(devices)` processes per point, on up to `hosts` hosts."""
    made = {"law": fabricate.amdahl(0.1), "devices": (1, 2, 4), "noise": 0.001, "drift": 0.0, "rounds": 5, **facts}
    fabricate.run_folder(path, **made)
    lines, workers = [], {}
    for line in map(json.loads, (path / store.RECORDS).read_text().splitlines()):
        if line["kind"] == "point":
            line["processes"] = processes(line["devices"])
            line["worker"] = f"session0/cpu{line['devices']}"
            names = [f"h{process * hosts // line['processes']}" for process in range(line["processes"])]
            workers[line["worker"]] = {"hosts": names} if len(set(names)) > 1 else {}
        lines.append(json.dumps(line))
    (path / store.RECORDS).write_text("\n".join(lines) + "\n")
    manifest = json.loads((path / store.MANIFEST).read_text())
    store.write_json(path / store.MANIFEST, {**manifest, "workers": workers})
    run = findings.find(RunFolder(path))
    assert "hosts" in views.of(run)
    with canvas.style():
        drawn = draw_hosts(run)
    return [] if drawn is None else drawn.axes


def names(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def test_ideal_and_measured_stand_side_by_side_and_the_efficiency_above(tmp_path: Path) -> None:
    strong, weak = panels(tmp_path, processes=lambda devices: devices)
    assert names(strong) == ["1 process", "2 processes", "4 processes"]
    ideal, measured = ([bar.get_height() for bar in strong.patches[half::2]] for half in (0, 1))
    assert ideal == pytest.approx([ideal[0], 2 * ideal[0], 4 * ideal[0]])
    shares = [m / i for m, i in zip(measured, ideal, strict=True)]
    assert shares == pytest.approx([1, 1 / 1.1, 1 / 1.3], rel=0.02)
    assert [text.get_text() for text in strong.texts] == [f"{100 * share:.0f} %" for share in shares]
    assert strong.get_ylabel() == "images/s" and weak.get_title(loc="left") == "shard_map, weak scaling"
    for text in strong.texts:
        assert text.xy[1] >= max(ideal[round(text.xy[0])], measured[round(text.xy[0])])


def test_hosts_are_named_where_there_are_several(tmp_path: Path) -> None:
    strong, _ = panels(tmp_path, processes=lambda devices: min(devices, 2), hosts=2)
    assert names(strong) == ["1 host", "2 hosts", "2 hosts\n4 devices"]


def test_one_process_has_no_such_figure(tmp_path: Path) -> None:
    assert panels(tmp_path, processes=lambda devices: 1) == []
