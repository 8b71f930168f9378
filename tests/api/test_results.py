# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Results as tables, figures and HTML, from committed runs."""

import base64
import csv
import html
import json
import re
import shutil

import fabricate_forecasts
import fabricate_losses
import numpy as np
import pandas as pd
import pytest
from fabricate_losses import Loss
from house.tree import ROOT

import jaxbench as jb
from jaxbench.features.forecast import forecasts
from jaxbench.report.drawing.notes import spoken

CNN = ROOT / "docs" / "figures" / "cnn"


@pytest.fixture(scope="module")
def run():
    return jb.load(CNN)


def test_the_table_is_summary_csv_with_numbers_as_numbers(run):
    rows = list(csv.DictReader((CNN / "summary.csv").read_text().splitlines()))
    assert list(run.table) == list(rows[0]) and len(run.table) == len(rows)
    for name in ("devices", "step_s", "efficiency_lo", "peak_bytes"):
        assert pd.api.types.is_numeric_dtype(run.table[name]), name
        for value, row in zip(run.table[name], rows, strict=True):
            assert np.isnan(value) if row[name] == "" else value == pytest.approx(float(row[name]), rel=1e-6)
    assert run.table["oversubscribed"].dtype == bool


def test_records_have_one_row_for_each_timed_block(run):
    lines = [json.loads(line) for line in (CNN / "records.jsonl").read_text().splitlines()]
    rounds = [line for line in lines if line["kind"] == "round"]
    assert len(run.records) == sum(len(line["block_s"]) + len(line["double_block_s"]) for line in rounds)
    first = run.records.iloc[0]
    line = next(each for each in rounds if (each["point"], each["round"]) == (first["point"], first["round"]))
    assert first["block_s"] == line["block_s"][0] and first["step_s"] == line["block_s"][0] / line["steps"]
    second = run.records[run.records.clock == 2]
    assert (second.steps % 2 == 0).all() and np.allclose(second.step_s * second.steps, second.block_s)


def test_figures_display_themselves_and_can_be_restyled(run):
    assert [*run.figures][:2] == ["scaling", "waterfall"] and [*run.figures][2:] == ["blocks"]
    shown = run.figures["scaling"]
    png, about = shown._repr_png_()
    assert png == (CNN / "figures" / "scaling.png").read_bytes() and about == {"width": 700}
    shown.figure.axes[0].set_title("mine")
    assert shown.figure.axes[0].get_title() == "mine", "each access gives the same figure"
    assert shown._repr_png_()[0].startswith(b"\x89PNG") and shown._repr_png_()[0] != png


def test_a_run_without_drawn_files_draws_them(tmp_path):
    for name in ("manifest.json", "config.json", "records.jsonl"):
        shutil.copy(CNN / name, tmp_path)
    found = jb.load(tmp_path).figures
    assert "waterfall" in found and found["waterfall"].png.startswith(b"\x89PNG")


def test_a_notebook_shows_headline_figures_and_table_and_a_terminal_one_line():
    run = jb.load(CNN)
    page = run._repr_html_()
    assert run.headline in page and page.count("<img ") == 2 and page.count("<table>") == 1
    image = re.search(r"base64,([^\"]+)", page)[1]
    assert base64.b64decode(image) == (CNN / "figures" / "scaling.png").read_bytes()
    assert "Why not 100 %" in page and "More figures: " in page
    assert repr(run) == f"Run('{CNN}'): {run.headline}" and "\n" not in repr(run)
    assert run.ok and run.sentences["Why not 100 %"]


def test_text_of_a_run_is_escaped(tmp_path):
    for name in ("manifest.json", "config.json", "records.jsonl"):
        text = (CNN / name).read_text().replace('"cnn"', '"<b>c</b>"')
        (tmp_path / name).write_text(re.sub(r',\s*"sha256":\s*"\w+"', "", text))
    page = jb.load(tmp_path)._repr_html_()
    assert "<b>c</b>" not in page and "&lt;b&gt;c&lt;/b&gt;" in page


def test_a_wrong_folder_is_one_sentence(tmp_path):
    with pytest.raises(jb.JaxbenchError, match="is not a folder: give the results folder"):
        jb.load(tmp_path / "none")
    (tmp_path / "account.jsonl").touch()
    with pytest.raises(jb.JaxbenchError, match="has no metrics.jsonl"):
        jb.load(tmp_path)


def test_an_incomplete_run_says_so(tmp_path):
    for name in ("manifest.json", "config.json"):
        shutil.copy(CNN / name, tmp_path)
    lines = (CNN / "records.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "records.jsonl").write_text("".join(lines[:12]))
    run = jb.load(tmp_path)
    assert not run.ok and spoken(run.shortfalls[0]) in run._repr_html_() and run.headline == run.shortfalls[0]


def test_a_comparison_has_a_verdict_and_a_table(tmp_path):
    usual = Loss(share=0.97, machine=0.91, communication=0.7)
    a = fabricate_losses.folder(tmp_path / "a", {2: usual}, noise=0.004)
    b = fabricate_losses.folder(tmp_path / "b", {2: Loss(share=0.97, machine=0.93, communication=0.98)}, noise=0.005)
    found = jb.compare(jb.load(a), b)
    assert found.verdict == "faster" and list(found.table)[:4] == ["point", "a", "b", "ratio"]
    two = found.table[found.table["point"].str.endswith("strong/2")].iloc[0]
    assert two["ratio"] == pytest.approx(two["b"] / two["a"], rel=0.01) and two["ratio_lo"] < two["ratio"] < 0.8
    assert found.headline.startswith("Faster") and found.headline in html.unescape(found._repr_html_())
    assert [*found.figures] == ["verdicts", "factors"] and "\n" not in repr(found)
    with pytest.raises(jb.JaxbenchError, match="--metric=speed cannot be compared"):
        jb.compare(a, b, metric="speed")
    with pytest.raises(jb.JaxbenchError, match="between 0 and 1"):
        jb.compare(a, b, margin=2)
    with pytest.raises(jb.JaxbenchError, match="give two runs"):
        jb.compare(a, a)


def test_a_machine_profile_is_a_table_of_numbers():
    found = jb.load(ROOT / "docs" / "figures" / "machine")
    assert {*found.table["list"]} == {"peaks", "launch", "links", "transfers"}
    assert pd.api.types.is_numeric_dtype(found.table["value"]) and "Matrix products" in found.headline
    assert "machine profile" in found._repr_html_()


def test_forecasts_are_a_table(tmp_path):
    forecasts.write(tmp_path, [fabricate_forecasts.compiled(8).forecast])
    found = jb.load(tmp_path)
    assert found.table["target"].tolist() == ["h100:8"] and found.table["peak_bytes"].dtype.kind in "if"
    assert "h100:8" in found._repr_html_()
