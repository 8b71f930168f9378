# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A report is complete, reproducible, safe to open, explicit about problems, and made without jax."""

import csv
import dataclasses
import io
import json
import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import fabricate
import fabricate_arms
import pytest
from report import runs
from rich.console import Console
from thin import thin

from jaxbench.core import schema, store
from jaxbench.errors import UserError
from jaxbench.report import build, page
from jaxbench.report.run_report import find

HOSTILE = '<script>alert("x")</script>&{{ 7 * 7 }}--><b>[/x][bold]x[/bold]cnn[bs]:smile:my$\\bad$x$x$back\\'


def _summary(path: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    with open(path / "summary.csv", newline="") as file:
        return {(row["strategy"], row["scaling"], row["devices"]): row for row in csv.DictReader(file)}


@pytest.mark.usefixtures("every_format")
def test_a_whole_run_is_ok_and_everything_is_there(tmp_path: Path) -> None:
    fabricate.run_folder(tmp_path, cores=2)
    outcome = build.write(tmp_path)
    assert outcome.ok and outcome.sentences == []
    made = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    figures = {f"figures/{name}.{suffix}" for name in ("scaling", "blocks") for suffix in ("svg", "png", "pdf")}
    inputs = {store.MANIFEST, store.CONFIG, store.RECORDS}
    assert made == {"summary.csv", "report.html", *figures, *inputs}, "no part files are left"


@runs.undrawn()
def test_the_summary_says_what_was_measured(tmp_path: Path) -> None:
    build.write(fabricate.run_folder(tmp_path, cores=2, noise=0, drift=0, base_step_s=0.01))
    rows = _summary(tmp_path)
    assert len(rows) == 8
    row = rows["shard_map", "strong", "2"]
    expected = {"experiment": "cnn", "platform": "cpu", "global_batch": "256", "samples": "10", "check_ok": "true"}
    expected |= {"status": "ok", "oversubscribed": "false", "throughput_unit": "images/s", "step_s": "0.00525"}
    expected |= {"gradient_bytes": "246824", "mfu": "", "base_devices": "1", "compile_s": "1.25", "reason": ""}
    assert {key: row[key] for key in expected} == expected
    assert rows["shard_map", "strong", "8"]["oversubscribed"] == "true"
    assert "inf" not in {cell.lower() for r in rows.values() for cell in r.values()}
    assert "nan" not in {cell.lower() for r in rows.values() for cell in r.values()}


@runs.undrawn()
def test_missing_failed_partial_and_wrong_points_are_shown_and_not_ok(tmp_path: Path) -> None:
    fabricate.run_folder(tmp_path, rounds=4, wrong=("shard_map/weak/1",))
    gone = ("shard_map/strong/8", None), ("shard_map/strong/4", 2)
    fabricate.edit(tmp_path, lambda line: not {(line["point"], None), (line["point"], line.get("round"))} & {*gone})
    failure = schema.FailureRecord(
        point="shard_map/weak/8", experiment="cnn", strategy="shard_map", scaling="weak", devices=8, global_batch=2048,
        stage="measure", reason="out of memory: use less.", detail="Traceback <b>here</b>",
    )  # fmt: skip
    with open(tmp_path / store.RECORDS, "a") as file:
        file.write(json.dumps(schema.to_json(failure)) + "\n")
    outcome = build.write(tmp_path)
    assert not outcome.ok
    said = " ".join(outcome.sentences)
    assert ".." not in said
    for sentence in (
        "shard_map/strong/8 is missing: no round was measured.",
        "shard_map/strong/4 is partial: 3 of 4 rounds were measured.",
        "shard_map/weak/8 is recorded as failed: measure: out of memory: use less.",
        "shard_map/weak/1 is wrong: parameters: differ from those of one device.",
    ):
        assert sentence in said
    rows = _summary(tmp_path)
    missing = rows["shard_map", "strong", "8"]
    unknown = ("step_s", "samples", "throughput", "speedup", "efficiency", "compile_s", "peak_bytes", "check_ok")
    assert [missing[name] for name in unknown] == [""] * len(unknown)
    assert rows["shard_map", "weak", "1"]["check_ok"] == "false"
    html = (tmp_path / "report.html").read_text()
    assert "Traceback &lt;b&gt;here" in html and "out of memory" in html


@runs.undrawn()
def test_unchecked_points_are_not_ok(tmp_path: Path) -> None:
    fabricate.run_folder(tmp_path, devices=(1,), scalings=("strong",))
    fabricate.edit(tmp_path, lambda line: line.update(checks=[]) if line["kind"] == "point" else None)
    assert build.write(tmp_path).sentences == ["shard_map/strong/1 is unchecked."]
    assert _summary(tmp_path)["shard_map", "strong", "1"]["check_ok"] == ""


@pytest.mark.parametrize(
    "make",
    [
        lambda path: fabricate.write(path, plan=[], records=[], rounds=1),
        lambda path: fabricate_arms.lever_folder(path, [], ["remat"]),
        lambda path: runs.folder(path, "matmul", []),
    ],
)
def test_an_empty_plan_is_not_ok(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path)
    outcome = build.write(tmp_path)
    assert not outcome.ok and outcome.sentences == ["The plan asks for no points."]


@pytest.mark.parametrize("kind", ["steps", *runs.VIEWS])
@runs.blank()
def test_nothing_measured_still_makes_a_page(tmp_path: Path, kind: str) -> None:
    folder = fabricate.run_folder(tmp_path, rounds=0) if kind == "steps" else runs.folder(tmp_path, kind, rounds=0)
    assert not build.write(folder).ok
    assert "No headline: nothing was measured." in (tmp_path / "report.html").read_text()


def hostile(path: Path, kind: str) -> None:
    """A run with hostile text wherever a name can be. kind: "steps", "levers", or a view of cases."""
    if kind == "steps":
        config = {"report": {"overlay": ""}, "name": HOSTILE}
        named = dict(experiment=HOSTILE, strategies=(HOSTILE, "other"), wrong=(f"{HOSTILE}/weak/1",))
        fabricate.run_folder(path, config=config, **named)
        records = (path / store.RECORDS).read_text()
        (path / store.RECORDS).write_text(records.replace('"unit":"images"', f'"unit":{json.dumps(HOSTILE)}'))
    elif kind == "levers":
        arms = [fabricate_arms.arm(0.01, freeze="none"), fabricate_arms.arm(0.005, freeze=HOSTILE)]
        arms.append(fabricate_arms.arm(0.005, freeze="x", failed=HOSTILE))
        fabricate_arms.lever_folder(path, arms, ["freeze"], experiment=HOSTILE)
    else:
        names = dict.fromkeys(("op", "dtype", "impl", "experiment"), HOSTILE)
        cases = [dataclasses.replace(m, record=dataclasses.replace(m.record, **names)) for m in runs.VIEWS[kind]()[:4]]
        cases[0] = dataclasses.replace(cases[0], failure=HOSTILE)
        runs.folder(path, kind, cases, left_out=[HOSTILE], config={"measures": "cases", "name": HOSTILE})


@pytest.mark.parametrize("kind", ["steps", "levers", *thin([*runs.VIEWS], 3)])
def test_hostile_names_are_escaped_everywhere(tmp_path: Path, kind: str) -> None:
    hostile(tmp_path, kind)
    with open(tmp_path / "out.txt", "w") as file:
        build.write(tmp_path, Console(width=600, file=file))
    html, shown = runs.unscripted((tmp_path / "report.html").read_text()), (tmp_path / "out.txt").read_text()
    assert "<script" not in html and "<b>" not in html and "<!--" not in html
    assert HOSTILE in unescape(html) and "49" not in html.split("</title>")[0]
    assert HOSTILE in shown
    if kind == "steps":
        assert _summary(tmp_path)[HOSTILE, "strong", "1"]["experiment"] == HOSTILE
        for text in (f"{HOSTILE}: how training scales", f"{HOSTILE}/s ", f"{HOSTILE}/weak/1 is wrong"):
            assert text in shown
        assert re.search(rf"{re.escape(HOSTILE)} +strong", shown)


@runs.blank()
def test_on_paper_nothing_is_cut_off_or_headed_without_content(tmp_path: Path) -> None:
    build.write(fabricate.run_folder(tmp_path, experiment="/a/long/path" * 20))
    html = (tmp_path / "report.html").read_text()
    screen, paper = html.split("@media print {")
    assert re.search(r"body {[^}]*overflow-wrap: anywhere", screen), "long names wrap"
    assert ".wide, pre { overflow: visible; }" in paper and "th, td { white-space: normal;" in paper
    assert (
        '<section class="folds">\n<details id="points">' in html and '<section class="folds" id="provenance">' in html
    )
    assert "section.folds:not(:has(> details[open]))" in paper and html.count("<section") == html.count("</section>")


@pytest.mark.parametrize(
    "make",
    [
        lambda path: fabricate.run_folder(path, config={"report": {"overlay": "tf_dgx1_p100_synth"}}),
        lambda path: runs.folder(path, "collectives"),
    ],
)
def test_no_request_can_leave_the_page(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    build.write(make(tmp_path))
    html = runs.unscripted((tmp_path / "report.html").read_text())
    assert "default-src 'none'" in html
    assert not re.search(r"https?://|//\w+\.\w+|@import|<script|<link|<iframe|<img|<image|<object|\bon\w+=", html)
    assert set(re.findall(r'(?:href|src)="([^"]{0,1})', html)) <= {"#"}
    assert not re.search(r"url\((?!#)", html)


TABLES: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "training": (
        lambda path: fabricate.run_folder(path, strategies=("jit_explicit",), cores=2),
        ("base", "efficiency", "Amdahl"),
    ),
    **{
        f"levers/{kind}": (lambda path, kind=kind: fabricate_arms.folder(path, kind), ("baseline", "Baseline"))
        for kind in fabricate_arms.RUNS
    },
    **{f"cases/{view}": (lambda path, view=view: runs.folder(path, view), ()) for view in runs.VIEWS},
}
FITS = [(kind, width) for kind in TABLES for width in (60, 80, 100, 160) if width > 60 or not kind.startswith("cases")]


@pytest.mark.parametrize(("kind", "width"), thin(FITS))
def test_the_terminal_table_fits(tmp_path: Path, kind: str, width: int) -> None:
    make, words = TABLES[kind]
    shown = build.find(make(tmp_path)).page([])

    def printed(width: int) -> tuple[str, list[set[str]]]:
        """The text, and the words of each table's first line."""
        console = Console(width=width, file=(file := io.StringIO()))
        page.show(shown, console)
        lines = file.getvalue().splitlines()
        return file.getvalue(), [set(lines[at - 1].split()) for at, line in enumerate(lines) if line.startswith("───")]

    text, heads = printed(width)
    assert max(map(len, text.splitlines())) <= width
    assert all(word in text for word in words)
    assert "…" not in text or not kind.startswith("cases"), "no number is cut"
    whole = printed(160)[1]
    assert len(heads) == len(whole)
    assert width < 80 or all(head <= all_of_it for head, all_of_it in zip(heads, whole, strict=True)), (
        "no word is folded"
    )


def test_the_terminal_has_five_notes_of_all_sections_and_counts_the_others(tmp_path: Path) -> None:
    made = find(store.RunFolder(fabricate.run_folder(tmp_path, rounds=0))).page([])
    kinds = {page.Purpose.SHORTFALL: "amiss", page.Purpose.NOTE: "note", page.Purpose.DETAIL: "detail"}
    sizes = ((page.Purpose.SHORTFALL, 2), (page.Purpose.NOTE, 4), (page.Purpose.DETAIL, 1), (page.Purpose.NOTE, 1))
    parts = [
        page.Section(heading=f"Part {at}", sentences=[f"{kinds[of]} {at}.{nr}" for nr in range(count)], purpose=of)
        for at, (of, count) in enumerate([*sizes, (page.Purpose.NOTE, 3)])
    ]
    console = Console(width=80, file=io.StringIO())
    page.show(dataclasses.replace(made, sections=parts), console)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert "Failed: amiss 0.0" in lines
    assert lines[lines.index("Part 0") :] == [
        "Part 0", "amiss 0.1", "Part 1", "note 1.0", "note 1.1", "Part 3", "note 3.0", "Part 4",
        "note 4.0", "note 4.1", "And 3 more on the page.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda p: (p / store.MANIFEST).unlink(), "not a run folder: it has no manifest.json"),
        (lambda p: (p / store.CONFIG).unlink(), "not a run folder: it has no config.json"),
        (lambda p: (p / store.MANIFEST).write_text("{"), "manifest.json is damaged"),
        (lambda p: store.write_json(p / store.MANIFEST, {}), "no sweep plan"),
        (lambda p: (p / store.RECORDS).write_text("x\n" + (p / store.RECORDS).read_text()), "line 1 is damaged"),
        (
            lambda p: store.write_json(p / store.CONFIG, {"report": {"overlay": "tf_dgx1"}}),
            "overlay=tf_dgx1 is unknown",
        ),
        (shutil.rmtree, "is not a folder"),
        (lambda p: ((p / "figures").rmdir(), (p / "figures").write_text("")), "cannot write the report"),
    ],
)
def test_bad_folders_end_in_one_sentence(tmp_path: Path, spoil: Any, said: str) -> None:
    spoil(fabricate.run_folder(tmp_path / "run"))
    with pytest.raises(UserError, match=re.escape(said)):
        build.write(tmp_path / "run")


