# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The process that runs the probes of one host, or its part of the probes over hosts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jaxbench.features.accept.messages import (
    Examined,
    ExamineHost,
    MeasureProbes,
    PrepareProbes,
    ProbeFacts,
    ProbesMeasured,
    ProbesReady,
    WrongBits,
)
from jaxbench.processes import server
from jaxbench.processes.messages import Message, Request, Setup

if TYPE_CHECKING:  # they import jax, and the server chooses cores before that
    import jax

    from jaxbench.features.accept.device_probes import Devices, Products, Runner
    from jaxbench.features.accept.steps import Steps

REQUESTS: tuple[type[Request], ...] = (PrepareProbes, MeasureProbes, ExamineHost)


def _age_s() -> float:
    """Seconds since this process was started; 0 where the system does not say."""
    try:
        ticks = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


class Probing:
    """The probes of a process. devices: of all processes of its world, in order."""

    def __init__(self, setup: Setup, devices: list[jax.Device]):
        """Raises RuntimeError if this process owns no device."""
        from jaxbench.features.accept import device_probes
        from jaxbench.features.doctor import system

        self._throttles = system.throttles()
        self.devices, self._setup = devices, setup
        self._runners: dict[str, Runner] = {}
        self._steps: Steps | None = None
        self._products: dict[str, Products] = {}
        self._cores = device_probes.usable_cores(setup.order)
        here = [device for device in devices if device.process_index == _process_index()]
        self._here: Devices = device_probes.Devices(here, self._cores)

    def prepare(self, names: tuple[str, ...]) -> ProbesReady:
        left_out: dict[str, str] = {}
        facts, start_s = [], _age_s()
        for name, make in self._makers(names):
            runner = make()
            if isinstance(runner, str):
                left_out[name] = runner
                continue
            self._runners[name] = runner
            runner.run()
            runner.check()  # compiles
            began = time.perf_counter()
            runner.run()
            runner.check()
            cost_s = time.perf_counter() - began
            facts.append(ProbeFacts(name=name, units=runner.units, amount=runner.amount, cost_s=cost_s))
        kinds = tuple(device.device_kind for device in self._here.all)
        wrong = self._wrong(tuple(name for name in names if name in self._runners))
        return ProbesReady(probes=tuple(facts), wrong=wrong, left_out=left_out, devices=kinds, start_s=start_s)

    def measure(self, request: MeasureProbes) -> ProbesMeasured:
        if self._steps is not None and "gpt" in request.probes:
            self._steps.last(request.load_s)
        seconds = {name: tuple(self._runners[name].run()) for name in request.probes}
        loss = self._steps.loss if self._steps is not None and "gpt" in request.probes else ""
        return ProbesMeasured(seconds=seconds, wrong=self._wrong(request.probes), loss=loss)

    def examine(self, folder: str) -> Examined:
        from jaxbench.features.doctor import gpus, system
        from jaxbench.machine import manifest

        host, devices = system.read_host(), self._here.all
        facts = {"platform": devices[0].platform, "devices": len(devices)}
        findings = [
            *gpus.examine(host.nvidia, gpus.at_work),  # first: an idle GPU lowers its clocks and its link
            *gpus.examine(host.nvidia, gpus.spoiling),
            *system.processor(),
            *system.resources(Path(folder)),
            *system.software(facts, manifest.versions(), host),
            system.heat(self._throttles, system.throttles()),
        ]
        return Examined(findings=tuple((each.name, each.state, each.message) for each in findings))

    def _wrong(self, names: tuple[str, ...]) -> tuple[WrongBits, ...]:
        """The results of these probes with wrong bits."""
        return tuple(
            WrongBits(probe=name, unit=unit, text=text) for name in names for unit, text in self._runners[name].check()
        )

    def _makers(self, names: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], Runner | str]]]:
        """A function for each of these probes that prepares it, or returns why it cannot be measured."""
        from jaxbench.features.accept import core_probes, device_probes, host_links

        here, several = self._here, "it has a single device"
        products = self._products

        def product(name: str) -> Runner:
            dtype = "bfloat16" if name == "product_bf16" else "float32"
            if dtype not in products:
                products[dtype] = device_probes.Products(here, dtype)
            return products[dtype].runner(name, together=name == "together")

        def steps() -> Runner:
            from jaxbench.features.accept import steps as of_gpt

            self._steps = of_gpt.Steps(here)
            return self._steps.runner()

        def large(name: str) -> Runner | str:
            size = here.sizes.large if name.endswith("256") else here.sizes.small
            too_large = device_probes.too_large(here) if size == here.sizes.large else ""
            return too_large or device_probes.all_reduce(name, here.all, size) if len(here.all) > 1 else several

        makers: dict[str, Callable[[str], Runner | str]] = {
            "triad": lambda name: device_probes.triad(here),
            "copy_in": lambda name: device_probes.copies(here, inward=True),
            "copy_out": lambda name: device_probes.copies(here, inward=False),
            "start": lambda name: device_probes.start_latency(here),
            "gpt": lambda name: steps(),
            "pairs": lambda name: device_probes.pairs(here) if len(here.all) > 1 else several,
            "allreduce_1": large,
            "allreduce_256": large,
            "cores_alone": lambda name: core_probes.alone(self._cores) or "threads cannot be pinned here",
            "cores_together": lambda name: core_probes.together(self._cores) or "threads cannot be pinned here",
            "input": lambda name: device_probes.from_disk(Path(str(self._setup.config.get("folder", ".")))),
            **dict.fromkeys(("product_bf16", "product_f32", "together"), product),
            **dict.fromkeys(host_links.NAMES, lambda name: host_links.probe(name, self.devices, here)),
        }
        for name in names:
            yield name, lambda name=name: makers[name](name)  # type: ignore[misc]


def _process_index() -> int:
    import jax

    return int(jax.process_index())


def handle(probing: Probing, request: Request) -> Message:
    """Carries out one request and returns its answer."""
    match request:
        case PrepareProbes():
            return probing.prepare(request.probes)
        case MeasureProbes():
            return probing.measure(request)
        case ExamineHost():
            return probing.examine(request.folder)
    raise TypeError(f"a process of probes does not carry out '{request.do}'")


if __name__ == "__main__":
    server.main(REQUESTS, Probing, handle)
