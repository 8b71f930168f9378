# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The verdict compares the right device and count, interpolates, never extrapolates, and admits uncertainty."""

from pathlib import Path
from typing import Any

import fabricate_cases as fab
import numpy as np
import pandas as pd
import pytest
from passed_rows import rows

from jaxbench.analysis import case_comparisons, case_rows, points
from jaxbench.catalog import published
from jaxbench.records.store import RunFolder
from jaxbench.statistics.bootstrap import Estimate

H200 = {"platform": "gpu", "device_kind": "NVIDIA H200"}
SIZES = (2**10, 2**16, 2**22, 3 * 2**25, 2**30)


def reduced(share: float, *, devices: int = 8, sizes: tuple[int, ...] = SIZES, **changes: Any) -> list[fab.Made]:
    """all_reduce at `share` of the published 8 x H200; outside the range of the series at 1 GB/s."""
    table = published.allreduce()["h200x8"]
    made = []
    for size in sizes:
        inside = table.index[0] <= size <= table.index[-1]
        busbw = share * case_comparisons.interpolate(table, size) if inside else 1e9
        call_s = size * 2 * (devices - 1) / devices / busbw
        made.append(fab.collective("all_reduce", size, devices, call_s=call_s, **(H200 | changes)))
    return made


def verdict(
    path: Path, made: list[fab.Made], *, manifest: dict[str, Any] = H200, **facts: Any
) -> case_comparisons.PublishedVerdict:
    (found,) = case_comparisons.judge_published(
        "collectives", rows(path, made, view="collectives", **facts), manifest=manifest
    )
    return found


@pytest.mark.parametrize(
    ("share", "word"), [(1.0, "normal"), (0.5, "low"), (1.5, "high"), (0.8, "cannot tell"), (1.2, "cannot tell")]
)
def test_the_word(tmp_path: Path, share: float, word: str) -> None:
    found = verdict(tmp_path, reduced(share))
    assert (found.series, found.word) == ("h200x8", word)
    assert found.shares[-1].ratio.value == pytest.approx(share, rel=0.03) and found.shares[-1].ratio.has_interval


@pytest.mark.parametrize(
    ("lo", "hi", "word"),
    [(0.8, 1.2, "normal"), (0.79, 1.0, "cannot tell"), (1.0, 1.21, "cannot tell"), (0.5, 0.79, "low"),
     (1.21, 1.3, "high"), (0.7, 1.3, "cannot tell")],
)  # fmt: skip
def test_an_interval_that_straddles_a_limit_cannot_tell(lo: float, hi: float, word: str) -> None:
    assert case_comparisons.published_word(Estimate(value=(lo + hi) / 2, lo=lo, hi=hi)) == word


def test_only_payloads_of_the_published_range_are_compared(tmp_path: Path) -> None:
    found = verdict(tmp_path, reduced(1.0))
    assert [s.payload_bytes for s in found.shares] == list(SIZES[1:])
    assert 0.95 < found.lowest <= found.highest < 1.05


def test_between_two_payloads_the_series_is_linear_in_logarithms() -> None:
    series = pd.Series([1.0, 100.0], index=[10, 1000])
    assert case_comparisons.interpolate(series, 100) == pytest.approx(10)
    assert case_comparisons.interpolate(series, 1000) == pytest.approx(100)


def test_the_sentence_has_the_share_the_range_the_rank_and_the_warning(tmp_path: Path) -> None:
    found = verdict(tmp_path, reduced(1.0, sizes=(2**20, 2**30), dtype="bfloat16"))
    assert found.sentence.startswith("This is normal: at 1 GiB all_reduce bfloat16 on 8 devices has ")
    for part in ("of the 464 GB/s published for h200x8", "from 1 MiB on it is", "single measurements by others"):
        assert part in found.sentence
    busbw = found.shares[-1].busbw.value
    slower = sum(busbw > column for column in published.allreduce().loc[2**30])
    assert (found.slower_series, found.all_series, found.percentile) == (slower, 4, 25 * slower)
    assert (
        f"{slower} of the 4 published series of all devices are slower there (percentile {25 * slower})"
        in found.sentence
    )


