# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Workloads that measure a machine: single kernels, transfers and collectives, as functions and facts.

Each is one *case*: one operation of one size. Like a `TrainWorkload` it is independent of devices:
`cases/placement.py` decides where it runs (cores, platform, devices, mesh axis). An experiment returns a `CaseSet`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench import config as config_lib
from jaxbench import config_values, discovery
from jaxbench.core.trees import ArrayTree
from jaxbench.core.workload import KEY, TrainWorkload
from jaxbench.errors import UserError

# The report has one set of figures for each view.
VIEWS = ("curves", "matmul", "stream", "dispatch", "fusion", "linalg", "transfer", "collectives", "versus")
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6, "G": 10**9}
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "ppermute")
TRANSFERS = ("host_to_device", "device_to_host", "device_to_device")
# Allowed error of a vectorized exp or tanh, in units in the last place. Two forms of GELU differ by far more (5e-4).
ULPS = 128


@dataclass(frozen=True)
class Array:
    """An argument of a kernel. Values are normal with standard deviation `scale`; integers are uniform in [-4, 4].

    draw: (random generator, shape) -> float64 values, for arguments that must not be normally distributed, such as a
    positive definite matrix.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    scale: float = 1.0
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] | None = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * jnp.dtype(self.dtype).itemsize


@dataclass(frozen=True, kw_only=True)
class KernelWorkload:
    """A function of arrays on one device, or on the host.

    Attributes:
      op, dtype, impl: operation, number format and implementation ("jit", "numpy", "python", ...).
      shape: for display, "2048x2048x2048"; empty if the number of elements is enough.
      elements: the value on the size axis of its figure; 0: it is on no size axis, and `shape` identifies it.
      flops, bytes_moved: of one call, analytic (docs/metrics); None if the number would be meaningless.
      arguments: drawn again for each round. The first has at least one element.
      function: jax arrays -> array or tuple of arrays. It is jitted, in a step and in a loop, with the result fed back;
        None for a kernel with `prepare`.
      prepare: arrays -> (() -> result), for a kernel that is not a single jitted function: NumPy (with `host`, the
        arrays are NumPy arrays), plain Python, one operation at a time. It allocates output buffers, outside the timed
        region. The call may return before its result is ready, unless it `waits`.
      answer: NumPy arrays (the arguments as float64, or as integers) -> the correct result. The comparison allows
        `tolerance` x the largest absolute value of the answer. None: the result is not compared, for the reason
        `why_unchecked`.
      wrong: (result, arguments as float64) -> number of wrong values. It replaces `answer` if values cannot be compared
        directly (a factorization is correct if the product of its factors is the matrix).
      outcome: result -> further facts about it, such as the "steps" and "final_accuracy" of a training.
      elementwise: each value of the result depends only on the arguments' values at the same position, so a large
        result can be compared in parts.
      idempotent: one argument and f(f(x)) = f(x), so only the result is fed back.
      cpu_only: it exercises a processor's caches and means little on other platforms.
      host: it runs on the host's cores and needs no device.
      one_core: more cores do not make it faster, so it is measured on one core if that is among the requested counts.
      in_flight_bytes: bytes held at the same time in addition to arguments and one result.
    """

    op: str
    dtype: str
    impl: str = "jit"
    shape: str = ""
    elements: int
    flops: float | None
    bytes_moved: float | None
    arguments: tuple[Array, ...]
    function: Callable[..., ArrayTree] | None = None
    prepare: Callable[..., Callable[[], object]] | None = None
    answer: Callable[..., ArrayTree] | None = None
    wrong: Callable[[Any, tuple[np.ndarray, ...]], int] | None = None
    outcome: Callable[[Any], dict[str, float]] | None = None
    tolerance: float = 1e-5
    why_unchecked: str = ""
    elementwise: bool = False
    idempotent: bool = False
    cpu_only: bool = False
    host: bool = False
    one_core: bool = False
    waits: bool = False
    result_bytes: int | None = None  # None: the size of the largest argument
    in_flight_bytes: int = 0

    @property
    def key(self) -> str:
        return f"{self.op}/{self.dtype}/{self.shape or self.elements}/{self.impl}"

    @property
    def resident_bytes(self) -> int:
        # What memory must hold at once. `cases/placement.py` skips a case that would not fit.
        sizes = [a.nbytes for a in self.arguments]
        result = max(sizes) if self.result_bytes is None else self.result_bytes
        return sum(sizes) + result + self.in_flight_bytes


@dataclass(frozen=True, kw_only=True)
class _Payload:
    op: str
    payload_bytes: int
    dtype: str = "float32"

    @property
    def key(self) -> str:
        return f"{self.op}/{self.dtype}/{self.payload_bytes}B"


@dataclass(frozen=True, kw_only=True)
class TransferWorkload(_Payload):
    """One array of `payload_bytes` copied between host and device or between devices.

    op: host_to_device | device_to_host | device_to_device.
    """

    @property
    def resident_bytes(self) -> int:
        return 2 * self.payload_bytes  # the source and its copy


@dataclass(frozen=True, kw_only=True)
class CollectiveWorkload(_Payload):
    """One collective.

    payload_bytes: S of nccl-tests: one device's buffer for all_reduce, all_to_all, ppermute and broadcast, the gathered
      result for all_gather, the unscattered input for reduce_scatter. The nearest size that divides over the devices
      is used.
    """


Case = KernelWorkload | TransferWorkload | CollectiveWorkload


@dataclass(frozen=True, kw_only=True)
class CaseSet:
    """The cases that an experiment measures.

    Attributes:
      view: one of VIEWS: the figures that show the cases.
      cases: all of them. If a case does not fit, or the backend lacks it, it is refused if the user typed the sizes
        (`typed`). Otherwise it is skipped, and the run lists it.
    """

    name: str
    view: str
    cases: tuple[Case, ...]
    typed: bool = False


def choose(field: str, text: str, legal: Iterable[str], *, everything: Iterable[str] | None = None) -> tuple[str, ...]:
    """Reads a comma-separated choice from a config; "all" is `everything`, or every legal name. Raises UserError."""
    if text.strip() == "all":
        return tuple(legal if everything is None else everything)
    chosen: tuple[str, ...] = config_values.names_of(*legal)(field, text)
    return chosen


def sizes(field: str, text: str, auto: Iterable[int]) -> tuple[int, ...]:
    """Reads comma-separated whole numbers such as 1024,1e6,64Ki,16Mi from a config; "auto" is `auto`.

    "auto:1Ki,1Mi" means these sizes, as far as they fit (see `typed`). Raises UserError.
    """
    text = text.strip()
    if text == "auto":
        return tuple(auto)
    text = text.removeprefix("auto:")
    found = [_size(field, word.strip(), text) for word in text.strip("()[] ").split(",") if word.strip()]
    if not found:
        raise UserError(f"--config.{field} is empty: write sizes such as 1024,65536 or auto.")
    return tuple(dict.fromkeys(found))  # without duplicates: two equal cases would have the same key


def typed(text: str) -> bool:
    """Whether the user typed exact sizes. A size that does not fit is then refused, not skipped."""
    # Presets write "auto:512,1024" (configs/machine.py): a small machine measures the sizes that it can hold.
    return not text.strip().startswith("auto")


@dataclass(frozen=True)
class KernelGrid:
    """Kernels of every combination of operation, number format, size and implementation.

    cases: (operation, format, size, implementations) -> its kernels.
    """

    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    impls: tuple[str, ...]
    cases: Callable[[str, str, int, tuple[str, ...]], Iterable[KernelWorkload]]

    def chosen(self, name: str, config: Any, auto: Iterable[int], *, view: str = "") -> CaseSet:
        """The cases that `config` asks for. auto: the default sizes. view: `name` by default. Raises UserError."""
        impls = choose("impls", config.impls, self.impls)
        cases = (
            case
            for op in choose("ops", config.ops, self.ops)
            for dtype in choose("dtypes", config.dtypes, self.dtypes)
            for size in sizes("sizes", config.sizes, auto)
            for case in self.cases(op, dtype, size, impls)
        )
        return CaseSet(name=name, view=view or name, cases=tuple(cases), typed=typed(config.sizes))


def _size(field: str, word: str, text: str) -> int:
    """The number that a word such as "64Ki" means. Raises UserError."""
    unit = next((u for u in _UNITS if word.endswith(u)), "")
    try:  # as a float, so that 1e6 is a size too
        value = float(word.removesuffix(unit)) * _UNITS.get(unit, 1)
    except ValueError:
        value = math.nan
    if not (1 <= value < math.inf and value == int(value)):
        raise UserError(f"--config.{field}={text}: '{word}' is not a size: write 1024, 1e6, 64Ki or 16Mi, for example.")
    return int(value)


def gradient_sizes(experiment: str) -> list[int]:
    """The distinct sizes in bytes of a model's gradients (one for each parameter array) and their sum, ascending.

    Only shapes are computed: no device is used and no backend is started.

    Args:
      experiment: name or path of a training experiment, which is built with its default config.

    Raises:
      UserError: there is no such experiment, or it trains nothing.
    """
    module = discovery.load_experiment(experiment)
    config = config_lib.compose(experiment, module, discovery.load_preset("auto"))
    # Building cases with sizes_from would recurse.
    workload = None if "measures" in config else module.build(config)
    if not isinstance(workload, TrainWorkload):
        *names, last = config_lib.training_experiments()
        choices = f"{', '.join(names)} or {last}" if names else last
        raise UserError(f"--config.sizes_from={experiment} is not a training experiment: choose {choices}.")
    params, _ = jax.eval_shape(workload.init, KEY)
    sizes = [math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(params)]
    # The sum too: a strategy may send all gradients as one message.
    return sorted({*sizes, sum(sizes)})


def itemsize(dtype: str) -> int:
    """Bytes of one number."""
    return jnp.dtype(dtype).itemsize


def epsilon(dtype: str) -> float:
    """The distance from 1 to the next number, twice the relative error of one rounding; 0 for integers."""
    return float(jnp.finfo(dtype).eps) if jnp.issubdtype(dtype, jnp.floating) else 0.0


def in_place(function: Callable[..., np.ndarray]) -> Callable[..., Callable[[], np.ndarray]]:
    """The `prepare` of a kernel, for a function (arguments ..., out=) -> out."""

    def prepare(*arrays: np.ndarray) -> Callable[[], np.ndarray]:
        out = np.empty_like(arrays[0])  # here, outside the timed region
        return lambda: function(*arrays, out=out)

    return prepare
