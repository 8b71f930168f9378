# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Clocks, power and energy around a block, with the answers of GPUs in five states."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from jaxbench.machine import energy, nvml, power
from jaxbench.machine.energy import Counter
from jaxbench.machine.nvml import Nvml, visible
from jaxbench.machine.power import Moment, PowerMeter, meter_of
from jaxbench.records.power import DevicePower
from jaxbench.report import sentences

STATES = json.loads((Path(__file__).parent / "nvml_states.json").read_text())


NAMES = ("good", "throttled", "denied", "reset", "lost")
NOT_SUPPORTED = 3


class NVMLError(Exception):
    """As that of nvidia-ml-py. value: the code."""

    def __init__(self, value: int):
        super().__init__(STATES["codes"][str(value)])
        self.value = value


class Replayed:
    """The module `pynvml` of a machine with two GPUs. Its answers are those of `moment`, which a test advances. A
    handle is the number of the GPU."""

    NVMLError = NVMLError

    def __init__(self, state: str):
        self._moments, self.moment, self.open, self.limits = STATES[state], 0, False, {}

    def nvmlInit(self) -> None:
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def __getattr__(self, function: str) -> Any:
        def answer(*given: int) -> Any:
            now = self._moments[self.moment]
            answers, key = now.get(function.removeprefix("nvmlDeviceGet"), {}), ",".join(map(str, given))
            if not self.open or key not in answers:
                raise NVMLError(now.get("error", {}).get(key.partition(",")[0], NOT_SUPPORTED))
            return answers[key]

        return answer


@pytest.fixture(autouse=True)
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power.energy, "packages", dict)


@pytest.mark.parametrize("state", NAMES)
def test_a_state_has_only_what_nvml_documents(state: str) -> None:
    documented = STATES["documented"]
    for moment in STATES[state]:
        functions = {*moment} - {"error"}
        assert functions <= {*documented}
        codes = moment.get("error", {}).values()
        assert all(code in each["codes"] for code in codes for each in documented.values())
        assert all(not bits & ~0x1FF for bits in moment.get("CurrentClocksEventReasons", {}).values())
        for gpu, bits in moment.get("CurrentClocksEventReasons", {}).items():
            if bits & 0x40:  # heat of the hardware halves the clock, and is a hardware slowdown
                default = STATES[state][0]["DefaultApplicationsClock"][f"{gpu},1"]
                assert bits & 0x8 and moment["ClockInfo"][f"{gpu},1"] <= default / 2
        # An H100 draws at most 700 W, apart from short excursions. Its counter is in millijoules.
        assert all(10_000 <= milliwatts <= 800_000 for milliwatts in moment.get("PowerUsage", {}).values())


def block(state: str) -> tuple[DevicePower, DevicePower]:
    """What two GPUs did in one block, from the first answers of a state to the last."""
    module = Replayed(state)
    meter = meter_of(Nvml(module), [0, 1])
    meter.begin()
    module.moment = 1
    first, second = meter.end()
    return first, second


def test_a_good_block_has_means_of_its_readings_and_the_difference_of_its_counters() -> None:
    first, second = block("good")
    assert (first.device, first.readings, first.sm_mhz, first.memory_mhz) == ("GPU 0", 2, 1970.0, 2619.0)
    assert (first.power_w, first.temperature_c, first.reasons, first.default_mhz) == (655.0, 61.5, 4, 1980)
    assert (first.joules_before, first.joules_after, first.joules) == (5000.0, 5032.0, 32.0)
    assert second.joules == 31.0 and not first.slowed and not second.slowed, "a power limit at work is no fault"


def test_a_low_clock_and_heat_slow_a_block() -> None:
    low, hot = block("throttled")
    assert low.reasons == 4 and low.sm_mhz == 1150.0 and low.slowed, "below 75 % of 1980 MHz"
    assert hot.sm_mhz == 1485.0 and hot.reasons == 72 and hot.slowed, "heat in one of its readings, 75 % of the clock"


