# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The config tree: the harness's defaults, an experiment's own, a preset's changes, and the reading of all of them.

A config is plain data (numbers, strings, booleans) from start to end. Lists are written as comma-separated strings, as
they are typed: ``--config.mesh.devices=1,2,4``. `Settings` is the harness's part of it, parsed and checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ml_collections import ConfigDict

from jaxbench import discovery, levers
from jaxbench.catalog import published
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.store import flatten

SCALINGS = ("strong", "weak")
PLATFORMS = ("auto", "cpu", "gpu", "tpu")


def defaults() -> ConfigDict:
    """The harness's fields. An experiment adds model.*, optimizer.* and what else it needs."""
    config = ConfigDict()
    config.seed = 0
    config.strategy = "jit_auto"  # names, comma-separated, or "all"
    config.scaling = "strong,weak"
    config.batch = 64  # global batch of strong scaling, per-device batch of weak scaling
    config.weak = "batch"  # what grows with the devices in weak scaling: "batch", or "model" by the experiment's grow()
    config.lever = levers.defaults()  # fields with several values, such as precision=default,bfloat16, are swept
    # devices: "1,2,4", or "auto", or "auto:4" (at most 4). oversubscribe: "auto" may mean more devices than CPU cores.
    config.mesh = ConfigDict({"platform": "auto", "devices": "auto", "oversubscribe": True})
    # "max": the largest batch that fits, within search_bytes (0: what the device has). "context": the longest sequence
    config.search = ""
    config.search_bytes = 0
    config.depths = ""  # "4,8,16": compile the step at these numbers of blocks too, for the memory of each lever.remat
    config.profile = False  # trace one block of each point, and say what its time goes to
    # train_steps: steps of real training per point before it is timed, whose loss and accuracy stand beside its speed
    # processes: among how many, one after the other, the rounds are divided; `jaxbench compare` needs 3
    # gradients: also measure what one device holds of them
    config.measure = ConfigDict(
        {"rounds": 10, "blocks": 1, "block_s": 0.05, "processes": 1, "train_steps": 0, "gradients": False}
    )
    config.model = ConfigDict()
    config.optimizer = ConfigDict({"name": "sgd", "learning_rate": 0.1})
    config.data = ConfigDict({"path": ""})
    config.train = ConfigDict(
        {
            "strategy": "jit_auto",
            "batch": 64,
            "epochs": 20,
            "target": 0.97,
            "checkpoint_every": 50,
            "keep": 3,
            "tensorboard": False,
        }
    )
    # view: a figure more, about how a model is spread: zero, tensor, pipeline, context, hybrid, moe, contrastive
    config.report = ConfigDict({"overlay": "tf_dgx1_p100_synth", "view": ""})
    return config


def case_defaults() -> ConfigDict:
    """The harness's fields for kernels, transfers and collectives: an experiment whose config says measures="cases"."""
    config = ConfigDict()
    config.seed = 0
    config.measures = "cases"
    config.ops = "all"  # names, comma-separated, or "all"
    config.sizes = "auto"  # "1024,1e6,64Ki", or "auto"
    config.dtypes = "float32"
    config.cores = "all"  # CPU cores of kernels: "all", "1", or "1,all"
    config.most_bytes = 0  # leave out what holds more at once; 0: a part of the memory
    config.mesh = ConfigDict({"platform": "auto", "devices": "auto", "shape": "auto"})  # shape: "2x4", or "auto"
    config.measure = ConfigDict({"rounds": 5, "blocks": 1, "block_s": 0.02, "processes": 1})
    return config


def compose(experiment: str, module: ModuleType, preset: ModuleType, *, tiny: bool = True) -> ConfigDict:
    """Harness defaults, then `module.get_config()`, then `preset.get_config(config)`; locked.

    A preset with ``TINY = True`` takes the experiment as its ``tiny(config)``, if it has one, makes it: the same model,
    so small that it compiles in a second. tiny=False, of a training: the model stays as it is.

    An experiment may add keys inside its own groups but may not change the type of a harness field.
    """
    own = _own(experiment, module)
    if tiny and getattr(preset, "TINY", False) and hasattr(module, "tiny"):
        with discovery.explained(module):
            own = module.tiny(own)
    config = case_defaults() if own.get("measures") == "cases" else defaults()
    config.experiment = experiment
    if own:
        try:
            config.update(own)
        except TypeError as error:
            raise UserError(f"experiment '{experiment}' changes the type of a harness field ({error}).") from error
    with discovery.explained(preset):
        changed = preset.get_config(config)
    if not isinstance(changed, ConfigDict):
        raise UserError(
            f"get_config(config) of the preset returned {type(changed).__name__}: it must return the config."
        )
    return changed.lock()


