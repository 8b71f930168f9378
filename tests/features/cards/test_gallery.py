# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""All cards in one table and one figure; damaged cards and cards that are not drawn are reported."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from doorway import ROOT
from fabricate_cases import case_folder, matmul
from features.cards import card_cases
from rich.console import Console

from jaxbench.errors import UserError
from jaxbench.features.cards import card as cards
from jaxbench.features.cards import gallery
from jaxbench.features.cards.gallery import CardCurve, draw_cards
from jaxbench.report.drawing import canvas, marks
from jaxbench.report.drawing.marks import Mark
from jaxbench.statistics.bootstrap import Estimate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An H100 with two strategies, one point of them wrong and one failed, and a processor with too few cores."""
    runs, folder = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("shown") / "cards"
    gpu = {"platform": "gpu", "device_kind": "NVIDIA H100", "device_kinds": ["NVIDIA H100"], "devices": 8}
    first = card_cases.run(
        runs / "gpu", manifest=gpu, strategies=("zero1", "zero3"), scalings=("strong",), platform="gpu",
        device_kind="NVIDIA H100", wrong=("zero1/strong/4",),
    )  # fmt: skip
    card_cases.append(first, card_cases.failure("zero3/strong/8"))
    card_cases.made(first, folder)
    second = card_cases.run(runs / "cpu", manifest={"cores": 2, "started": "2026-01-02"}, devices=(1, 2, 4), cores=2)
    card_cases.made(second, folder)
    return folder


def shown(folder: Path, *filters: str) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=140, markup=False)
    code = gallery.cards(folder, filters, console)
    return code, console.file.getvalue()  # type: ignore[attr-defined]


def lines(text: str) -> list[str]:
    """The rows of the table."""
    return [line for line in text.splitlines() if re.search(r"(strong|weak) +\d", line)]


def test_every_point_is_a_row_and_filters_know_every_field(folder: Path) -> None:
    code, text = shown(folder)
    assert code == 0 and len(lines(text)) == 8 + 6
    assert re.search(r"8 x NVIDIA H100 +cnn +zero1 strong +2 .* ok +0.10.2 +2026-11-21", text)
    assert re.search(r"zero1 strong +4 .* wrong ", text) and re.search(r"zero3 strong +8 .* failed ", text)
    oversubscribed = [line for line in lines(text) if " 4° " in line]
    assert len(oversubscribed) == 2 and not any("[" in line for line in oversubscribed)
    assert re.search(r"Testium 9000, 2 cores +cnn +shard_map weak +1 .* base +ok", text)
    assert all((folder / f"cards.{suffix}").stat().st_size > 1000 for suffix in canvas.FORMATS)
    (first, *_) = gallery.rows_of(cards.read(next(folder.glob("*.json"))))
    assert set(first.fields) == set(gallery.FIELDS)


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (["strategy=zero*"], 8), (["strategy=ZERO1", "devices=4"], 1), (["devices=1,8"], 6), (["platform=cpu"], 6),
        (["devices=1", "devices=2"], 8), (["machine=*h100*", "state=ok"], 6), (["experiment=cn", "devices=1"], 0),
        (["date=2026-01-*", "scaling=weak", "jax=0.10*", "device_kind=cpu"], 3), (["card=cnn-cpu-*"], 6),
    ],
)  # fmt: skip
def test_filters(folder: Path, filters: list[str], count: int) -> None:
    code, text = shown(folder, *filters)
    assert code == 0 and len(lines(text)) == count
    assert f"{count} of 14 rows match {' '.join(filters)}." in text


def test_the_filter_of_make_help_finds_committed_cards(tmp_path: Path) -> None:
    (example,) = re.findall(r'make cards FILTER="([^"]+)"', (ROOT / "Makefile").read_text())
    for path in (ROOT / "cards").glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    code, text = shown(tmp_path, *example.split())
    named = "-".join(re.sub(r"[^a-z0-9]+", "-", word) for word in example.split())
    assert code == 0 and lines(text) and (tmp_path / f"cards-{named}.svg").is_file()
    assert not (tmp_path / "cards.svg").exists(), "the figure of all cards, which a project commits, stays as it is"


@pytest.mark.parametrize(
    ("word", "said"),
    [("stratgy=x", "did you mean 'strategy'"), ("cnn", "is not a filter"), ("devices=", "is not a filter")],
)
def test_filters_that_are_none(folder: Path, word: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        shown(folder, word)


def test_a_damaged_card_does_not_hide_the_others(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "half.json").write_text('{"kind": ')
    code, text = shown(tmp_path)
    assert code == 1 and len(lines(text)) == 14
    assert re.search(r"half.json +damaged", text) and "half.json is damaged (Expecting value" in text


def test_no_cards_and_one_device_count_are_said(tmp_path: Path) -> None:
    code, text = shown(tmp_path)
    assert code == 0 and f"{tmp_path} holds no result card" in text
    with pytest.raises(UserError, match="no folder"):
        shown(tmp_path / "nowhere")
    card_cases.made(card_cases.run(tmp_path / "one", devices=(1,)), tmp_path / "cards")
    card_cases.made(card_cases.run(tmp_path / "two", devices=(1, 2), experiment="mlp"), tmp_path / "cards")
    assert "only one device count: cnn." in shown(tmp_path / "cards")[1]


def test_two_files_of_one_run(folder: Path, tmp_path: Path) -> None:
    path = sorted(folder.glob("*cpu*.json"))[0]
    (tmp_path / "a.json").write_bytes(path.read_bytes())
    (tmp_path / "b.json").write_bytes(path.read_bytes())
    assert "'a.json' and 'b.json' are the same card: delete one." in shown(tmp_path)[1]
    card_cases.forge(tmp_path / "b.json", notes=["another"])
    assert "are two cards of one run, started 2026-01-02" in shown(tmp_path)[1]


def test_cases_are_in_the_table_and_not_in_the_figure(tmp_path: Path) -> None:
    run = case_folder(tmp_path / "run", [matmul(512, call_s=0.01), matmul(1024, call_s=0.08)], view="matmul")
    card_cases.made(run, tmp_path / "cards")
    code, text = shown(tmp_path / "cards")
    assert code == 0 and re.search(r"matmul +matmul float32 \(largest of 2\) +1 +(7[89]|80)\.\d", text)
    assert "The figure was not drawn" in text and not list((tmp_path / "cards").glob("*.svg"))


def test_hostile_names(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>[red]$x^2$\x1b[31m--&"
    run = card_cases.run(tmp_path / "run", experiment=name, manifest={"cpu_model": name}, strategies=("a]b<i>",))
    path = card_cases.made(run, tmp_path / "cards")
    assert re.fullmatch(r"[a-z0-9_.-]+", path.name)
    code, text = shown(tmp_path / "cards")
    assert code == 0 and "\x1b" not in text and "ed]$x^2$ [31m" in text
    svg = (tmp_path / "cards" / "cards.svg").read_text()
    ElementTree.fromstring(svg)
    assert "<script" not in svg


def line(
    strategy: str = "zero1", *, devices: tuple[int, ...] = (1, 2, 4), machine: str = "m", state: str = "solid"
) -> CardCurve:
    marks = [Mark(at=n, value=Estimate(value=100 / n, lo=90 / n, hi=110 / n), state=state) for n in devices]
    return CardCurve(machine=machine, experiment="cnn", strategy=strategy, scaling="strong", marks=tuple(marks))


def test_the_figure_draws_what_it_is_given() -> None:
    with canvas.style():
        drawn = draw_cards([line(), line("zero3", state="hollow"), line(state="wrong", machine="n")], title="all")
    assert drawn is not None and draw_cards([line(devices=(1,))], title="all") is None, "it needs two device counts"
    (axes,) = [axes for axes in drawn.axes if axes.axison]
    curves = [one for one in axes.lines if one.get_linestyle() == "-" and len(one.get_xdata()) == 3]
    assert len(curves) == 2, "no line goes through wrong points"
    assert all([round(y) for y in curve.get_ydata()] == [100, 50, 25] for curve in curves)  # type: ignore[union-attr]
    hollow = [one for one in axes.lines if one.get_markerfacecolor() == "white" and len(one.get_xdata())]
    crossed = [one for one in axes.lines if one.get_marker() == "x" and len(one.get_xdata())]
    assert len(hollow) == 1 and len(crossed) == 3
    labels = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert labels == ["m: zero1, strong", "m: zero3, strong", "n: zero1, strong", "ideal"]


def test_no_two_of_many_lines_look_alike() -> None:
    assert len({marks.series_style(i) for i in range(49)}) == 49
