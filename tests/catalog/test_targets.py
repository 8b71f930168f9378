# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The values of `--target`: kinds and numbers of devices, their parts, and their description for XLA."""

from __future__ import annotations

import pytest

from jaxbench.catalog import hardware, targets
from jaxbench.errors import UserError


def test_gpus_are_counted_and_slices_have_sides():
    gpu, slice_ = targets.parse("h100:8"), targets.parse("v5e:2x4")
    assert (gpu.platform, gpu.devices, gpu.shape) == ("gpu", 8, ())
    assert (slice_.platform, slice_.devices, slice_.shape) == ("tpu", 8, (2, 4))
    assert gpu.memory_bytes == 84_942_979_072 and slice_.memory_bytes == 16 * 2**30


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
    ],
)
def test_a_sweep_has_a_topology_for_each_count(text, parts):
    target = targets.parse(text)
    assert [target.part(count).text for count in target.counts] == parts


def test_xla_is_told_of_hosts_of_8_gpus_and_4_chips():
    assert targets.parse("h100:8").topology()[1]["topology_name"] == "1x1x8"
    assert targets.parse("h100:16").topology()[1]["topology_name"] == "1x2x8"
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
        ("h100:2x4", r"give the number of GPUs"),
        ("v5e:3x4", r"is not a slice: v5e has 2 dimensions, such as v5e:2x4"),
        ("v5p:2x4", r"is not a slice: v5p has 3 dimensions, such as v5p:2x2x2"),
        ("mi300x:8", r"ROCm plug-in"),
    ],
)
def test_bad_targets_are_a_sentence(text, said):
    with pytest.raises(UserError, match=said):
        targets.parse(text)


def test_a_count_that_no_slice_has():
    with pytest.raises(UserError, match="no slice of 3 chips: ask for 1, 2, 4, 8"):
        targets.parse("v5e:4x4").part(3)
