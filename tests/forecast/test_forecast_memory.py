# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The memory of a deep model on a TPU comes from its compiler's refusal, not from a line through two depths."""

from __future__ import annotations

import dataclasses
import io

import pytest
from experiment_cases import composed
from fabricate_forecasts import at
from rich.console import Console

from jaxbench import forecast_memory
from jaxbench.catalog import targets
from jaxbench.forecast.estimate import SAVES_MEMORY
from jaxbench.machine import start as start_lib
from jaxbench.processes.client import WorkerError
from jaxbench.runner import compile_only

GIB = 2**30


class Refusing:
    """A TPU compiler that always reports out of memory: 8 GiB, and 204 more shared among the devices."""

    options: dict[str, str] = {}
    says = "RESOURCE_EXHAUSTED: the total memory required for HLO temporaries ({}G) exceeds available HBM (1.00M)."

    def __init__(self, setup, log):
        pass

    def ask(self, request, limit_s):
        Refusing.options = request["options"]
        raise WorkerError(self.says.format(8 + 204 / request["point"]["devices"]), stage="compile")

    def close(self):
        pass


@pytest.fixture
def needs(monkeypatch, tmp_path):
    monkeypatch.setattr(compile_only, "Worker", Refusing)
    monkeypatch.setattr(start_lib, "require_target", lambda target: None)
    config = composed("gpt", **{"mesh.devices": "4,8", "scaling": "weak", "strategy": "fsdp"})
    console = Console(file=io.StringIO())
    return lambda: forecast_memory.needs("gpt", config, targets.parse("v5e:16x16"), tmp_path / "memory", console)


@pytest.mark.parametrize("count", [4, 8, 16, 256])
def test_memory_is_compiled_at_two_counts_and_extrapolated_to_others(needs, count):
    found, unknown = needs()
    assert not unknown
    assert Refusing.options["xla_tpu_max_hbm_size_mib"] == "1"
    assert Refusing.options["xla_tpu_enable_async_collective_fusion_fuse_all_gather"] is True
    made = forecast_memory.replaced(at(count), found, unknown)
    assert made.peak_bytes == pytest.approx((8 + 204 / count) * GIB, rel=1e-6)
    assert made.low_s == at(count).low_s
    assert SAVES_MEMORY in made.notes[-1]


def test_memory_is_unknown_where_the_compiler_does_not_say(needs, monkeypatch):
    monkeypatch.setattr(Refusing, "says", "no answer within 900 s")
    made = forecast_memory.replaced(at(16), *needs())
    assert made.peak_bytes is None and made.fits is None
    assert "The memory of fsdp/weak/4 is unknown: no answer within 900 s" in " ".join(made.notes)


@pytest.mark.parametrize(
    ("target", "devices", "gib", "fits"),
    [("v5p:4x4x4", 64, 200, None), ("v6e:2x4", 8, 200, None), ("v5p:4x4x4", 64, 3, True),
     ("v6e:4x4", 16, 200, False), ("v5e:2x4", 8, 200, False)],
)  # fmt: skip
def test_an_upper_bound_can_say_that_it_fits_but_never_that_it_does_not(target, devices, gib, fits):
    record = dataclasses.replace(at(devices), target=target, memory_bytes=16 * GIB)
    made = forecast_memory.replaced(record, {("fsdp", "weak", ""): {devices: gib * GIB}}, ())
    assert made.fits is fits
    assert ("is at most" in made.notes[-1]) is (fits is None)


def test_one_count_says_nothing_of_another():
    found = {("fsdp", "weak", ""): {8: 10**9}}
    assert forecast_memory.replaced(at(8), found, ()).peak_bytes == 10**9
    assert forecast_memory.replaced(at(16), found, ()).peak_bytes is None
