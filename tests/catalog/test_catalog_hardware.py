# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Device kinds find the right row, per JAX device; unknown values are not guessed."""

import pytest

from jaxbench.catalog import hardware


@pytest.mark.parametrize(
    ("kind", "dtype", "tflops", "column"),
    [
        ("NVIDIA H200", "bfloat16", 989, "bf16_tflops"),
        ("NVIDIA H200", "float32", 494.5, "tf32_tflops"),
        ("NVIDIA H100 80GB HBM3", "bfloat16", 989, "bf16_tflops"),
        ("NVIDIA H100 PCIe", "bfloat16", 756, "bf16_tflops"),
        ("NVIDIA A100-SXM4-80GB", "float32", 156, "tf32_tflops"),
        ("A100-SXM4-40GB", "bfloat16", 312, "bf16_tflops"),
        ("Tesla V100-SXM2-16GB", "float32", 15.7, "fp32_tflops"),
        ("Tesla K80", "float32", 4.37, "fp32_tflops"),
        ("NVIDIA A100 80GB PCIe", "bfloat16", 312, "bf16_tflops"),
        ("NVIDIA H100 NVL", "float16", 835, "fp16_tflops"),
        ("NVIDIA GH200 480GB", "float32", 494.5, "tf32_tflops"),
        ("NVIDIA L40S", "bfloat16", 362.05, "bf16_tflops"),
        ("NVIDIA GeForce RTX 4090", "bfloat16", 165.2, "bf16_tflops"),
        ("NVIDIA GeForce RTX 5090", "float32", 104.8, "tf32_tflops"),
        ("TPU v2", "bfloat16", 22.5, "bf16_tflops"),
        ("TPU v3", "bfloat16", 61.5, "bf16_tflops"),
        ("TPU v4", "bfloat16", 275, "bf16_tflops"),
        ("TPU v5 lite", "bfloat16", 197, "bf16_tflops"),
        ("TPU v5", "bfloat16", 459, "bf16_tflops"),
        ("TPU v6 lite", "float32", 918, "bf16_tflops"),
        ("TPU7x", "bfloat16", 1153.5, "bf16_tflops"),
        ("AMD Instinct MI250X", "bfloat16", 191.5, "bf16_tflops"),
    ],
)
def test_peak_of_one_jax_device(kind: str, dtype: str, tflops: float, column: str) -> None:
    peak = hardware.find(kind)
    assert peak is not None and (rate := peak.rate(dtype)) is not None
    assert (rate.flop_per_s, rate.column) == (pytest.approx(tflops * 1e12), column)


@pytest.mark.parametrize(
    "kind",
    [
        "cpu",
        "NVIDIA H100",
        "NVIDIA H200 NVL",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "TPU v4 lite",
        "Tesla V100-PCIE-16GB",
        "",
    ],
)
def test_unknown_and_ambiguous_kinds_are_none_with_a_reason(kind: str) -> None:
    assert hardware.find(kind) is None
    assert hardware.why_not(kind)


@pytest.mark.parametrize("kind", ["NVIDIA A10G", "TPU v2"])
def test_unverified_fields_are_carried(kind: str) -> None:
    peak = hardware.find(kind)
    assert peak is not None
    rate = peak.rate("bfloat16")
    assert rate is not None and not rate.verified
    assert (kind == "TPU v2") != peak.memory_verified  # sources give a TPU v2 600 and 700 GB/s


def test_a_dtype_without_a_peak_is_none() -> None:
    peak = hardware.find("Tesla K80")
    assert peak is not None and peak.rate("bfloat16") is None


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("NVIDIA A10", "float32"),  # TF32 units with a rate that is not in its row: 62.5 TFLOP/s, twice its fp32_tflops
        ("AMD Instinct MI250X", "float32"),  # matrix units, twice as fast as its fp32_tflops
        ("AMD Instinct MI300X", "float32"),
        ("Tesla P4", "float16"),  # 0.089 TFLOP/s in its own units, 5.7 if the library computes in float32
    ],
)
def test_a_rate_of_other_units_than_the_product_may_run_on_is_no_peak(kind: str, dtype: str) -> None:
    peak = hardware.find(kind)
    assert peak is not None and peak.rate(dtype) is None


