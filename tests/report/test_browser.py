# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every kind of page in a real browser: no sideways scrolling, no dead link, and a dark mode that is dark."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape, unescape
from pathlib import Path
from typing import Any

import fabricate
import fabricate_arms
import fabricate_cases
import pytest
from features.machine_profile.test_machine import ALL, made
from house.tree import ROOT
from report import runs
from suites.test_first_run_page import document, item

from jaxbench.core import schema
from jaxbench.core.store import RunFolder, write_json
from jaxbench.features.machine_profile import page as machine
from jaxbench.report import compiled_report, page, run_report
from jaxbench.report.page import Picture
from jaxbench.suites import first_run_page as first_run

SCREEN = 900  # pixels of height
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
COMMAND = shutil.which(next((name for name in NAMES if shutil.which(name)), "")) or ""
needed = pytest.mark.skipif(not COMMAND, reason="no Chromium here: pages were not laid out")

# Runs in the frame's parent, because pages allow no script but their own. All details are opened first.
_MEASURE = """
onload = () => {
  const found = [...document.querySelectorAll('iframe')].map(frame => {
    const page = frame.contentDocument;
    const shown = [...page.querySelectorAll('body > .wide, body > section:not(.folds):not(.definitions)')];
    const reader = Math.max(0, ...shown.map(element => element.getBoundingClientRect().bottom));
    page.querySelectorAll('details').forEach(fold => fold.open = true);
    const high = () => [...page.querySelectorAll('.tall > div')].map(element => element.clientHeight), closed = high();
    page.querySelectorAll('.tall input').forEach(box => box.click());
    const named = element => `${element.tagName} ${element.textContent.trim().slice(0, 60)}`;
    const wide = element => element.scrollWidth > element.clientWidth;
    const figures = [...page.querySelectorAll('.figures figure')].map(figure => figure.getBoundingClientRect());
    return {
      reader: reader,
      width: page.documentElement.scrollWidth,
      room: page.documentElement.clientWidth,
      cut: [...page.querySelectorAll('.wide, pre')].filter(wide).map(e => `${named(e)}: ${e.scrollWidth}`),
      tall: closed.map((height, at) => [height, high()[at]]),
      figures: figures.map(box => [box.left, box.top, box.width]),
      lost: [...page.querySelectorAll('a[href^="#"]')].filter(a => !page.querySelector(a.hash)).map(named),
      ground: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
      ink: frame.contentWindow.getComputedStyle(page.body).color,
    };
  });
  document.body.textContent = JSON.stringify(found);
}
"""


