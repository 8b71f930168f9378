# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The levers of a training step, fields of any training experiment: ``--config.lever.precision=default,bfloat16``.

A field with several values is swept: every combination is an *arm*, measured interleaved with the others. Instead, the
field `ladder` names rungs. Each rung adds one setting to the previous rung: ``"execution=jit; precision=bfloat16"``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from jaxbench.catalog import rows
from jaxbench.errors import UserError, did_you_mean
from jaxbench.lever import Lever, whole

# The lever `remat`: what the backward pass of a block recomputes, and what the forward pass keeps for it. Some values
# select by kind of operation or by block. The others select by name: a preset, or a list such as
# "names:out_proj+query_proj=offload". What is not listed is recomputed. A block states its names with
# `jax.ad_checkpoint.checkpoint_name`. Presets and names are those of MaxText (`remat_policy` in its configs/base.yml),
# which calls the output of attention "context".
ATTENTION = "attention_output"
_QKV = ("query_proj", "key_proj", "value_proj")
_PRODUCTS = (*_QKV, "out_proj", "mlpwi", "mlpwo")  # results of products with weights; attention is not among them
ACTIVATIONS = ("decoder_layer_input", *_QKV, ATTENTION, "out_proj", "mlpwi", "mlpwo")
_BY_NAME = "names:"
_PLACES = ("keep", "offload", "recompute")
STAGE_INPUTS = "stage"  # in a pipeline: all of a stage's blocks are recomputed from their input
REMATS = ("none", "sqrt", "block", "dots_saveable", "offload", STAGE_INPUTS)
# A pipeline of a model with at least this number of parameters stores only the inputs of its stages, unless it is asked
# to recompute something else.
LARGE = 10**9
EVERY_SET = "all"
NO_OPTIONS = "default"
_JOINED = re.compile(r"[+\s]+(?=[a-z-])")  # a "+" can also begin a value
# Options that XLA accepts for a program but ignores there: it reads them when the process starts.
_OF_THE_PROCESS = {"xla_force_host_platform_device_count": "--config.mesh.devices"}
# The 16-bit precisions, and the format of the operands of their products.
SIXTEEN_BITS = {"bfloat16": "bfloat16", "float16": "float16", "float16_unscaled": "float16", "mixed": "bfloat16"}
REDUCTIONS = ("each", "fused", "bucketed", "scatter", "ring")
EVERY_MESH = "all"


class Named(NamedTuple):
    """The names of activations that are kept in a device's memory, and of those that are moved to the host's."""

    keep: tuple[str, ...] = ()
    offload: tuple[str, ...] = ()


REMAT_PRESETS = {
    "full": Named(),
    "minimal": Named(keep=_PRODUCTS),
    "minimal_flash": Named(keep=(*_PRODUCTS, ATTENTION)),
    "save_qkv_proj": Named(keep=_QKV),
    "qkv_proj_offloaded": Named(offload=_QKV),
}


def named_activations(text: str) -> Named | None:
    """The names of a value of the lever; None if it does not select by name. Raises ValueError for an unknown name."""
    if not text.startswith(_BY_NAME):
        return REMAT_PRESETS.get(text)
    places: dict[str, str] = {}
    for word in text.removeprefix(_BY_NAME).split("+"):
        name, _, place = word.strip().partition("=")
        if name not in ACTIVATIONS:
            raise ValueError(f"names '{name}', which no block has: {did_you_mean(name, ACTIVATIONS)}")
        if (place or "keep") not in _PLACES or name in places:
            raise ValueError(f"does not say where '{name}' goes: write {name}=keep, =offload or =recompute, once.")
        places[name] = place or "keep"
    # What is recomputed needs no list: that is all the rest.
    return Named(*(tuple(name for name, place in places.items() if place == where) for where in _PLACES[:2]))


def offloads(text: str) -> bool:
    """Whether a value of the lever moves activations to the host's memory."""
    return text == "offload" or bool((named_activations(text) or Named()).offload)


def recomputes_products(text: str) -> bool:
    """Whether the backward pass computes matrix products of the forward pass again, not only what is between them."""
    if (found := named_activations(text)) is not None:
        return not {*_PRODUCTS} <= {*found.keep, *found.offload}
    return text in ("sqrt", "block", STAGE_INPUTS)


