# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The parts of a first run: ordinary commands of the suite, in order, sized for the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ml_collections import ConfigDict

from jaxbench import config as config_lib
from jaxbench import discovery, parallel
from jaxbench.parallel import axes
from jaxbench.runner import plan

SMOKE, MACHINE, SCALING, PROFILE, LEVERS = "smoke", "machine", "scaling", "profile", "levers"  # the stages

# Sizes for timing on accelerators. A step must take much longer than its launch; it needs 2 to 8 GB of device memory.
ON_ACCELERATORS: dict[str, dict[str, Any]] = {
    "cnn": {"model.width": 64, "batch": 1024},
    "gpt": {"model.preset": "small", "model.context": 256},
}
# Seconds per part, as an estimate until a part of the stage has been measured.
GUESS_S = {SMOKE: 40.0, MACHINE: 180.0, SCALING: 120.0, PROFILE: 40.0, LEVERS: 25.0}


@dataclass(frozen=True, kw_only=True)
class Part:
    """One command. run: the name of its folder. words: the arguments of `jaxbench`, without the folder."""

    run: str
    stage: str
    experiment: str
    words: tuple[str, ...]


def largest(machine: dict[str, Any]) -> int:
    """The device count for trying strategies: all accelerators, or as many CPU devices as cores but at least 2."""
    if machine["platform"] == "cpu":
        return max(2, *(n for n in plan.CPU_DEVICES if n <= machine["cores"]))
    return 2 ** (int(machine["devices"]).bit_length() - 1)


def all_of(machine: dict[str, Any]) -> list[Part]:
    """Every part, in the order in which they run. machine: a manifest."""
    return [
        *_smoke(largest(machine)),
        Part(run="machine", stage=MACHINE, experiment="machine", words=("machine",)),
        *(_scaling(experiment, machine) for experiment in ("cnn", "gpt")),
        _profile(machine),
        *_levers(largest(machine)),
    ]


def _smoke(devices: int) -> Iterator[Part]:
    """Every model at a tiny size, with each strategy that it supports, on all devices. `gpt` is first, because it has
    the most strategies."""
    split = _splittable(devices)
    yield _small("gpt", devices, {"strategy": _strategies("gpt", split), **split})
    experts = {"strategy": "expert", "model.experts": max(8, devices), "model.context": 8}
    yield _small("moe", devices, experts)
    yield _small("hybrid", devices, {**split, "lever.mesh": ";".join(mixed(devices))})
    for experiment in config_lib.training_experiments():
        if experiment != "gpt":
            yield _small(experiment, devices, {"strategy": _strategies(experiment, {})})


def _levers(devices: int) -> Iterator[Part]:
    """Every other experiment on a training step, at a tiny size. They are last: they need correct strategies."""
    for experiment in discovery.experiments():
        config = getattr(discovery.load_experiment(experiment), "get_config", ConfigDict)()
        own = experiment in (*config_lib.training_experiments(), "moe", "hybrid")
        if not own and "measures" not in config:
            alone = config.get("mesh", {}).get("devices") == "1"  # the experiment is about a single device
            settings = {"mesh.devices": 1 if alone else devices, "batch": max(16, 8 * devices), "measure.rounds": 1}
            yield _run(LEVERS, experiment, settings, preset="smoke")


def _small(experiment: str, devices: int, settings: dict[str, Any]) -> Part:
    common = {"mesh.devices": devices, "scaling": "strong", "batch": max(16, 4 * devices), "measure.rounds": 1}
    return _run(SMOKE, experiment, {**common, **settings}, preset="smoke")


def _splittable(devices: int) -> dict[str, Any]:
    """Sizes of `gpt` in which heads, blocks and positions can be divided over all devices."""
    parts = max(2, devices)
    sizes = {"layers": parts, "heads": parts, "width": 8 * parts, "context": 2 * parts}
    return {f"model.{name}": size for name, size in sizes.items()}


def _strategies(experiment: str, settings: dict[str, Any]) -> str:
    module = discovery.load_experiment(experiment)
    config = config_lib.compose(experiment, module, discovery.load_preset("smoke"))
    with config.unlocked():
        config.update_from_flattened_dict(settings)
    return ",".join(parallel.of_model(discovery.build(experiment, config)))


def mixed(devices: int) -> list[str]:
    """Meshes with as many axes as the device count has factors of two, or with one axis if it has none."""
    meshes = []
    for inner in (("tensor", "fsdp", "data"), ("tensor", "stage", "data")):
        sizes: dict[str, int] = {}
        left = devices
        for axis in inner[:-1]:
            sizes[axis] = 2 if left % 2 == 0 else 1
            left //= sizes[axis]
        sizes[inner[-1]] = left
        meshes.append({axis: sizes[axis] for axis in axes.AXES if sizes.get(axis, 1) > 1} or {"data": 1})
    return list(dict.fromkeys(axes.text(sizes) for sizes in meshes))


def _scaling(experiment: str, machine: dict[str, Any]) -> Part:
    """Strong and weak scaling over 1, 2, 4, ... devices. Never oversubscribed, because that does not show speed."""
    return _run(SCALING, experiment, {"mesh.oversubscribe": "false", **_sized(experiment, machine)})


def _profile(machine: dict[str, Any]) -> Part:
    devices = min(largest(machine), machine["cores"]) if machine["platform"] == "cpu" else largest(machine)
    settings = {"profile": "true", "mesh.devices": devices, "scaling": "strong", "measure.rounds": 3}
    settings["measure.processes"] = 1
    return _run(PROFILE, "cnn", {**settings, **_sized("cnn", machine)})


def _sized(experiment: str, machine: dict[str, Any]) -> dict[str, Any]:
    return {} if machine["platform"] == "cpu" else ON_ACCELERATORS[experiment]


def _run(stage: str, experiment: str, settings: dict[str, Any], *, preset: str = "auto") -> Part:
    flags = [f"--config.{name}={value}" for name, value in settings.items()]
    words = ("run", experiment, *([f"--preset={preset}"] if preset != "auto" else []), *flags)
    return Part(run=f"{stage}-{experiment}", stage=stage, experiment=experiment, words=words)