def _own(experiment: str, module: ModuleType) -> ConfigDict | dict[str, Any]:
    with discovery.explained(module):
        own = module.get_config() if hasattr(module, "get_config") else ConfigDict()
    if not isinstance(own, ConfigDict | dict):
        raise UserError(f"get_config() of '{experiment}' returned {type(own).__name__}, not a ConfigDict.")
    return own


def training_experiments() -> list[str]:
    """The experiments of the suite that train a model of their own; others measure cases, or pull a lever on these."""
    modules = {name: discovery.load_experiment(name) for name in discovery.experiments()}
    own = {name: module for name, module in modules.items() if module.build.__module__ == module.__name__}
    return [name for name, module in own.items() if _own(name, module).get("measures") != "cases"]


def lever_experiments() -> list[str]:
    """The experiments that come with the suite and pull a lever on another one's model."""
    modules = {name: discovery.load_experiment(name) for name in discovery.experiments()}
    return [name for name, module in modules.items() if module.build.__module__ != module.__name__]


def check_overrides(argv: list[str], config: ConfigDict) -> None:
    """Reads every ``--config.a.b=value`` of a command line against the config it is meant for.

    Raises:
      UserError: there is no such field, or the value is not of the field's type.
    """
    fields = flatten(config.to_dict())
    for word in argv:
        match = re.fullmatch(r"--config\.([^=]+)=(.*)", word, re.DOTALL)
        if not match:
            if word.startswith("--config"):
                raise UserError(f"'{word}' is no setting: write --config.<field>=<value>, such as --config.batch=64.")
            continue
        name, text = match.groups()
        if name not in fields:
            raise UserError(f"--config.{name} is unknown: {did_you_mean(name, fields)}")
        kind = type(fields[name])
        try:
            _READERS.get(kind, str)(text)
        except (ValueError, KeyError) as error:
            raise UserError(f"--config.{name}={text} is not of type {kind.__name__}, as {fields[name]} is.") from error


def check_training(argv: list[str], config: ConfigDict) -> None:
    """Raises UserError for a field such as ``--config.strategy``, which training reads from ``config.train`` only."""
    for word in argv:
        name, _, text = word.removeprefix("--config.").partition("=")
        if word.startswith("--config.") and name in config.train:
            raise UserError(f"--config.{name}={text} is for 'run': use --config.train.{name}={text} for training.")


_READERS: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: lambda text: {"true": True, "false": False, "1": True, "0": False}[text.lower()],
}


def restored(experiment: str, old: dict[str, Any]) -> ConfigDict:
    """The config of a finished run, as its config.json holds it, for measuring the same again.

    Raises UserError for a field that this jaxbench does not have any more, or that has another type now.
    """
    module, preset = discovery.load_experiment(experiment), discovery.load_preset("auto")
    config = compose(Path(experiment).stem, module, preset, tiny=False)
    known, given = flatten(plain(config)), flatten(old)
    gone = sorted(given.keys() - known.keys())
    if gone:
        raise UserError(f"it was measured with {gone[0]}={given[gone[0]]!r}, a field that this jaxbench does not have.")
    try:
        with config.unlocked():
            config.update_from_flattened_dict(given)
    except (TypeError, ValueError) as error:
        raise UserError(f"its config does not fit this jaxbench ({' '.join(str(error).split())}).") from error
    return config


def plain(config: ConfigDict) -> dict[str, Any]:
    """The config as nested dictionaries, ready for JSON."""
    return config.to_dict()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The harness's part of a config. Times in seconds."""

    experiment: str
    seed: int
    strategies: tuple[str, ...]
    scalings: tuple[str, ...]
    batch: int
    weak: str
    platform: str
    devices: tuple[int, ...] | None  # None: by what the machine has
    max_devices: int | None
    oversubscribe: bool
    train_steps: int
    search: str
    search_bytes: int
    arms: tuple[levers.Arm, ...]
    swept: tuple[str, ...]
    profile: bool
    rounds: int
    processes: int = 1
    blocks: int
    block_s: float