def test_a_clock_beyond_the_link_makes_no_verdict_of_its_small_payloads(tmp_path: Path) -> None:
    """From 64 MiB on it exceeds the link, at 16 MiB it does not: no size is "higher than normal"."""
    sizes = [4**k for k in range(8, 17)]
    made = fab.alpha_beta("all_reduce", 8, sizes, alpha_s=2e-5, beta=9e11, platform="gpu", device_kind="NVIDIA H200")
    run = RunFolder(fab.case_folder(tmp_path, made, view="collectives", manifest=H200))
    found = case_rows.analyse(points.load_cases(run), manifest=run.manifest(), machine=None)
    (said,) = case_comparisons.judge_published("collectives", found, manifest=run.manifest())
    assert said.word == "" and "no all_reduce over one whole node passed every gate" in said.sentence


def test_small_payloads_alone_have_no_range(tmp_path: Path) -> None:
    found = verdict(tmp_path, reduced(1.0, sizes=(2**16,)))
    assert np.isnan(found.lowest) and "from 1 MiB on" not in found.sentence and found.word == "normal"


def test_without_intervals_it_cannot_be_told(tmp_path: Path) -> None:
    found = verdict(tmp_path, reduced(1.0), rounds=2)
    assert found.word == "cannot tell" and "fewer than 3 rounds" in found.sentence


@pytest.mark.parametrize(
    ("made", "manifest", "why"),
    [
        (reduced(1.0, platform="cpu", device_kind="cpu"), {"device_kind": "cpu"}, "this ran on a CPU"),
        (reduced(1.0), {"device_kind": "NVIDIA H300"}, "'NVIDIA H300' is not in the hardware catalogue"),
        (reduced(1.0), {"device_kind": "NVIDIA H100 80GB HBM3"}, "no series was published for NVIDIA H100 SXM"),
        (reduced(1.0, devices=4), H200, "the series published for NVIDIA H200 SXM is for 8 devices, and 4 devices"),
        (reduced(1.0, oversubscribed=True), H200, "no all_reduce over one whole node passed every gate"),
        (reduced(1.0, mesh="2x8", axis="y"), H200, "no all_reduce over one whole node passed every gate"),
        (reduced(1.0, processes=4), H200, "no all_reduce over one whole node passed every gate"),
        (reduced(1.0, sizes=(2**10,)), H200, "no payload of float32 is in the published range, 32 KiB to 16 GiB"),
        ([fab.collective("all_gather", 2**20, 8, call_s=1e-3)], H200, "no all_reduce was measured"),
    ],
)  # fmt: skip
def test_no_verdict_is_a_sentence(tmp_path: Path, made: list[fab.Made], manifest: dict[str, Any], why: str) -> None:
    found = verdict(tmp_path, made, manifest=manifest)
    assert found.sentence.startswith("No verdict on whether this is normal: ") and why in found.sentence
    assert not found.series and not found.shares


def test_refused_rows_are_not_compared(tmp_path: Path) -> None:
    made = reduced(1.0)
    found = verdict(tmp_path, made, refused=[made[-1].record.point])
    assert found.shares[-1].payload_bytes == SIZES[-2]


def test_every_dtype_has_its_verdict_and_other_views_have_none(tmp_path: Path) -> None:
    made = [*reduced(1.0), *reduced(0.5, dtype="bfloat16")]
    found = case_comparisons.judge_published("collectives", rows(tmp_path, made, view="collectives"), manifest=H200)
    assert [(v.dtype, v.word) for v in found] == [("float32", "normal"), ("bfloat16", "low")]
    assert case_comparisons.judge_published("matmul", [], manifest=H200) == []