@runs.undrawn()
def test_a_cut_last_line_is_said_on_the_page(tmp_path: Path) -> None:
    path = fabricate.run_folder(tmp_path) / store.RECORDS
    path.write_bytes(path.read_bytes()[:-9])
    outcome = build.write(tmp_path)
    assert not outcome.ok
    assert "unfinished, skipped" in (tmp_path / "report.html").read_text()


def unsupported(path: Path, points: list[str], *, strategy: str) -> build.RunOutcome:
    """The report of a run with these unsupported points of zero2, and its requested points."""
    config = {"model": {"dtype": "float32"}, "report": {"overlay": ""}, "strategy": strategy}
    fabricate.run_folder(path, strategies=("shard_map", "zero2"), devices=(1, 2), config=config)
    records = path / store.RECORDS
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    lines = [line for line in lines if line["point"] not in points]
    for point in points:
        name, scaling, devices = point.split("/")
        failure = schema.FailureRecord(
            point=point, experiment="cnn", strategy=name, scaling=scaling, devices=int(devices), global_batch=256,
            stage="compile", reason=f"line 7 of {devices}: use jit_auto.", unsupported=True,
        )  # fmt: skip
        lines.append(schema.to_json(failure))
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return build.write(path, console=Console(file=io.StringIO()))