def _remat_policy(text: str) -> str:
    if text not in REMATS and named_activations(text) is None:
        legal = did_you_mean(text, [*REMATS, *REMAT_PRESETS])
        raise ValueError(f"is unknown: {legal} Or name activations: names:out_proj+query_proj=offload.")
    return text


# Rematerialization: the activations that the backward pass recomputes instead of storing them.
REMAT = Lever(
    "remat",
    about="what the backward pass recomputes instead of keeping",
    default="none",
    parse=_remat_policy,
    changes="workload",
    view="remat",
)


# The lever `compiler`: options with which XLA compiles the step. A value is a set: a name in compiler_options.csv of
# the catalogue (sets that others published), an option such as xla_cpu_prefer_vector_width=512, or several of both,
# joined by "+" or blanks. Sets are separated by ";", because the value of an option may contain commas. "all" stands
# for every named set of the platform.
@dataclass(frozen=True, kw_only=True)
class OptionSet:
    """One named set. platform: cpu | gpu | tpu. options: "xla_a=1 xla_b=true". source: its publisher."""

    name: str
    platform: str
    options: str
    source: str


@functools.cache
def option_sets() -> dict[str, OptionSet]:
    """Every set by its name."""
    fields = ("name", "platform", "options", "source")
    return {row["name"]: OptionSet(**{field: row[field] for field in fields}) for row in rows("compiler_options.csv")}


def set_names(platform: str) -> list[str]:
    """The sets of one platform, in the order of the catalogue."""
    return [each.name for each in option_sets().values() if each.platform == platform]


def platform_of(option: str) -> str | None:
    """The only platform with a compiler that reads an option, according to its name; None if it may be any."""
    found = re.match(r"xla_(cpu|gpu|tpu)_", option)  # others, such as xla_backend_optimization_level, may be of any
    return found and found[1]


Options = dict[str, str | bool]


def _compiler_options(text: str) -> Options:
    """The options of one set; {} for `default`, and for `all`, which the plan replaces by the named sets."""
    options: Options = {}
    for word in _JOINED.split(text) if text != EVERY_SET else ():
        more = _compiler_word(word)
        if twice := sorted(options.keys() & more.keys()):
            raise ValueError(f"sets {twice[0]} twice: give each option one value.")
        options |= more
    return options


def _compiler_word(word: str) -> Options:
    """The options of one word: `default`, the name of a set, or an option with its value."""
    name, equals, value = word.removeprefix("--").partition("=")
    if name.startswith("xla_"):
        if not equals:
            raise ValueError(f"has {name} without a value: write {name}=true, for example.")
        if instead := _OF_THE_PROCESS.get(name):
            raise ValueError(f"has {name}, which belongs to the process, not to a program: use {instead}.")
        # XLA reads a number or a word of any type from text, but not a boolean, which must be passed as one.
        return {name: value.lower() == "true" if value.lower() in ("true", "false") else value}
    if word == NO_OPTIONS:
        return {}
    known = option_sets()
    if word not in known:
        if word.partition(",")[0] in (NO_OPTIONS, *known):
            raise ValueError(f"has '{word}': separate sets by ';', because the value of an option may contain commas.")
        legal = did_you_mean(word, [NO_OPTIONS, EVERY_SET, *known])
        raise ValueError(f"has '{word}', which is no set, and no option such as xla_option=value: {legal}")
    return _compiler_options(known[word].options)  # options joined by blanks, as a person may also type them


COMPILER = Lever(
    "compiler",
    about="options with which XLA compiles the step, or a named set; all: every named set",
    default=NO_OPTIONS,
    parse=_compiler_options,
    changes="program",
    view="compiler",
    separator=";",
    sweeps=(EVERY_SET,),
)


def every_set(config: Mapping[str, Any]) -> bool:
    """Whether a run's config asks for all named sets, including those that its XLA does not know."""
    return EVERY_SET in str(config.get("lever", {}).get(COMPILER.name, "")).replace(COMPILER.separator, " ").split()


