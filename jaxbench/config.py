# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The config tree: the harness's fields, each declared once, then the experiment's fields and a preset's changes.

A config is plain data (numbers, strings, booleans). Lists are comma-separated strings, as they are typed:
``--config.mesh.devices=1,2,4``. `Settings`, `CaseSettings` and `TargetSettings` are the harness's part, parsed and
checked: one line declares a field's path, its default and its parser. A parser raises
UserError with one sentence.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ml_collections import ConfigDict, FieldReference

from jaxbench import discovery, levers, ranges
from jaxbench.catalog import allocators
from jaxbench.config_values import (
    AUTO,
    ConfigField,
    allocator,
    as_is,
    batch_sizes,
    device_counts,
    device_limit,
    epochs,
    existing,
    factors,
    integer,
    integer_or_auto,
    names,
    names_of,
    number,
    one_of,
    overlay,
    positive,
    power_limit,
    rate,
    setting,
    share,
)
from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.documents import flatten

S = TypeVar("S", bound="_Measured | TargetSettings")
# Sets of processes that take turns. With fewer sets, an interval cannot cover the variation between processes. With
# measure.rounds=auto, each set measures a point at least twice. benchmarks/interval_coverage.py simulates both.
SETS, LEAST_SETS = 4, 3
# With measure.rounds=auto, if all sets live at the same time. Student's quantile is then 2.6, instead of 3.2 for four
# sets, and two more sets start in a few seconds. Sets that follow each other must each start and compile.
LIVE_SETS = 6
BUDGET_S = 32.0  # seconds for rounds: in `make run EXP=cnn` on two cores, all the rest takes longer
MAX_SEED = 2**32 - 1  # a key has 32 bits; larger seeds repeat the keys of smaller seeds or fail
CACHED, FRESH = "cached", "fresh"  # of measure.compile
FIXED = ("experiment", "measures")  # fields that the command line cannot set
_UNTYPED = {
    type(None): "its default, None, has no type: write config_dict.placeholder(str), for example,",
    list: "its default is a list: write a tuple",
}
_KINDS: dict[type, tuple[str, Callable[[str], Any]]] = {
    int: ("a whole number", int),
    float: ("a number", float),
    bool: ("true or false", lambda text: {"true": True, "false": False, "1": True, "0": False}[text.lower()]),
}
# The settings of time-to-target runs over batch sizes (measures="targets").
LINEAR, SQRT, TUNED = RULES = ("linear", "sqrt", "tuned")

# The look of a run's figures. `jaxbench report --config.report.width_in=3.5` changes it afterwards.
LOOK = (
    ConfigField("report.width_in", 7.0, number(2.5, 20.0)),  # 3.5: one column of a two-column page
    ConfigField("report.title", "", as_is),  # replaces the experiment's name in titles; "none": no titles
)
OVERLAY = ConfigField("report.overlay", "tf_dgx1_p100_synth", overlay)
# More fields of a training experiment's config.
TRAINING_ONLY = (
    *LOOK,
    ConfigField("measure.gradients", False, as_is),  # also measure how many bytes of gradients one device holds
    ConfigField("depths", "", as_is),  # "4,8": also compile at these block counts, for the memory of each lever.remat
    ConfigField("model", {}, as_is),
    ConfigField("optimizer.name", "sgd", as_is),
    ConfigField("optimizer.learning_rate", 0.1, rate),
    ConfigField("data.path", "", existing),
    # Fields of `jaxbench train`. features/training/plan.py checks them.
    ConfigField("train.strategy", "jit_auto", as_is),
    ConfigField("train.batch", 64, as_is),
    ConfigField("train.epochs", 20, as_is),
    ConfigField("train.metric", "accuracy", as_is),  # on the test set; reaching its target ends the training
    ConfigField("train.mode", "auto", one_of("auto", "max", "min")),  # auto: a loss is minimised
    ConfigField("train.target", 0.97, as_is),
    ConfigField("train.checkpoint_every", 50, as_is),
    ConfigField("train.keep", 3, as_is),
    ConfigField("train.tensorboard", False, as_is),
    ConfigField("train.warmup", 0, as_is),  # steps over which the learning rate grows to its value; 0: no warm-up
    ConfigField("train.evaluate_every", 0, as_is),  # steps; 0: after each epoch
    ConfigField("train.noise_examples", 0, as_is),  # examples per measurement of the gradient noise scale; 0: none
    OVERLAY,
    ConfigField("report.view", "", as_is),  # an extra figure of how a model is sharded, such as zero; see commandline
)
# Of an experiment of kernels, transfers and collectives.
CASES_ONLY = (
    *LOOK,
    ConfigField("measures", "cases", as_is),
    ConfigField("ops", "all", as_is),  # names, comma-separated
    ConfigField("sizes", "auto", as_is),  # "1024,1e6,64Ki"
    ConfigField("dtypes", "float32", as_is),
)
TARGETS_ONLY = (ConfigField("measures", "targets", as_is),)


