# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The catalogue: published tables, compiler targets and named sets of compiler options, each with its source."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest

from jaxbench import levers
from jaxbench.catalog import hardware, published, rows, targets
from jaxbench.errors import UserError
from jaxbench.levers import COMPILER

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


def test_tables_have_the_numbers_of_their_sources() -> None:
    frame = published.read("tf_dgx1_p100_synth").frame.set_index("gpus")
    speedup = (frame.loc[8] / frame.loc[1]).round(2).to_dict()
    expected = {"InceptionV3": 7.96, "ResNet-50": 7.92, "ResNet-152": 7.80, "AlexNet": 5.97, "VGG16": 7.02}
    assert speedup == pytest.approx(expected, abs=0.006)
    table = published.allreduce()
    assert table.index.is_monotonic_increasing and (table > 0).all(axis=None)
    assert table.loc[2**30, "h200x8"] == pytest.approx(463.58e9)
    known = published.interruptions()  # 419 in 54 days on 16,384 GPUs, computed by hand
    assert (known.devices, known.goodput) == (16_384, 0.9)
    assert 1 / known.per_device_hour == pytest.approx(50_677, abs=1)
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


def test_gpus_are_counted_slices_have_sides_and_a_chip_of_two_devices_counts_twice():
    gpu, slice_ = targets.parse("h100:8"), targets.parse("v5e:2x4")
    assert (gpu.platform, gpu.devices, gpu.shape) == ("gpu", 8, ())
    assert (slice_.platform, slice_.devices, slice_.shape) == ("tpu", 8, (2, 4))
    assert gpu.memory_bytes == 84_942_979_072 and slice_.memory_bytes == 16 * 2**30
    found = targets.parse("tpu7x:2x2x1")
    assert (found.devices, found.chip, found.memory_bytes) == (8, 2, 96 * 2**30)
    with pytest.raises(UserError, match="no slice of 3 devices: ask for 1, 2, 4, 8"):
        targets.parse("v5e:4x4").part(3)
    with pytest.raises(UserError, match="hosts of 6 GPUs: ask for a multiple"):
        targets.parse("h100:2x6").part(8)


@pytest.mark.parametrize("text", targets.names())
def test_every_example_is_known_and_of_a_catalogued_device(text):
    found = targets.parse(text)
    assert found.devices == 8 and hardware.find(found.device_kind) is not None
    assert found.machine()["device_memory_bytes"] == found.memory_bytes > 10e9


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("v5e:4x4", ["v5e:1x1", "v5e:1x2", "v5e:2x2", "v5e:2x4", "v5e:4x4"]),
        ("v5p:2x2x2", ["v5p:1x1x1", "v5p:1x2x1", "v5p:2x2x1", "v5p:2x2x2"]),
        ("v5p:2x2x4", ["v5p:1x1x1", "v5p:1x2x1", "v5p:2x2x1", "v5p:2x2x2", "v5p:2x2x4"]),
        ("b200:16", ["b200:1", "b200:2", "b200:4", "b200:8", "b200:16"]),
        ("gb200:8", ["gb200:1", "gb200:2", "gb200:4", "gb200:8"]),
        ("h100:2x6", ["h100:1", "h100:2", "h100:4", "h100:2x6"]),
        ("tpu7x:2x2x1", ["tpu7x:1x1x1", "tpu7x:1x2x1", "tpu7x:2x2x1"]),
    ],
)
def test_a_sweep_has_a_topology_for_each_count(text, parts):
    target = targets.parse(text)
    assert [target.part(count).text for count in target.counts] == parts


def test_xla_is_told_of_hosts_of_8_gpus_and_4_chips():
    assert targets.parse("h100:8").topology()[1]["topology_name"] == "1x1x8"
    assert targets.parse("h100:16").topology()[1]["topology_name"] == "1x2x8"
    assert targets.parse("gb300:8").topology()[1]["topology_name"] == "1x2x4"
    assert targets.parse("v5e:1x2").topology()[1]["chips_per_host_bounds"] == (1, 2, 1)
    assert targets.parse("v5p:2x2x4").topology()[1]["chips_per_host_bounds"] == (2, 2, 1)
    assert 'device_description_str: "NVIDIA H100 80GB HBM3"' in targets.parse("h100:8").topology()[1]["target_config"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("h200x:8", r"--target=h200x:8 is unknown: did you mean 'h200:8'"),
        ("h100", r"does not say how many devices.*h100:8"),
        ("h100:0", r"does not say how many devices"),
        ("h100:12", r"1 to 8 or a multiple of 8.*h100:16"),
        ("gb200:6", r"1 to 4 or a multiple of 4.*gb200:8"),
        ("h100:2x4x4", r"give the number of GPUs"),
        ("v5e:3x4", r"is not a slice: v5e has 2 dimensions, such as v5e:2x4"),
        ("v5p:2x4", r"is not a slice: v5p has 3 dimensions, such as v5p:2x2x2"),
        ("mi300x:8", r"ROCm plug-in"),
    ],
)
def test_bad_targets_are_a_sentence(text, said):
    with pytest.raises(UserError, match=said):
        targets.parse(text)


def test_the_compiler_is_told_of_a_gpus_capability_and_its_source_is_named():
    for name, (major, minor) in {"rtx4090": (8, 9), "rtx5090": (12, 0), "v100": (7, 0)}.items():
        target = targets.parse(f"{name}:2")
        assert f"major: {major} minor: {minor}" in target.topology()[1]["target_config"]
        assert "openxla/xla" in target.described or target.described.startswith("derived")
    assert targets.parse("rtx4090:2").path == "staged" and targets.parse("a6000:2").path == "p2p"


SETS = levers.option_sets()


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_legal_and_its_options_are_of_its_platform(name):
    assert {each.platform for each in SETS.values()} == {"cpu", "gpu", "tpu"}
    options, platform = COMPILER.read(name), SETS[name].platform
    assert options and SETS[name].source and name in levers.set_names(platform)
    of = {levers.platform_of(option) for option in options}
    assert platform in of and of <= {platform, None}


def known(name: str) -> bool:
    """XLA's CPU compiler accepts and ignores the options of its GPU compiler; it does not know those of a TPU."""
    try:
        jax.jit(lambda: 0).lower().compile(COMPILER.read(name))
    except jax.errors.JaxRuntimeError as error:
        assert "No such compile option" in str(error)
        return False
    return True


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_this_xla_knows_the_options(platform):
    """All but one set; its options were renamed between the oldest and the newest supported release."""
    unknown = {name for name in levers.set_names(platform) if not known(name)}
    assert unknown in ([{"pipelined"}, {"pipelined_legacy"}] if platform == "gpu" else [set()])
