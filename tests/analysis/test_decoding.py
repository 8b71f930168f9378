# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Generation in numbers: each part of a token's time, and the sentences, from runs that follow a known law."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import fabricate
import fabricate_tokens
import pytest
from fabricate_tokens import LAYERS, Law

from jaxbench.analysis import decoding
from jaxbench.core.store import RunFolder
from jaxbench.report import build, run_report
from jaxbench.statistics.bootstrap import Estimate


def found(path: Path, law: Law | None = None, **changes: object) -> run_report.RunReport:
    return run_report.find(RunFolder(fabricate_tokens.folder(path, law, **changes)))  # type: ignore[arg-type]


def test_the_parts_add_up_to_the_time_of_a_token(tmp_path: Path) -> None:
    law, run = Law(), found(tmp_path)
    two = next(each for each in run.token_times if each.name == "tensor, 2 devices")
    sums = 2 * LAYERS + 1
    expected = {
        decoding.READ_WEIGHTS: law.weights_s / 2,
        decoding.READ_CACHE: 64 * law.cache_s / 2,
        decoding.SMALLER: law.smaller_s,
        decoding.LATENCY: sums * law.latency_s,
        decoding.BYTES: sums * law.payload_s,
        decoding.STARTING: law.starting_s,
        decoding.UNEXPLAINED: law.unexplained_s,
    }
    assert {*two.parts} == {*decoding.PARTS}
    for name, seconds in expected.items():
        part = two.parts[name]
        assert part.lo - 2e-4 <= seconds <= part.hi + 2e-4, (name, part)
    assert sum(part.value for part in two.parts.values()) == pytest.approx(two.token_s.value)


def test_numbers_follow_their_definitions(tmp_path: Path) -> None:
    run = found(tmp_path, joules=6.4)
    row = next(each for each in run.rows if each.point.point == "tensor/strong/2/batch=64")
    tpot = row.timing.step_s.value
    numbers = {name: each.value for name, each in row.derived.items()}
    assert numbers["tpot_s"] == tpot and numbers["ttft_s"] == pytest.approx(0.025, rel=0.02)
    assert numbers["tpot_scan_s"] == pytest.approx(tpot - Law().starting_s, rel=0.02)
    assert numbers["tokens_per_s_device"] == pytest.approx(64 / 2 / tpot)
    assert numbers["tokens_per_s_user"] == pytest.approx(1 / tpot)
    read = fabricate_tokens.WEIGHT_BYTES / 2 + 64 * fabricate_tokens.CACHE_BYTES / 2
    assert numbers["decode_bytes_per_s"] == pytest.approx(read / tpot)
    assert numbers["triad_share"] == pytest.approx(read / tpot / fabricate_tokens.TRIAD, rel=0.02)
    assert numbers["cost_per_million_tokens"] == pytest.approx(2.0 / 3600 * tpot / 64 * 1e6)
    assert numbers["joules_per_token"] == pytest.approx(0.1)
    assert row.efficiency.value == pytest.approx(Law().times(64, 1, 1)["step"] / 2 / tpot, rel=0.02)


@pytest.mark.parametrize(("unit", "known"), [("tokens", True), ("examples", False)])
def test_a_generation_step_of_somebody_else_has_a_time_per_token(tmp_path: Path, unit: str, known: bool) -> None:
    folder = fabricate.run_folder(
        tmp_path,
        strategies=("own",),
        scalings=("strong",),
        devices=(1, 2),
        batch=8,
        config={"price_per_hour": 3.6},
        unit=unit,
    )
    run = run_report.find(RunFolder(folder))
    two = next(row for row in run.rows if row.point.devices == 2)
    step_s = two.timing.step_s.value
    assert ("tpot_s" in two.derived) == known
    assert bool(run.sentences()["Generation"]) == known
    written = next(line for line in csv.DictReader(io.StringIO(run.csv())) if line["devices"] == "2")
    assert bool(written["tpot_s"]) == known and not written["ttft_s"]
    if known:
        assert two.derived["tpot_s"].value == step_s
        assert two.derived["tokens_per_s_device"].value == pytest.approx(4 / step_s)
        assert two.derived["cost_per_million_tokens"].value == pytest.approx(1e3 * step_s / 8)
        assert (
            "8 requests" in run.sentences()["Generation"][1] and "per token (TPOT)" in run.sentences()["Generation"][1]
        )