def named_sets(levers: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The named sets of an arm: (options, source) by name."""
    known, words = option_sets(), _JOINED.split(levers.get(COMPILER.name, NO_OPTIONS))
    return {word: (known[word].options, known[word].source) for word in words if word in known}


def require_platform(levers: Mapping[str, str], platform: str) -> None:
    """Raises UserError for an option that only the compiler of another platform reads: XLA would ignore it."""
    for option in COMPILER.of(levers):
        other = platform_of(option)
        if other not in (None, platform):
            raise UserError(
                f"--config.lever.compiler={levers[COMPILER.name]} has {option}, which is for a {other}, but this is a "
                f"{platform}: use {', '.join(set_names(platform))}, or options of its compiler."
            )


# One declaration for each lever. `_DECLARED` has their order in names of arms, on pages and in ``summary.csv``. It is
# also the order of their effects on a workload. A new lever comes last.


# The number format of the products in a step. "default" is JAX's: float32 arrays, and products as the platform prefers.
PRECISION = Lever(
    "precision",
    about="the number format of the products in a step",
    default="default",
    values=("default", "float32", "tf32", *SIXTEEN_BITS),
    parse=str,
    changes="workload",
    view="precision",
)

# The number of micro-batches over which a step adds up gradients.
ACCUMULATE = Lever(
    "accumulate",
    about="micro-batches over which a step adds up gradients",
    default="1",
    parse=whole(1),
    changes="workload",
    view="accumulate",
)

# Parameters that are not trained: a regular expression for their path, such as "embed|blocks/[0-3]/"; "none": all are.
FREEZE = Lever(
    "freeze",
    about="parameters that are not trained, as a regular expression of their path",
    default="none",
    parse=str,
    changes="workload",
    view="freeze",
)

# Several batch sizes in one run. 0 means ``config.batch``.
BATCH = Lever(
    "batch",
    about="several batch sizes in one run; 0: config.batch",
    default="0",
    parse=whole(0),
    changes="feed",
    untrained="the batch of a training is --config.train.batch",
    view="batch",
)

# The whole step, the step without its last phases, or inference.
PART = Lever(
    "part",
    about="the whole step, the step without its last phases, or inference",
    default="step",
    values=("step", "forward", "gradient", "local", "inference"),
    parse=str,
    changes="program",
    untrained="a part of a step does not train",
    view="phases",
)

# How the step reaches the devices.
EXECUTION = Lever(
    "execution",
    about="how the step reaches the devices",
    default="donated",
    values=("eager", "unfused", "jit", "donated"),
    parse=str,
    changes="program",
    untrained="a training always compiles its step and donates its state",
)


class Source(NamedTuple):
    """The source of the batch of each step.

    kind: device, host or pipeline. ahead: the number of batches that a pipeline prefetches."""

    kind: str
    ahead: int = 0


def _source(text: str) -> Source:
    """The input that a word names. Raises ValueError."""
    kind, _, ahead = text.partition(":")
    if text in ("device", "host"):
        return Source(text)
    if kind != "pipeline" or not ahead.isdecimal():
        raise ValueError("is unknown: use device, host or pipeline:2, for example.")
    return Source(kind, int(ahead))


INPUT = Lever(
    "input",
    about="where the batch of each step comes from: device, host, or pipeline:2 (prefetched)",
    default="device",
    parse=_source,
    changes="feed",
    untrained="a training reads real data in its own order",
    view="inputs",
)


class Reduction(NamedTuple):
    """How gradients are averaged over devices.

    way: one of `REDUCTIONS`. dtype: of the sums and of the transfers; None: each array's own."""

    way: str
    dtype: str | None


def _reduction(text: str) -> Reduction | None:
    """None for the strategy's own way."""
    way, _, dtype = text.partition(":")
    return None if text == "strategy" else Reduction(way, dtype or None)


REDUCTION = Lever(
    "reduction",
    about="how gradients are averaged over devices",
    default="strategy",
    values=("strategy", *(way + dtype for dtype in ("", ":bfloat16") for way in REDUCTIONS)),
    parse=_reduction,
    changes="program",
    untrained="a training averages gradients as its strategy does",
)

# The mesh of the strategy hybrid, "data=2,tensor=4", or all possible meshes. The value stays text, because only the
# strategies know the axes. A mesh contains commas, so several are separated by semicolons.
MESH = Lever(
    "mesh",
    about="the mesh of the strategy hybrid, such as data=2,tensor=4; all: every possible one",
    default="strategy",
    parse=str,
    changes="program",
    separator=";",
    sweeps=(EVERY_MESH,),
)


# By schedule of a pipeline, the chunks of blocks that each stage has: two are the fewest that interleave.
SCHEDULES = {"gpipe": 1, "1f1b": 1, "interleaved": 2}


class Order(NamedTuple):
    """The order of work in a pipeline's stages: one of `SCHEDULES`, and the number of chunks of blocks of a stage."""

    name: str
    chunks: int


def _order(text: str) -> Order:
    """The schedule that a word names. Raises ValueError."""
    name, colon, chunks = text.partition(":")
    if name not in SCHEDULES or (colon and name != "interleaved"):
        raise ValueError(f"is unknown: {did_you_mean(text, SCHEDULES)} Or use interleaved:4, with 4 chunks a stage.")
    if colon and (not chunks.isdecimal() or int(chunks) < 2):
        raise ValueError("has no whole number of chunks of at least 2: use interleaved:4, for example.")
    return Order(name, int(chunks) if colon else SCHEDULES[name])


# `accumulate` sets the number of micro-batches.
SCHEDULE = Lever(
    "schedule",
    about="the order of work in the stages of a pipeline: gpipe, 1f1b, interleaved or interleaved:CHUNKS",
    default="gpipe",
    parse=_order,
    changes="program",
)

# Splits positions over the axis `tensor`, between the products that it splits.
SEQUENCE_PARALLEL = Lever(
    "sequence_parallel",
    about="splits positions between the products that tensor parallelism splits",
    default="off",
    values=("off", "on"),
    parse=lambda text: text == "on",
    changes="program",
)


class Sharing(NamedTuple):
    """Equal concurrent trainings on the same devices, each in its own process.

    at_once: their number. mps: whether they share a GPU by NVIDIA's Multi-Process Service, which overlaps their
    kernels. Without it they take turns.
    """

    at_once: int
    mps: bool = False


def _sharing(text: str) -> Sharing:
    """How trainings share devices, as a word says. Raises ValueError."""
    count, colon, service = text.partition(":")
    if not count.isdecimal() or int(count) < 1 or (colon and service != "mps"):
        raise ValueError("is no number of trainings: use 2, or 2:mps on an NVIDIA GPU, for example.")
    return Sharing(int(count), bool(colon))


TRAININGS = Lever(
    "trainings",
    about="equal trainings at once on the same devices; 2:mps shares an NVIDIA GPU through MPS",
    default="1",
    parse=_sharing,
    changes="feed",
    untrained="several trainings at once are measured, not kept",
    view="sharing",
)

# How devices that have parts of the positions compute attention: keys and values travel, inside groups of neighbours
# and then around a ring of groups, or the devices exchange positions for heads (Ulysses).
CONTEXT_ATTENTION = Lever(
    "context_attention",
    about="attention over split positions: keys and values travel, or positions are exchanged for heads",
    default="ring",
    values=("ring", "ulysses"),
    parse=lambda text: text == "ulysses",
    changes="program",
)

# How often `fsdp` gathers parameters and scatters gradients in a step. "each": for each pass of each micro-batch.
# "once": parameters once, gradients for each micro-batch (ZeRO-2). "once_summed": both once; a device then holds
# the sums of whole gradients.
GATHER = Lever(
    "gather",
    about="how often fsdp gathers parameters and scatters gradients: in each micro-batch or once a step",
    default="each",
    values=("each", "once", "once_summed"),
    parse=str,
    changes="program",
)

# Levers of a decoder that generates (`workloads.generation`). A training has none of them. "auto" is bfloat16 on
# accelerators, and float32 on CPUs, which convert each number of 16 bits.
FORMATS = ("auto", "float32", "bfloat16", "int8", "fp8")
WEIGHT_FORMAT = Lever(
    "weights",
    about="of a decoder, the number format of its weights",
    default="auto",
    values=FORMATS,
    parse=str,
    changes="workload",
    view="decode",
)
CACHE_FORMAT = Lever(
    "cache",
    about="of a decoder, the number format of its cache",
    default="auto",
    values=FORMATS,
    parse=str,
    changes="workload",
    view="decode",
)
CACHE_LAYOUT = Lever(
    "cache_layout",
    about="of a decoder, whether heads or positions come first in its cache, or an array for each layer (split, pages)",
    default="heads",
    values=("heads", "positions", "split", "pages"),
    parse=str,
    changes="program",
    view="decode",
)
CONTEXT = Lever(
    "context",
    about="of a decoder, several numbers of places in its cache; 0: config.context",
    default="0",
    parse=lambda text: str(whole(0)(text)),
    changes="feed",
    view="decode",
)
ATTENTION_KERNEL = Lever(
    "attention",
    about="of a decoder, what computes the attention to its cache",
    default="xla",
    values=("xla", "cudnn", "pallas"),
    parse=str,
    changes="program",
    view="decode",
)
OF_GENERATION: dict[str, Lever[str]] = {
    lever.name: lever for lever in (WEIGHT_FORMAT, CACHE_FORMAT, CACHE_LAYOUT, CONTEXT, ATTENTION_KERNEL)
}

_DECLARED: tuple[Lever[Any], ...] = (
    *(PRECISION, REMAT, ACCUMULATE, FREEZE, BATCH, PART, EXECUTION, INPUT, REDUCTION, MESH),
    *(SCHEDULE, SEQUENCE_PARALLEL, COMPILER, TRAININGS, CONTEXT_ATTENTION, GATHER),
)
LEVERS = {lever.name: lever for lever in _DECLARED}
_EVERY = {**LEVERS, **OF_GENERATION}
DEFAULTS = {name: lever.default for name, lever in LEVERS.items()}


@dataclass(frozen=True)
class Arm:
    """One setting of all levers. name: distinguishes it from the other arms of the run; "" for the only arm."""

    name: str
    levers: dict[str, str]


def with_named_sets(arms: list[Arm], platform: str) -> list[Arm]:
    """The arms, with one for each named set of this platform where the lever `compiler` is "all". Raises UserError."""
    by_name: dict[str, Arm] = {}  # without duplicates, where a set is also named outside "all"
    for arm in arms:
        require_platform(arm.levers, platform)
        if arm.levers.get(COMPILER.name) != EVERY_SET:
            by_name[arm.name] = arm
            continue
        for options in set_names(platform):
            name = arm.name.replace(f"compiler={EVERY_SET}", f"compiler={options}")
            by_name.setdefault(name, Arm(name, {**arm.levers, COMPILER.name: options}))
    return list(by_name.values())


def defaults() -> ConfigDict:
    """The group `lever` of a training experiment's config."""
    return ConfigDict({**DEFAULTS, "ladder": ""})


def arms(config: ConfigDict) -> list[Arm]:
    """The arms of a group `lever`, in the order typed. Raises UserError that names the field and its value."""
    words = _words(config)
    if str(config.ladder).strip():
        return _ladder(str(config.ladder), words)
    several = [name for name in words if _EVERY[name].swept(words[name])]
    settings = [dict(zip(words, values, strict=True)) for values in itertools.product(*words.values())]
    return [Arm(", ".join(f"{name}={levers[name]}" for name in several), levers) for levers in settings]


def swept(config: ConfigDict) -> tuple[str, ...]:
    """The levers with more than one value; ("ladder",) for a ladder. Raises UserError as `arms` does."""
    if str(config.ladder).strip():
        return ("ladder",)
    return tuple(name for name, words in _words(config).items() if _EVERY[name].swept(words))


def _words(config: ConfigDict) -> dict[str, tuple[str, ...]]:
    """The values of each lever in a config."""
    return {name: lever.words(str(config[name])) for name, lever in _EVERY.items() if name in config}


def _ladder(text: str, words: dict[str, tuple[str, ...]]) -> list[Arm]:
    """The arms of a ladder, each with one more change than the one before. Raises UserError."""
    several = [name for name, values in words.items() if len(values) > 1]
    if several:
        raise UserError(
            f"--config.lever.{several[0]} has several values, but --config.lever.ladder is set: use only one of them."
        )
    levers, ladder = {name: values[0] for name, values in words.items()}, []
    for rung in (word.strip() for word in text.strip().removesuffix(";").split(";")):
        if not rung:
            raise UserError(f"--config.lever.ladder={text} has an empty rung: use 'execution=jit; remat=block'.")
        name, equals, value = (part.strip() for part in rung.partition("="))
        if not equals or name not in LEVERS:
            raise UserError(f"--config.lever.ladder has the rung '{rung}': {did_you_mean(name, LEVERS)}")
        levers = {**levers, name: LEVERS[name].words(value)[0]}  # in addition to those of the rungs before
        ladder.append(Arm(rung, levers))
    if len(ladder) < 2:
        raise UserError(f"--config.lever.ladder={text} has one rung: use at least two, separated by ';'.")
    return ladder
