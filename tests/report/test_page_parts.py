# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Parts of a page: definitions, the block timeline, profiles as tables, and the machine's state."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import fabricate
import numpy as np
import pytest
from fabricate import run_folder
from report.runs import drawn

from jaxbench.analysis import points
from jaxbench.core import schema
from jaxbench.core.schema import ProfileRecord, RoundRecord
from jaxbench.core.store import RunFolder
from jaxbench.digits import counted
from jaxbench.report import details, page, run_report, sentences
from jaxbench.report.drawing import notes
from jaxbench.report.figures.rounds import _strip, draw_blocks


def test_every_section_is_safe_to_carry() -> None:
    every = page.definitions()
    made = page.used(frozenset(every))
    assert [id for id, *_ in made] == [f"def-{anchor}" for anchor in every]
    text = "".join(html for *_, html in made)
    assert set(re.findall(r'(?:href|src)="([^"]{0,5})', text)) == {"#def-"}
    assert not re.search(r"https?://|<script|<img|<!--", text)
    assert {link for link in re.findall(r'href="#([^"]+)"', text)} <= {id for id, *_ in made}
    assert "<table>" in text and "<code>step_s</code>" in text


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("jit_auto/strong/2: 5 rounds.", "jit_auto strong on 2 devices: 5 rounds."),
        ("fsdp/weak/1/remat=block, a/weak/8: 3.", "fsdp weak on 1 device (remat: block), a weak on 8 devices: 3."),
        (
            "p/strong/2/accumulate=4,schedule=1f1b, b/weak/1: 3.",
            "p strong on 2 devices (accumulate: 4, schedule: 1f1b), b weak on 1 device: 3.",
        ),
        ("h/weak/8/mesh=data=2,fsdp=4: 3", "h weak on 8 devices (mesh: data=2, fsdp=4): 3"),
        ("copy/float32/4096/jit/cores1@cpu is wrong", "copy float32 4,096 jit on 1 core on CPU is wrong"),
        ("all_to_all/float32/1024B/2, a/b", "all-to-all float32 1 KiB on 2 devices, a/b"),
        ("host_to_device float32 host->gpu:0: 6 GB/s", "host to device float32 host → GPU 0: 6 GB/s"),
        ("see --config.op=all_reduce and results/strong/2x", "see --config.op=all_reduce and results/strong/2x"),
        ("5 GB/s (1/2 of the batch, docs/metrics)", "5 GB/s (1/2 of the batch, docs/metrics)"),
    ],
)
def test_a_page_says_ids_in_words(sentence: str, words: str) -> None:
    assert notes.spoken(sentence) == words


def test_a_count_agrees_with_its_noun() -> None:
    assert [counted(n, "process") for n in (0, 1, 2)] == ["0 processes", "1 process", "2 processes"]
    assert [counted(2, noun) for noun in ("epoch", "batch")] == ["2 epochs", "2 batches"]
    assert [counted(1.0, "core"), counted(1.5, "core"), counted(2000, "step")] == ["1 core", "1.5 cores", "2,000 steps"]


def test_a_link_to_what_is_not_on_the_page_is_text() -> None:
    ((_, heading, alone),) = page.used(frozenset({"time-per-step"}))
    both = dict((id, html) for id, _, html in page.used(frozenset({"time-per-step", "intervals"})))
    assert heading == "Time per step" and "see Intervals" in alone and "<a" not in alone
    assert 'see <a href="#def-intervals">Intervals</a>' in both["def-time-per-step"]


def test_angle_brackets_in_the_text_are_not_markup() -> None:
    assert page._definition_html("a <b>word</b> < 3 `<i>`", ()) == (
        "<p>a &lt;b&gt;word&lt;/b&gt; &lt; 3 <code>&lt;i&gt;</code></p>\n"
    )


def measured(
    worker: str, block_s: tuple[float, ...], double_s: tuple[float, ...], warm_s: tuple[float, ...] = ()
) -> RoundRecord:
    return RoundRecord(
        point="p", round=0, steps=2, block_s=block_s, double_block_s=double_s, warmup_block_s=warm_s, settled=True,
        compilations=0, worker=worker,
    )  # fmt: skip


def marks(svg: str, name: str) -> list[tuple[float, float]]:
    """The positions of the marks of one class: (x, y)."""
    found = re.search(rf'<path class="{name}" d="([^"]*)"', svg)
    return [] if found is None else [(float(x), float(y)) for x, y in re.findall(r"M(\S+) (\S+)h0", found[1])]