def test_every_listed_kind_names_a_row_or_a_reason() -> None:
    rows = hardware._rows_by_name()
    for entry in hardware._rows_by_kind().values():
        assert (entry["name"] in rows) != bool(entry["reason"]), entry
        if entry["name"]:
            shared = "2 JAX devices" in rows[entry["name"]]["notes"] or "two devices" in rows[entry["name"]]["notes"]
            assert entry["devices_per_row"] == ("2" if shared else "1"), entry


@pytest.mark.parametrize(
    ("kind", "memory_gb_s"),
    [
        ("NVIDIA H200", 4800),
        ("Tesla K80", 240),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100 80GB PCIe", 1935),
        ("TPU v2", 300),
        ("TPU7x", 3690),
        ("AMD Instinct MI250X", 1640),
    ],
)
def test_memory_bandwidth_of_one_jax_device(kind: str, memory_gb_s: float) -> None:
    peak = hardware.find(kind)
    assert peak is not None and peak.memory_bytes_per_s == pytest.approx(memory_gb_s * 1e9)


@pytest.mark.parametrize(
    ("kind", "one_way_gb_s", "pcie", "reduces", "devices"),
    [
        ("NVIDIA H200", 450, False, True, 1),
        ("NVIDIA H100 80GB HBM3", 450, False, True, 1),
        ("NVIDIA B200", 900, False, True, 1),
        ("NVIDIA A100-SXM4-80GB", 300, False, False, 1),
        ("Tesla V100-SXM2-16GB", 150, False, False, 1),
        ("Tesla T4", 15.75, True, False, 1),
        ("NVIDIA H100 PCIe", 63, True, False, 1),
        ("TPU v3", 400, False, False, 2),
        ("AMD Instinct MI300X", 448, False, False, 1),
    ],
)
def test_the_link_one_way(kind: str, one_way_gb_s: float, pcie: bool, reduces: bool, devices: int) -> None:
    peak = hardware.find(kind)
    assert peak is not None and peak.link is not None
    link = peak.link
    assert link.direction == "bidirectional" and link.catalogued_bytes_per_s == pytest.approx(2 * one_way_gb_s * 1e9)
    assert link.unidirectional_bytes_per_s == pytest.approx(one_way_gb_s * 1e9)
    assert (link.is_pcie, link.reduces_in_network, link.devices) == (pcie, reduces, devices)


def test_a_link_in_one_direction_is_not_halved_and_without_a_number_or_a_direction_unknown() -> None:
    known = hardware._rows_by_name()["NVIDIA H200 SXM"]
    link = hardware._link({**known, "interconnect_note": "NVLink 4, unidirectional"}, share=1)
    assert link is not None and link.unidirectional_bytes_per_s == link.catalogued_bytes_per_s
    gamer = hardware.find("NVIDIA GeForce GTX 1080")
    assert gamer is not None and gamer.link is None
    assert hardware._link({**known, "interconnect_note": "NVLink 4"}, share=1) is None


def test_links_and_memory_carry_their_doubts() -> None:
    kinds = ("NVIDIA A10G", "NVIDIA H200", "NVIDIA A100-SXM4-40GB")
    peaks = [hardware.find(kind) for kind in kinds]
    assert [p and p.link and p.link.verified for p in peaks] == [False, True, True]
    assert [p and p.memory_verified for p in peaks] == [True, True, False]


def test_every_catalogued_link_states_its_direction() -> None:
    for row in hardware._rows_by_name().values():
        assert (hardware._link(row, share=1) is not None) == bool(row["interconnect_GBps_per_device"]), row["name"]