def counts(rounds: Any, processes: Any, *, live: bool) -> tuple[int, int]:
    """(rounds, sets of processes) for the values of `measure.rounds` and `measure.processes`. With rounds=auto, it is
    the least number of rounds. None counts as auto. live: all sets live at the same time (`sweep.job.live`)."""
    if rounds in (AUTO, None):
        automatic = LIVE_SETS if live else SETS
        sets = automatic if processes in (AUTO, None) else int(processes)
        return 2 * sets, sets
    return int(rounds), min(SETS, int(rounds)) if processes in (AUTO, None) else int(processes)


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """The settings that runs of training steps and of cases share. Times are in seconds."""

    experiment: str
    seed: int = setting("seed", 0, integer(0, MAX_SEED))
    platform: str = setting("mesh.platform", "auto", one_of("auto", "cpu", "gpu", "tpu"))
    devices: tuple[int, ...] | None = setting("mesh.devices", "auto", device_counts)
    max_devices: int | None = setting("mesh.devices", None, device_limit)
    mesh_processes: str = setting("mesh.processes", "1", as_is)  # processes that run one point: a number, or per_device
    # None: as many rounds as the machine needs for narrow intervals; docs/metrics, Rounds.
    rounds: int | None = setting("measure.rounds", AUTO, integer_or_auto(1, 10_000, like=10), mixed=True)
    # Sets of processes that take turns in the rounds. Only 3 or more sets show how much processes differ. There are
    # fewer if memory is short.
    processes: int | None = setting("measure.processes", AUTO, integer_or_auto(1, 10_000, like=5), mixed=True)
    blocks: int = setting("measure.blocks", 1, integer(1, 1_000))  # timed blocks in each round of a point
    block_s: float = setting("measure.block_s", 0.05, positive)  # the minimum length of a block
    # Watts of all GPUs; with several values, a run for each. Read by `machine.power_limits`.
    power_limit: str = setting("power_limit", "", power_limit)
    compile: str = setting("measure.compile", CACHED, one_of(CACHED, FRESH))  # load compiled programs, or compile anew
    allocator: str = setting(
        "measure.allocator", allocators.SYSTEM, allocator
    )  # of the processes that measure, or a library

    def __post_init__(self) -> None:
        if self.rounds is not None and (self.processes or 1) > self.rounds:
            raise UserError(
                f"--config.measure.processes={self.processes} cannot share {self.rounds} rounds: use 1 to "
                f"{self.rounds}, or more --config.measure.rounds."
            )