def laid_out(pages: Mapping[str, str], width: int, folder: Path, options: Sequence[str] = ()) -> dict[str, Any]:
    """The measurements of HTML pages, by name, in a frame of `width` pixels."""
    frames = "".join(
        f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{escape(page)}"></iframe>'
        for page in pages.values()
    )
    file = folder / "frames.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{frames}<script>{_MEASURE}</script></body>")
    settings = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = [COMMAND, *settings, *options, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    body = re.search(r"<body>(\[.*\])</body>", done.stdout, flags=re.DOTALL)
    assert body is not None, done.stderr[-2000:]
    return dict(zip(pages, json.loads(unescape(body[1])), strict=True))


CAPTION = "A caption that is long enough for a line. " * 3
PICTURES = [Picture(name=name, svg=runs.SVG, caption=CAPTION) for name in "abc"]


def compiled(path: Path) -> Path:
    """A run that only compiled, of one point."""
    record = schema.CompiledRecord(
        point="shard_map/weak/256", experiment="gpt", devices=256, platform="tpu", device_kind="TPU v5 lite",
        mesh={"data": 256}, compile_s=1.5, peak_bytes=10**10, compiler_peak_bytes=9 * 10**9, temp_bytes=100,
        flops=1e6, product_flops=1e6, strategy="shard_map",
        collectives=(schema.Collective(kind="all-reduce", count=1, bytes=408, elements=100, scalar_bytes=8, axis="data",
                                       group=256, scalars=2, wire_bytes=408),),
        checks=(schema.Verdict(name="collectives", ok=False, reason="the compiled step moves " + "something " * 30),),
    )  # fmt: skip
    run = RunFolder.begin(path, {"experiment": "gpt"})
    run.append(record)
    run.close()
    point = {"point": record.point, "strategy": "shard_map", "scaling": "weak", "devices": 256, "global_batch": 2048}
    plan = {"measures": "compiled", "experiment": "gpt", "platform": "tpu", "points": [point]}
    write_json(path / "manifest.json", {"target": "v5e:16x16", "device_memory_bytes": 16 * 10**9, "plan": plan})
    return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """HTML by kind of run, with realistic, long names."""
    path, card = tmp_path_factory.mktemp("runs"), fabricate_cases.card()
    strategies = ("jit_explicit", "shard_map_bucketed")
    training = fabricate.run_folder(path / "training", strategies=strategies, cores=2, experiment="/a/long/path" * 20)
    found = {"training": run_report.find(RunFolder(training))}
    for kind in fabricate_arms.RUNS:
        found[f"levers {kind}"] = run_report.find(RunFolder(fabricate_arms.folder(path / kind, kind)))
    for view in runs.VIEWS:
        run = RunFolder(runs.folder(path / view, view, machine=card if view == "matmul" else None))
        found[f"cases {view}"] = run_report.find(run)
    found["compiled"] = compiled_report.find(RunFolder(compiled(path / "compiled")))
    html = {name: page.render(each.page(PICTURES)) for name, each in found.items()}
    folders, measured = made(path / "machine", views=ALL)
    machine.write(path / "machine", folders, measured)
    html["machine"] = (path / "machine" / machine.PAGE).read_text()
    html["first run"] = first_run.render(document(item("NO", why=["pmap: no. " * 40]), item("yes")), PICTURES)
    return html


@needed
def test_nothing_scrolls_sideways_at_1200_pixels(pages: dict[str, str], tmp_path: Path) -> None:
    found = laid_out(pages, 1200, tmp_path)
    assert {name: (each["cut"], each["lost"]) for name, each in found.items() if each["cut"] or each["lost"]} == {}
    assert {name: each["width"] for name, each in found.items() if each["width"] > 1200} == {}
    for name in set(found) - {"machine"}:
        one, two, *_ = found[name]["figures"]
        assert one[1] == two[1] and one[0] < two[0], "the first two are side by side"
    one, _, three = found["first run"]["figures"]
    assert three[1] > one[1] and three[2] > 2 * one[2], "a last one without a neighbour is as wide as both"


FIGURES = ROOT / "docs" / "figures"
COMMITTED = {str(path.relative_to(FIGURES)): path for path in sorted(FIGURES.rglob("*.html"))}


@pytest.mark.full
@needed
@pytest.mark.parametrize("width", [1280, 390], ids=["wide", "phone"])
def test_the_result_fits_on_two_screens(width: int, tmp_path: Path) -> None:
    """Of every committed page. What follows is folded: how it was measured, every point, definitions."""
    found = laid_out({name: path.read_text() for name, path in COMMITTED.items()}, width, tmp_path)
    ends = {name: each["reader"] for name, each in found.items()}
    assert {"cnn/report.html", "decode/report.html", "machine/machine.html"} < set(ends)
    assert {name: end for name, end in ends.items() if not 300 < end < 2 * SCREEN} == {}


@pytest.mark.full
@needed
def test_on_a_phone_only_tables_and_figures_scroll(pages: dict[str, str], tmp_path: Path) -> None:
    found = laid_out(pages, 400, tmp_path)
    assert {name: each["width"] for name, each in found.items() if each["width"] > 400} == {}
    assert len({left for left, *_ in found["training"]["figures"]}) == 1


@needed
def test_on_a_phone_a_tall_figure_is_cut_until_it_is_opened(tmp_path: Path) -> None:
    sheet = run_report.find(RunFolder(fabricate.run_folder(tmp_path / "run", cores=2)))
    tall, flat = (runs.SVG.replace(b"0 0 504 200", b"0 0 504 %d" % height) for height in (1500, 300))
    pictures = [Picture(name=name, svg=runs.SVG, narrow=narrow) for name, narrow in (("a", tall), ("b", flat))]
    found = laid_out({"training": page.render(sheet.page(pictures))}, 390, tmp_path)["training"]
    ((closed, opened),) = found["tall"]
    assert closed < SCREEN * 0.6 < SCREEN < opened


@needed
def test_in_the_dark_the_page_is_dark(pages: dict[str, str], tmp_path: Path) -> None:
    pages, dark = {"training": pages["training"]}, ["--blink-settings=preferredColorScheme=0"]
    found = laid_out(pages, 1200, tmp_path, dark)["training"]
    ground, ink = (sum(map(int, found[name][4:-1].split(","))) for name in ("ground", "ink"))
    assert ground < 100 < 600 < ink


def test_headings_of_tables_lead_to_their_definitions(pages: dict[str, str]) -> None:
    for name, anchors in {
        "training": ("time-per-step", "speed-up-and-efficiency", "intervals", "scaling-laws", "gates"),
        "levers arms": ("levers",),
        "cases collectives": ("collectives-conventions", "gates"),
        "compiled": ("compiled-for-hardware-that-is-not-here",),
        "machine": ("machinejson",),
    }.items():
        for anchor in anchors:
            assert f'href="#def-{anchor}"' in pages[name] and f'id="def-{anchor}"' in pages[name], (name, anchor)
    assert 'id="def-phases"' not in pages["training"], "only what the page's numbers rest on"
    assert "geometric mean over processes of each one" in pages["training"]