def test_every_block_is_a_mark_in_the_order_of_time() -> None:
    rounds = [measured("a", (2.0, 4.0), (4.0, 8.0), (40.0, 2.2)), measured("b", (3.0,), (6.0,), (1.0,))]
    made = details.timeline(rounds)
    assert made is not None
    block, double, warm = (marks(made.svg, f"{kind} p0") for kind in ("block", "double", "warm"))
    assert [len(block), len(double), len(warm)] == [2, 2, 2]
    order = [warm[0], warm[1], block[0], double[0], block[1], double[1]]
    order += [marks(made.svg, f"{kind} p1")[0] for kind in ("warm", "block", "double")]
    assert [x for x, _ in order] == sorted(x for x, _ in order)
    low, high = details.HEIGHT - details.EDGE, details.EDGE
    heights = [high, 0.9 * low + 0.1 * high, low, low, high, high, low, (low + high) / 2, (low + high) / 2]
    assert [y for _, y in order] == [round(height, 1) for height in heights], "time per step, the slow and the fast cut"
    assert len(marks(made.svg, "hollow")) == 3 and made.svg.count("v150") == 1
    assert "from 1000 (bottom) to 2000 (top); blocks outside this range, drawn at its edges: 2" in made.caption
    assert "median, 1500" in made.caption


def test_one_far_block_does_not_flatten_the_others() -> None:
    made = details.timeline([measured("a", (2.0, 2.2, 2.4, 200.0), ())])
    assert made is not None and "to 2300 (top); blocks outside this range, drawn at its edges: 1" in made.caption
    assert marks(made.svg, "block p0")[2][1] < 140


def test_blocks_alike_lie_in_the_middle_and_nothing_has_no_strip() -> None:
    made = details.timeline([measured("a", (2.0, 2.0), ())])
    assert made is not None and {y for _, y in marks(made.svg, "block p0")} == {details.HEIGHT / 2}
    assert details.timeline([]) is None and details.timeline([measured("a", (), (), (1.0,))]) is None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probed(RoundRecord):
    probe_s: tuple[float, ...] = ()


def test_the_speed_of_the_machine_is_a_band_below_the_blocks() -> None:
    plain = [measured("a", (2.0,), (4.0,), (2.0,)), measured("b", (2.0,), ())]
    made = details.timeline(plain)
    assert made is not None and "speed" not in made.caption and made.svg.count("<svg") == 1
    probed = [Probed(**{**vars(each), "probe_s": p}) for each, p in zip(plain, ((0.001, 0.001), (0.002,)), strict=True)]
    shown = details.timeline(probed)
    assert shown is not None and shown.svg.startswith(made.svg) and shown.svg.count("<svg") == 2
    band = marks(shown.svg, "probe p0")
    assert [x for x, _ in band] == [x for kind in ("block", "double") for x, _ in marks(shown.svg, f"{kind} p0")] + [
        x for x, _ in marks(shown.svg, "block p1")
    ]
    heights = [y for _, y in band]
    assert heights[0] == heights[1] < heights[2] <= details.SPEED, "half the speed lies below"
    assert "from 50 % of its median (bottom) to 100 % (top)" in shown.caption


def profile(**changes) -> ProfileRecord:
    facts = dict(
        point="shard_map/strong/2", steps=4, wall_s=0.2, worker="session0/cpu2",
        kinds={"matmul": 0.05, "element-wise": 0.1, "collective": 0.0, "idle": 0.05},
        top=(("add_fusion", "element-wise", 0.1), ("dot.1", "matmul", 0.05)), trace="profiles/x/perfetto_trace.json.gz",
    )  # fmt: skip
    return ProfileRecord(**{**facts, **changes})


def test_kinds_by_length_with_idle_last_and_the_whole_below_and_operations() -> None:
    kinds, operations = details.profile_kinds(profile()), details.profile_operations(profile())
    assert [line.cells for line in kinds.lines] == [
        ("element-wise", "25", "50.0"), ("matmul", "12.5", "25.0"), ("idle", "12.5", "25.0"), ("all", "50", "100.0"),
    ]  # fmt: skip
    assert "4 traced steps" in kinds.note and "profiles/x/perfetto_trace.json.gz" in kinds.note
    shown = [line.cells for line in operations.lines]
    assert shown == [("add_fusion", "element-wise", "25", "50.0"), ("dot.1", "matmul", "12.5", "25.0")]
    for sheet in (kinds, operations):
        assert all(len(line.cells) == len(sheet.columns) for line in sheet.lines)
    assert details.profile_operations(profile(top=())).note


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"wall_s": 0.0}, "wall_s: 0.0 is not a finite number above 0"),
        ({"steps": 0}, "steps: 0 is not a finite number at least 1"),
        ({"kinds": {"idle": -1.0}}, "kinds: idle: -1.0 is not a finite number at least 0"),
        ({"top": (("a", "b", -1.0),)}, "top: -1.0 is not a finite number at least 0"),
    ],
)
def test_impossible_numbers_are_damage(changes, said) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        schema.from_json(json.loads(json.dumps(schema.to_json(profile(**changes)))))


def test_a_run_with_a_profile_has_the_same_points_as_one_without(tmp_path: Path) -> None:
    without = points.load(RunFolder(run_folder(tmp_path / "run", devices=(1, 2))))
    with open(tmp_path / "run" / "records.jsonl", "a") as file:
        for record in (profile(), profile(steps=8), profile(point="nowhere")):
            file.write(json.dumps(schema.to_json(record)) + "\n")
    run = RunFolder(tmp_path / "run")
    found = points.load(run)
    assert [dataclasses.replace(point, profile=None) for point in found] == without
    assert {point.point: point.profile for point in found if point.profile} == {"shard_map/strong/2": profile(steps=8)}
    assert points.collect(run.records())["shard_map/strong/2"].profile == profile(steps=8)