@dataclass(frozen=True, kw_only=True)
class Settings(_Measured):
    """The harness's part of a training experiment's config."""

    strategies: tuple[str, ...] = setting("strategy", "jit_auto", as_is)  # names, or "all"; read by `parse`
    scalings: tuple[str, ...] = setting("scaling", "strong,weak", names_of("strong", "weak"))
    batch: int = setting("batch", 64, integer(1, 2**31 - 1))  # global in strong scaling, per device in weak scaling
    # The batch on accelerators, where a CPU's batch would only measure launch overhead; 0: the same. A batch from the
    # command line, a preset or a changed experiment holds on every platform.
    accelerator_batch: int = setting("accelerator_batch", 0, integer(0, 2**31 - 1))
    # What grows with the device count in weak scaling; "model": by the experiment's own grow().
    weak: str = setting("weak", "batch", one_of("batch", "model"))
    oversubscribe: bool = setting("mesh.oversubscribe", True, as_is)  # mesh.devices=auto may exceed the CPU cores
    # "max": find the largest batch that fits; "context": the longest sequence. search_bytes 0: the device's memory.
    search: str = setting("search", "", one_of("", "max", "context"))
    search_bytes: int = setting("search_bytes", 0, integer(0, 2**63 - 1))
    # The longest sequence is exact to one part in this; with 1, a search only doubles the length.
    search_sharpness: int = setting("search_sharpness", 8, integer(1, 64))
    # Fields with several values, such as precision=default,bfloat16, are swept.
    arms: tuple[levers.Arm, ...] = setting(
        "lever", levers.defaults().to_dict(), lambda path, value: tuple(levers.arms(value))
    )
    swept: tuple[str, ...] = setting("lever", None, lambda path, value: levers.swept(value))
    explain: str = setting("explain", "on", one_of("on", "off", "more"))  # measure the points of features/ablations
    profile: bool = setting("profile", False, as_is)  # trace one block of each point and show where its time goes
    # Steps of real training per point before it is timed. Their loss and accuracy are reported with its speed.
    train_steps: int = setting("measure.train_steps", 0, integer(0, 1_000_000))
    # With rounds=auto: measuring stops when the rounds have taken this many seconds.
    budget_s: float = setting("measure.budget_s", BUDGET_S, positive)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds is None and self.processes is not None and self.processes < LEAST_SETS:
            raise UserError(
                f"--config.measure.processes={self.processes} is too few for --config.measure.rounds=auto, which needs "
                f"the variation between processes: use {LEAST_SETS} or more, or a number of rounds."
            )
        if self.rounds is not None and self.budget_s != BUDGET_S:
            raise UserError(
                f"--config.measure.budget_s={self.budget_s:g} has no effect on {self.rounds} rounds: use it with "
                "--config.measure.rounds=auto."
            )


@dataclass(frozen=True, kw_only=True)
class CaseSettings(_Measured):
    """The harness's part of a config of kernels, transfers and collectives."""

    rounds: int = setting("measure.rounds", 5, integer(1, 10_000))
    processes: int = setting("measure.processes", 1, integer(1, 10_000))  # preparing costs more than measuring
    block_s: float = setting("measure.block_s", 0.02, positive)
    mesh_shape: str = setting("mesh.shape", "auto", as_is)  # "2x4", or "auto"
    cores: tuple[str, ...] = setting("cores", "all", names_of("all", "1"))  # CPU cores of kernels
    max_bytes: int = setting("max_bytes", 0, integer(0, 2**63 - 1))  # skips larger cases; 0: depends on the memory


def _fields(settings: type, more: Iterable[ConfigField]) -> list[ConfigField]:
    """The config fields that the attributes of a settings class declare, and `more`."""
    return [f.metadata["field"] for f in dataclasses.fields(settings) if "field" in f.metadata] + [*more]


def _tree(fields: Iterable[ConfigField]) -> ConfigDict:
    """The defaults of fields as a ConfigDict, nested by the dots in their paths."""
    tree: dict[str, Any] = {}
    for field in fields:
        *groups, last = field.path.split(".")
        group = functools.reduce(lambda at, name: at.setdefault(name, {}), groups, tree)
        if field.default is not None:
            group[last] = FieldReference(field.default, field_type=object) if field.mixed else field.default
    return ConfigDict(tree)


def look(recorded: dict[str, Any]) -> ConfigDict:
    """The look of a run's figures, for `jaxbench report` to change. recorded: the run's config.json."""
    tree = _tree([*LOOK, OVERLAY])
    section = recorded.get("report")
    tree.report.update({name: section[name] for name in tree.report if name in section} if section else {})
    return tree.lock()


def check_look(config: ConfigDict) -> dict[str, Any]:
    """The settings of `look` with the command line's changes. Raises UserError naming the field."""
    for field in (*LOOK, OVERLAY):
        field.read(field.path, _at(config, field.path))
    return plain(config)["report"]


def defaults(measures: str = "") -> ConfigDict:
    """The harness's fields of a kind of experiment, to which it adds its own, such as model.*. "": of a training."""
    kinds: dict[str, tuple[type, Iterable[ConfigField]]]
    kinds = {"cases": (CaseSettings, CASES_ONLY), "targets": (TargetSettings, TARGETS_ONLY)}
    return _tree(_fields(*kinds.get(measures, (Settings, TRAINING_ONLY))))