ALL_OF_IT = [f"zero2/{scaling}/{devices}" for scaling in ("strong", "weak") for devices in (1, 2)]


@runs.undrawn()
def test_a_model_refused_by_one_of_all_strategies_is_listed_once_and_fails_nothing(tmp_path: Path) -> None:
    assert unsupported(tmp_path, ALL_OF_IT, strategy="all").ok
    rows = _summary(tmp_path)
    assert {row["status"] for key, row in rows.items() if key[0] == "zero2"} == {"unsupported"}
    assert rows["zero2", "weak", "2"]["reason"] == "line 7 of 2: use jit_auto."
    html = (tmp_path / "report.html").read_text()
    assert "Not supported" in html and html.count("zero2: line 7 of 1: use jit_auto.") == 1
    assert "Incomplete or failed" not in html and "no fit for zero2" not in html
    assert "zero2 strong" not in html and not re.search(r"<td[^>]*>unsupported", html), "no row without a number"


@runs.undrawn()
def test_a_strategy_that_was_named_and_cannot_take_the_model_or_some_points_is_not_ok(tmp_path: Path) -> None:
    outcome = unsupported(tmp_path, ALL_OF_IT, strategy="shard_map,zero2")
    assert outcome.sentences == ["zero2: line 7 of 1: use jit_auto."] and not outcome.ok
    assert "Not supported" not in (tmp_path / "report.html").read_text()
    outcome = unsupported(tmp_path / "some", ALL_OF_IT[:1], strategy="shard_map,zero2")
    assert outcome.sentences == ["zero2/strong/1: line 7 of 1: use jit_auto."]


@runs.undrawn()
def test_a_run_that_no_strategy_can_take_is_not_ok(tmp_path: Path) -> None:
    others = [point.replace("zero2", "shard_map") for point in ALL_OF_IT]
    assert len(unsupported(tmp_path, [*ALL_OF_IT, *others], strategy="all").sentences) == 2