def test_one_sentence_says_why_two_devices_are_slower(tmp_path: Path) -> None:
    run = found(tmp_path / "slow", Law(weights_s=0.4e-3, cache_s=1e-6), batches=(1, 4))
    slower = next(each for each in run.headlines if "slower" in each)
    assert slower.startswith(f"Two devices are slower than one because each of the 2 x {LAYERS} all-reduces of 12.3 kB")
    assert "takes 23.0 µs" in slower or "takes 22.9 µs" in slower or "takes 23.1 µs" in slower
    assert "and the weights that each saves only 8." in slower
    fast = found(tmp_path / "fast", batches=(2, 4)).headlines
    assert any("times as fast as one: each of the 2 x 12 all-reduces" in each for each in fast)


def test_what_messages_do_not_explain_is_named(tmp_path: Path) -> None:
    law = Law(weights_s=0.4e-3, cache_s=1e-6, latency_s=2e-7, payload_s=1e-7, unexplained_s=5e-3)
    slower = next(each for each in found(tmp_path, law, batches=(1, 4)).headlines if "Two devices" in each)
    assert slower.startswith("Two devices are slower than one, mostly because")
    assert "Messages are not the main reason: each of the 2 x 12 all-reduces" in slower
    assert re.search(r"mostly because a part that no program isolates takes (4\.9|5\.0)\d? ms longer", slower)


def test_the_law_in_the_batch_has_small_residuals(tmp_path: Path) -> None:
    law = next(each for each in decoding.laws(found(tmp_path).rows) if (each.strategy, each.devices) == ("tensor", 1))
    given = Law()
    assert law.request_s == pytest.approx(given.cache_s, rel=0.03)
    assert law.fixed_s == pytest.approx(given.weights_s + given.smaller_s + given.starting_s, rel=0.03)
    assert max(map(abs, law.residuals)) < 0.02 and "residuals up to" in law.sentence


def test_a_page_and_a_table_have_the_numbers(tmp_path: Path) -> None:
    build.write(fabricate_tokens.folder(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert "A static batch" in page and "no scheduler" in page and "jax.nn.dot_product_attention" in page
    assert {each.stem for each in (tmp_path / "figures").glob("*.svg")} >= {"frontier", "token_time"}
    lines = list(csv.DictReader(io.StringIO((tmp_path / "summary.csv").read_text())))
    assert all(line["tpot_s"] and line["tpot_s_lo"] and line["ttft_s"] for line in lines)
    # Not of an accelerator, and without a price: nothing is made up.
    assert not found(tmp_path / "free", price=None).rows[0].derived.get("cost_per_million_tokens")


@pytest.mark.parametrize(
    ("low", "cache_bytes", "said"),
    [(1.2, 10**9, "fit in the processor's cache"), (1.2, 10**8, "which also writes"), (1.2, None, "which also writes"),
     (0.9, 10**9, "")],
    ids=["fits", "too large", "unknown cache", "perhaps not faster"],
)  # fmt: skip
def test_only_what_fits_is_said_to_be_in_a_cache(
    low: float, cache_bytes: int | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = found(tmp_path)
    row = next(each for each in run.rows if each.point.point == "tensor/strong/1/batch=1")
    monkeypatch.setitem(row.derived, "triad_share", Estimate(value=1.5, lo=low, hi=1.8))
    texts = [text for text in decoding.sentences([row], [], cache_bytes) if "faster than the triad" in text]
    assert (len(texts), said in "".join(texts)) == (1 if said else 0, True)