def _read(settings: type[S], more: Iterable[ConfigField], config: ConfigDict, **known: Any) -> S:
    """The settings that a config holds. Raises UserError for an illegal value."""
    for field in more:
        field.read(field.path, _at(config, field.path))
    for attribute in dataclasses.fields(settings):
        if "field" in attribute.metadata and attribute.name not in known:
            field = attribute.metadata["field"]
            known[attribute.name] = field.read(field.path, _at(config, field.path))
    return settings(experiment=config.experiment, **known)


def _at(config: ConfigDict, path: str) -> Any:
    """The value at a dotted path of a config."""
    return functools.reduce(lambda at, name: at[name], path.split("."), config)


def parse(config: ConfigDict, strategies: list[str], every: list[str]) -> Settings:
    """Parses the harness fields. strategies: the legal names. every: the strategies that "all" means.

    Raises UserError naming the field and its value.
    """
    chosen = tuple(every) if config.strategy == "all" else names_of(*strategies)("strategy", config.strategy)
    return _read(Settings, TRAINING_ONLY, config, strategies=chosen)


def parse_cases(config: ConfigDict) -> CaseSettings:
    """Parses the harness fields of a config with measures="cases". Raises UserError naming the field."""
    return _read(CaseSettings, CASES_ONLY, config)


def compose(
    experiment: str, module: ModuleType, preset: ModuleType, *, tiny: bool = True, training: bool = False
) -> ConfigDict:
    """Harness defaults, then `module.get_config()`, then `preset.get_config(config)`; locked.

    A preset with ``TINY = True`` uses the experiment's ``tiny(config)``, if it has one and `tiny` is set: the same
    model, small enough to compile in a second. With `training`, ``for_training(config)`` is used instead, if it exists.
    An experiment may add keys to its own groups but may not change the type of a harness field.
    """
    own = _own(experiment, module)
    change = "for_training" if training else "tiny" if tiny and getattr(preset, "TINY", False) else ""
    if change and hasattr(module, change):
        with discovery.naming_lines_of(module):
            own = getattr(module, change)(own)
    config = defaults(own.get("measures", ""))
    config.experiment = experiment
    if own:
        try:
            config.update(own)
        except TypeError as error:
            raise UserError(f"experiment '{experiment}' changes the type of a harness field ({error}).") from error
    # A preset that changes the batch means it for every platform.
    own_batches = config.get("batch"), config.get("accelerator_batch")
    with discovery.naming_lines_of(preset):
        changed = preset.get_config(config)
    if not isinstance(changed, ConfigDict):
        raise UserError(
            f"get_config(config) of the preset returned {type(changed).__name__}: it must return the config."
        )
    if own_batches[0] != changed.get("batch") and own_batches[1] == changed.get("accelerator_batch"):
        changed.accelerator_batch = 0
    return changed.lock()


def choose_batch(config: ConfigDict, platform: str) -> None:
    """Sets `batch` to the platform's batch, so that config.json has the measured batch."""
    if platform != "cpu" and config.accelerator_batch:
        config.batch = config.accelerator_batch
    config.accelerator_batch = 0


def _own(experiment: str, module: ModuleType) -> ConfigDict | dict[str, Any]:
    """The settings that the experiment's file returns; none without `get_config`."""
    with discovery.naming_lines_of(module):
        own = module.get_config() if hasattr(module, "get_config") else ConfigDict()
    if not isinstance(own, ConfigDict | dict):
        raise UserError(f"get_config() of '{experiment}' returned {type(own).__name__}, not a ConfigDict.")
    return own


def training_experiments() -> list[str]:
    """The suite's experiments that define a model. The others measure cases, or vary a lever of these models."""
    modules = [(name, discovery.load_experiment(name)) for name in discovery.experiments()]
    own = [(name, module) for name, module in modules if module.build.__module__ == module.__name__]
    return [name for name, module in own if "measures" not in _own(name, module)]


