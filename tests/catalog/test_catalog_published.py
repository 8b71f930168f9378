# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Published tables are read with their source, and agree with the figures derived from them."""

from pathlib import Path

import pytest

from jaxbench.catalog import published, rows
from jaxbench.errors import UserError

SOURCES = {row["id"]: row for row in rows("published/SOURCES.csv")}


@pytest.mark.parametrize("id", SOURCES)
def test_every_source_has_a_table_and_a_citation(id: str) -> None:
    table, source = published.read(id), SOURCES[id]
    assert len(table.frame) and table.project and source["where"] and source["reference"]
    text = (Path(published.__file__).parent / "published" / f"{id}.csv").read_text()
    assert text.startswith(f"# id={id}; status=")


@pytest.mark.parametrize("id", published.overlays())
def test_an_overlay_begins_at_one_gpu(id: str) -> None:
    frame = published.read(id).frame.set_index("gpus")
    assert frame.index[0] == 1 and frame.index.is_monotonic_increasing and (frame > 0).all(axis=None)


def test_dgx1_speedups_at_8() -> None:
    frame = published.read("tf_dgx1_p100_synth").frame.set_index("gpus")
    speedup = (frame.loc[8] / frame.loc[1]).round(2).to_dict()
    expected = {"InceptionV3": 7.96, "ResNet-50": 7.92, "ResNet-152": 7.80, "AlexNet": 5.97, "VGG16": 7.02}
    assert speedup == pytest.approx(expected, abs=0.006)


def test_unknown_id_says_what_was_meant() -> None:
    with pytest.raises(UserError, match="did you mean 'gpipe_analytic'"):
        published.read("gpipe_analitic")


@pytest.mark.parametrize(
    ("device_kind", "devices", "column"),
    [
        ("NVIDIA A100-SXM4-80GB", 8, "a100x8"),
        ("NVIDIA H200", 8, "h200x8"),
        ("NVIDIA B200", 8, "b200x8"),
        ("NVIDIA H200", 4, None),
        ("NVIDIA H200", 32, None),
        ("NVIDIA A100-SXM4-40GB", 8, None),
        ("NVIDIA H100 80GB HBM3", 8, None),
        ("cpu", 8, None),
    ],
)
def test_which_all_reduce_series_belongs_to_a_machine(device_kind: str, devices: int, column: str | None) -> None:
    assert published.allreduce_column(device_kind, devices) == column
    assert column is None or column in published.allreduce().columns


def test_why_no_all_reduce_series_belongs_to_a_machine() -> None:
    assert "is for 8 devices, and 1 device was used" in published.why_no_allreduce("NVIDIA H200", 1)
    assert published.why_no_allreduce("NVIDIA H100 PCIe", 8) == "no series was published for NVIDIA H100 PCIe"
    assert "this ran on a CPU" in published.why_no_allreduce("cpu", 8)
    assert "not in the hardware catalogue" in published.why_no_allreduce("Abacus", 8)


def test_all_reduce_is_in_bytes_per_second_by_ascending_payload() -> None:
    table = published.allreduce()
    assert table.index.is_monotonic_increasing and (table > 0).all(axis=None)
    assert table.loc[2**30, "h200x8"] == pytest.approx(463.58e9)


def test_llama_3_lost_a_gpu_every_fifty_thousand_hours() -> None:
    """419 interruptions in 54 days on 16,384 GPUs, computed by hand."""
    known = published.interruptions()
    assert (known.devices, known.goodput) == (16_384, 0.9)
    assert 1 / known.per_device_hour == pytest.approx(50_677, abs=1)


def test_the_same_week_on_cpus_and_on_gpus():
    cpus, gpus, ratio, doubt = published.same_week()
    assert "600 kW, 100,800 kWh in a week" in cpus
    assert "4 kW, 672 kWh in a week" in gpus
    assert "152 times the price and 150 times the power" in ratio
    assert doubt.startswith("Unconfirmed")
    assert "1,000,000 and 20,000 USD, 50 times the price" in doubt