def parse(config: ConfigDict, strategies: list[str], every: list[str]) -> Settings:
    """Reads the harness fields. strategies: the names there are; every: those that "all" means.

    Raises UserError naming the field and its value.
    """
    overlay = str(config.report.overlay)
    if overlay:
        _one_of("report.overlay", overlay, published.overlays())
    platform = _one_of("mesh.platform", config.mesh.platform, PLATFORMS)
    devices, max_devices = _devices(str(config.mesh.devices))
    asked = "strategy", str(config.strategy)
    return Settings(
        experiment=config.experiment,
        seed=_at_least("seed", config.seed, 0),
        strategies=tuple(every) if config.strategy == "all" else _names(*asked, strategies),
        scalings=_names("scaling", str(config.scaling), SCALINGS),
        batch=_at_least("batch", config.batch, 1),
        weak=_one_of("weak", str(config.weak), ("batch", "model")),
        platform=platform,
        devices=devices,
        max_devices=max_devices,
        oversubscribe=config.mesh.oversubscribe,
        search=_one_of("search", str(config.search), ("", "max", "context")),
        search_bytes=_at_least("search_bytes", config.search_bytes, 0),
        train_steps=_at_least("measure.train_steps", config.measure.train_steps, 0),
        arms=tuple(levers.arms(config.lever)),
        swept=levers.swept(config.lever),
        profile=config.profile,
        rounds=_at_least("measure.rounds", config.measure.rounds, 1),
        processes=_processes(config.measure),
        blocks=_at_least("measure.blocks", config.measure.blocks, 1),
        block_s=_positive("measure.block_s", config.measure.block_s),
    )


@dataclass(frozen=True, kw_only=True)
class CaseSettings:
    """The harness's part of a config of kernels, transfers and collectives. Times in seconds."""

    experiment: str
    seed: int
    platform: str
    devices: tuple[int, ...] | None
    max_devices: int | None
    mesh_shape: str
    cores: tuple[str, ...]  # "all", "1"
    most_bytes: int  # 0: by the memory there is
    rounds: int
    processes: int = 1
    blocks: int
    block_s: float


def parse_cases(config: ConfigDict) -> CaseSettings:
    """Reads the harness fields of a config that says measures="cases". Raises UserError naming the field."""
    devices, max_devices = _devices(str(config.mesh.devices))
    return CaseSettings(
        experiment=config.experiment,
        seed=_at_least("seed", config.seed, 0),
        platform=_one_of("mesh.platform", config.mesh.platform, PLATFORMS),
        devices=devices,
        max_devices=max_devices,
        mesh_shape=str(config.mesh.shape),
        cores=_names("cores", str(config.cores), ("all", "1")),
        most_bytes=_at_least("most_bytes", config.most_bytes, 0),
        rounds=_at_least("measure.rounds", config.measure.rounds, 1),
        processes=_processes(config.measure),
        blocks=_at_least("measure.blocks", config.measure.blocks, 1),
        block_s=_positive("measure.block_s", config.measure.block_s),
    )


def _devices(text: str) -> tuple[tuple[int, ...] | None, int | None]:
    """ "auto" -> (None, None); "auto:4" -> (None, 4); "1,2,4" -> ((1, 2, 4), None)."""
    head, _, most = text.partition(":")
    try:
        if head.strip() == "auto":
            return None, _at_least("mesh.devices", int(most), 1) if most else None
        counts = tuple(int(word) for word in text.strip("()[] ").rstrip(",").split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1 or len(set(counts)) < len(counts):
        raise UserError(f"--config.mesh.devices={text} is not a list of different device counts such as 1,2,4 or auto.")
    return tuple(sorted(counts)), None


def _names(field: str, text: str, legal: Any) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not names:
        raise UserError(f"--config.{field} is empty: choose from {', '.join(legal)}.")
    return tuple(_one_of(field, name, legal) for name in names)


def _one_of(field: str, value: str, legal: Any) -> str:
    if value not in legal:
        raise UserError(f"--config.{field}={value} is unknown: {did_you_mean(value, legal)}")
    return value


def _at_least(field: str, value: int, least: int) -> int:
    if value < least:
        raise UserError(f"--config.{field}={value} is too small: it must be at least {least}.")
    return value


def _positive(field: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise UserError(f"--config.{field}={value} must be above 0 and finite, such as 0.05.")
    return float(value)


def _processes(measure: ConfigDict) -> int:
    if not 1 <= measure.processes <= measure.rounds:
        raise UserError(
            f"--config.measure.processes={measure.processes} cannot share {measure.rounds} rounds: "
            f"use 1 to {measure.rounds}, or more --config.measure.rounds."
        )
    return int(measure.processes)