def check_overrides(argv: list[str], config: ConfigDict) -> None:
    """Raises UserError for a ``--config.a.b=value`` with an unknown field, or with a value of another type."""
    fields = flatten(config.to_dict())
    for match in filter(None, (re.fullmatch(r"--config\.([^=]+)=(.*)", word, re.DOTALL) for word in argv)):
        name, text = match.groups()
        if name not in fields:
            raise UserError(f"--config.{name} is unknown: {did_you_mean(name, fields)}")
        if name in FIXED:
            raise UserError(f"--config.{name} cannot be set: the experiment fixes it to {fields[name]}.")
        group, _, last = name.rpartition(".")
        declared = (_at(config, group) if group else config).get_type(last)  # object: a number or a word
        kind, read = _KINDS.get(declared, ("", str))
        if declared in _UNTYPED:
            raise UserError(f"--config.{name}={text} cannot be set, as {_UNTYPED[declared]} in get_config().")
        try:
            value = read(text)
        except (ValueError, KeyError) as error:
            example = {int: 1, float: 0.5, bool: "true"}[declared] if fields[name] is None else fields[name]
            raise UserError(f"--config.{name}={text} is not {kind}: use {example}, for example.") from error
        if name not in _with_readers():  # the sentences of readers know more
            own = config.get("experiment") not in discovery.experiments()
            ranges.check(name, text, value, fields[name], own=own, preset=f"{group}.preset" in fields)


def _with_readers() -> set[str]:
    """The numbers of the harness with a reader, which checks their range."""
    fields = (*_fields(Settings, TRAINING_ONLY), *_fields(CaseSettings, CASES_ONLY))
    return {field.path for field in fields if field.read is not as_is and isinstance(field.default, int | float)}


def restored(experiment: str, old: dict[str, Any]) -> ConfigDict:
    """The config of a finished run, for a rerun. old: its config.json.

    Raises UserError for a field that this jaxbench no longer has, or that now has another type.
    """
    module, preset = discovery.load_experiment(experiment), discovery.load_preset("auto")
    config = compose(Path(experiment).stem, module, preset, tiny=False)
    known, given = flatten(plain(config)), flatten(old)
    gone = sorted(given.keys() - known.keys())
    if gone:
        raise UserError(f"it was measured with {gone[0]}={given[gone[0]]!r}, but this jaxbench has no such field.")
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
class TargetSettings:
    """The harness's part of a config of trainings to a target accuracy."""

    experiment: str
    seed: int = setting("seed", 0, integer(0, 2**31 - 1))  # the first seed; the others count up from it
    models: tuple[str, ...] = setting("models", "mlp", names)  # experiments with data, by name or path
    batches: tuple[int, ...] = setting("batches", "8,16,32,64,128,256,512,1024", batch_sizes)
    seeds: int = setting("seeds", 3, integer(1, 1000))  # the number of trainings that differ only in their seed
    rule: tuple[str, ...] = setting("rule", LINEAR, names_of(*RULES))  # how the learning rate depends on the batch
    warmup: float = setting("warmup", 0.0, epochs)  # epochs over which the learning rate grows to its value
    # The grid of `tuned`: multiples of the rate that `sqrt` gives.
    rates: tuple[float, ...] = setting("rates", "0.25,0.5,1,2,4", factors)
    target: float = setting("target", 0.0, share)  # a test accuracy; 0: the model's own train.target
    epochs: int = setting("epochs", 0, integer(0, 1_000_000))  # then a training is censored; 0: the model's own
    evaluations: int = setting("evaluations", 4, integer(1, 10_000))  # per epoch, at most one per step
    # Examples per measurement of the gradient noise scale; 0: none.
    noise_examples: int = setting("noise_examples", 256, integer(0, 2**31 - 1))
    strategy: str = setting("strategy", "jit_auto", as_is)
    platform: str = setting("mesh.platform", "auto", one_of("auto", "cpu", "gpu", "tpu"))
    devices: tuple[int, ...] | None = setting("mesh.devices", AUTO, device_counts)
    max_devices: int | None = setting("mesh.devices", None, device_limit)
    oversubscribe: bool = False  # devices without a core of their own would only make a training slower


def parse_targets(config: ConfigDict) -> TargetSettings:
    """Parses a config with measures="targets". Raises UserError naming the field and a legal value."""
    return _read(TargetSettings, TARGETS_ONLY, config)