def test_a_denied_counter_is_unknown_and_never_0() -> None:
    for device in block("denied"):
        facts = {name: value for name, value in vars(device).items() if name not in ("device", "readings")}
        assert set(facts.values()) == {None} and not device.slowed


def test_after_a_reset_or_a_loss_the_energy_is_unknown() -> None:
    reset, other = block("reset")
    assert reset.joules is None and reset.joules_after == 0.2 and other.joules == 30.0
    lost, kept = block("lost")
    assert lost.joules is None and lost.joules_before == 5000.0 and lost.joules_after is None
    assert lost.sm_mhz == 1980.0, "of the reading before it was lost"
    assert kept.joules == 31.0


def test_a_long_block_is_read_inside_too() -> None:
    module = Replayed("good")
    inside, reads = threading.Event(), []

    def read() -> Moment:
        reads.append(threading.current_thread().name)
        if reads.count("power") == 3:
            inside.set()
        return Moment({}, {"package-0": Counter(float(len(reads)), 100.0)})

    meter = PowerMeter(read, every_s=0.001)
    meter.begin()
    assert inside.wait(30)
    (package,) = meter.end()
    assert reads[0] == reads[-1] == "MainThread" and reads.count("power") >= 3
    assert package.device == "package-0" and package.joules == len(reads) - 1
    assert module.open is False


def test_a_processor_counter_that_wraps_goes_on() -> None:
    values = iter((Counter(95.0, 100.0), Counter(7.0, 100.0)))
    meter = PowerMeter(lambda: Moment({}, {"package-0": next(values)}))
    meter.begin()
    (package,) = meter.end()
    assert package.joules == 12.0 and package.sm_mhz is None


def test_cuda_numbers_only_the_gpus_that_it_shows() -> None:
    uuids = {"GPU-aa11": 0, "GPU-bb22": 1, "GPU-bb33": 2}
    assert visible(3, uuids, {}) == [0, 1, 2]
    assert visible(3, uuids, {"CUDA_VISIBLE_DEVICES": "2, 0"}) == [2, 0]
    assert visible(3, uuids, {"CUDA_VISIBLE_DEVICES": "GPU-bb33,1"}) == [2, 1]
    assert visible(3, uuids, {"CUDA_VISIBLE_DEVICES": "1,7,0"}) == [1], "CUDA ignores all after an unknown one"
    assert visible(3, uuids, {"CUDA_VISIBLE_DEVICES": "GPU-bb"}) == [], "two GPUs have this name"
    assert visible(3, uuids, {"CUDA_VISIBLE_DEVICES": ""}) == []


def test_energy_of_all_gpus_comes_from_the_same_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Replayed("good")
    monkeypatch.setattr(nvml.importlib, "import_module", lambda name: module)
    assert energy.gpus() == {"GPU 0": Counter(5000.0), "GPU 1": Counter(7000.0)} and not module.open
    monkeypatch.setattr(nvml.importlib, "import_module", lambda name: Replayed("denied"))
    assert energy.gpus() == {}
    monkeypatch.setattr(Replayed, "nvmlInit", lambda self: self.nvmlDeviceGetUnknown())
    assert Nvml.opened() is None and energy.gpus() == {}


def test_idle_power_is_that_of_the_gpus_which_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for state, watts in (("good", {"GPU 0": 650.0, "GPU 1": 640.0}), ("denied", {})):
        monkeypatch.setattr(nvml.importlib, "import_module", lambda name, state=state: Replayed(state))
        assert power.idle_w() == watts
    workers: Any = {"a": {"idle_w": {"GPU 0": 60.0}}, "b": {"idle_w": {"GPU 0": 64.0}}, "c": {}}
    said = sentences.idle_power({"workers": workers})
    assert said == ["Idle power, before anything ran: GPU 0 62 W."] and sentences.idle_power({}) == []