def test_a_profile_does_not_heal_a_failure() -> None:
    failure = schema.FailureRecord(point=profile().point, experiment="cnn", devices=2, stage="measure", reason="broken")
    (about,) = points.collect([failure, profile()]).values()
    assert about.failed and about.profile == profile()


MANIFEST = {"cpu_model": "EPYC", "cores": 2, "identity": {"family": 25, "product_s": 0.0123, "kernel": "6.1"}}


def loaded(path: Path, *, own: float = 1.0, **taken: float) -> list[Any]:
    """Points of a fabricated run; every block lost these shares of its CPU time. own: the share that it had."""
    made = points.load(RunFolder(fabricate.run_folder(path, devices=(1, 2), rounds=5)))

    def with_load(each: Any) -> Any:
        seconds = np.array([*each.block_s, *each.double_block_s])
        facts = {name: tuple(share * seconds) for name, share in taken.items()}
        return dataclasses.replace(each, cpu_s=tuple(own * seconds), switches=(0,) * len(seconds), cpus=1, **facts)

    return [dataclasses.replace(point, rounds=tuple(map(with_load, point.rounds))) for point in made]


def test_a_busy_machine_is_said_and_a_quiet_one_is_not(tmp_path: Path) -> None:
    busy = loaded(tmp_path / "busy", others_s=0.4, steal_s=0.01)
    (sentence,) = sentences.load_warnings({}, busy)
    assert sentence.startswith("This machine was busy: other processes took 40 % of its CPUs in 5 of 5 rounds of ")
    assert sentence.endswith("; likewise shard_map/strong/2, shard_map/weak/1, shard_map/weak/2.")
    assert sentences.load_warnings({}, loaded(tmp_path / "quiet", others_s=0.0, steal_s=0.0)) == []
    (sentence,) = sentences.load_warnings({}, loaded(tmp_path / "waiting", own=0.8, others_s=0.0, steal_s=0.0))
    assert "its process ran for only 80 % of the time in 5 of 5 rounds" in sentence
    assert "jaxbench run" in sentences.load_warnings({"shared_with": "jaxbench run (process 7)"}, [])[0]


def test_an_unreported_stolen_time_is_not_zero(tmp_path: Path) -> None:
    (_, said) = sentences.machine_description(MANIFEST, loaded(tmp_path / "silent", others_s=0.02))
    assert "took 2.0 % of its CPUs' time" in said and said.endswith("; the hypervisor's share is not reported.")
    (_, said) = sentences.machine_description(MANIFEST, loaded(tmp_path / "told", others_s=0.02, steal_s=0.0))
    assert "the hypervisor took 0.0 %" in said and "not reported" not in said


def test_the_machine_is_described_by_what_is_known() -> None:
    (known,) = sentences.machine_description(MANIFEST, [])
    assert known == "EPYC, family 25, kernel 6.1, 2 usable cores, the reference product takes 12.3 ms on a core."
    assert sentences.machine_description({}, []) == []


@pytest.mark.parametrize("rounds", [1, 5])
def test_every_timed_block_is_drawn(tmp_path: Path, rounds: int) -> None:
    run = run_report.find(RunFolder(fabricate.run_folder(tmp_path, rounds=rounds, blocks=2)))
    figure = drawn(draw_blocks, run)
    marks = sum(len(collection.get_offsets()) for collection in figure.axes[0].collections)
    timed = [each for row in run.rows for each in row.point.rounds]
    assert marks == sum(len(r.block_s) + len(r.double_block_s) + len(r.warmup_block_s) for r in timed) > 0
    places = sorted({float(x) for collection in figure.axes[0].collections for x, _ in collection.get_offsets()})
    assert places[1] - places[0] > 0.0025 * (max(places) - min(places)), "blocks of a round do not hide each other"


def test_a_process_that_replaced_a_dead_one_has_a_colour_of_its_own(tmp_path: Path) -> None:
    run = run_report.find(RunFolder(fabricate.run_folder(tmp_path, rounds=2)))
    names = {0: "session0/cpu2#1", 1: "session0/cpu2#1.1"}  # as `sweep.workers` names them
    point = run.rows[0].point
    rounds = tuple(dataclasses.replace(each, worker=names[each.round]) for each in point.rounds)
    run.rows[:] = [dataclasses.replace(run.rows[0], point=dataclasses.replace(point, rounds=rounds))]
    figure = drawn(draw_blocks, run)
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["process 1", "process 2"]


def test_a_block_far_away_is_a_triangle_and_a_contended_one_a_cross() -> None:
    strip = _strip([(0.0, 5.0, False), (0.1, -0.9, False), (0.2, 0.1, True)], 0, "#000000", "x")
    assert [marker for (marker, *_), _ in strip] == ["^", "v", "x"]
