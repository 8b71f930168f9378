# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks a user's workload before anything is compiled, and reports the first error in one sentence.

Its functions are traced with shapes only, which needs no device and little time. An error names the user's own file and
line, and a legal alternative.
"""

from __future__ import annotations

import builtins
import dataclasses
import inspect as signatures
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbench import discovery
from jaxbench.core import weighted
from jaxbench.core.trees import ArrayTree, Tree
from jaxbench.core.workload import KEY, Field, TrainWorkload
from jaxbench.errors import UserError, quoted
from jaxbench.workloads.levers import stateful

OVERWRITTEN = "_overwrite_with_gradient"  # flax.linen.fp8_ops.OVERWRITE_WITH_GRADIENT, without importing Flax
CALL = "a model is called as `y, model_state = model.apply(params, model_state, x, key)`"
LOSS = "a loss returns (scalar, (model_state, metrics))"


NUMBERS = ("array", "float", "int", "bool", "complex")  # kinds of leaf; others are objects


@dataclass(frozen=True)
class Leaf:
    """One leaf of a returned tree. kind: "array", or the name of another type."""

    kind: str
    shape: tuple[int, ...] = ()
    dtype: Any = None

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}" if self.kind == "array" else f"a Python {self.kind}"

    @property
    def scalar(self) -> bool:
        """Whether it is one number that can be averaged."""
        return self.kind == "array" and self.shape == () and jnp.issubdtype(self.dtype, jnp.number)


def inspect(workload: TrainWorkload, *, batch: int = 8) -> None:
    """Raises UserError for the first violation of what `TrainWorkload` requires. Compiles and runs nothing.

    batch: number of examples with which the loss is traced.
    """
    # From the outside in: each check relies on what the ones before it found to be true. Only the first error is told,
    # because the others often follow from it.
    _require_fields(workload)
    for name, arguments in (("init", ("key",)), ("loss", ("params", "model_state", "batch", "key"))):
        _require_call(workload, name, arguments)
    if not (hasattr(workload.optimizer, "init") and hasattr(workload.optimizer, "update")):
        raise UserError(
            f"'{workload.name}': the optimizer is {_kind(workload.optimizer)} and must be an optax transformation, "
            "such as optax.adam(1e-3)."
        )
    params, model_state = _initial(workload)
    _require_loss(workload, params, model_state, batch)


def with_least(workload: TrainWorkload, batch: int) -> TrainWorkload:
    """The workload with `least`: 1, or `batch` for a model that cannot be traced with a single example."""
    try:
        traced(workload, "init", KEY)
        traced(workload, "loss", *jax.eval_shape(workload.init, KEY), workload.batch_avals(1), KEY, batch=1)
    except UserError:  # if it cannot take `batch` either, `inspect` says so
        return dataclasses.replace(workload, least=batch)
    return workload


def traced(workload: TrainWorkload, name: str, *avals: object, batch: int = 8) -> Any:
    """The result of the workload's function `name`, with each value as a Leaf.

    Raises UserError, also for any exception of the function.

    avals: its arguments, as ``jax.ShapeDtypeStruct`` trees. batch: number of examples in them, for the error message.
    """
    function, returned = getattr(workload, name), []  # a list, because what leaves `eval_shape` must be arrays

    def call(*arguments: object) -> None:
        returned.append(jax.tree.map(_leaf, function(*arguments)))

    with discovery.naming_lines(f"the {name} of '{workload.name}'", lambda error: _hint(error, workload, avals, batch)):
        jax.eval_shape(call, *avals)
    return returned[-1]


def metrics(returned: object, where: str) -> list[str]:
    """The names of the metrics that a function returned, as Leafs. Raises UserError unless all are scalars."""
    if not isinstance(returned, Mapping):
        raise UserError(f"{where} returns metrics that are {_kind(returned)}: they must be a dict of scalars by name.")
    for name, value in returned.items():
        if wrong := [leaf for leaf in _numbers(value) if not (isinstance(leaf, Leaf) and leaf.scalar)]:
            raise UserError(
                f"{where} returns the metric '{name}', which is {_kind(wrong[0])}: metrics are scalar arrays, means "
                "over the examples, such as jnp.mean(...)."
            )
    return [str(name) for name in returned]


def _numbers(value: object) -> tuple[Any, ...]:
    """The parts of a loss or a metric. Each must be a scalar, and the first part of a loss must be a float."""
    return (value.total, value.weight) if weighted.is_weighted(value) else (value,)


def _leaf(x: object) -> Leaf:
    """The type of a leaf: shape and dtype of an array, else the name of its class."""
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        # Canonical, so that a NumPy float64 equals the float32 that JAX makes of it; extended: a key's dtype.
        return Leaf("array", tuple(x.shape), jax.dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True))
    return Leaf(type(x).__name__)


def _require_fields(workload: TrainWorkload) -> None:
    """Raises UserError for an example field from which no batch can be drawn."""
    if not isinstance(workload.example, Mapping) or not workload.example:
        raise UserError(f"'{workload.name}': the example is {_kind(workload.example)} and must be a dict of Field.")
    for name, field in workload.example.items():
        subject = f"'{workload.name}': the field '{name}' of the example"
        if not isinstance(field, Field):
            raise UserError(f"{subject} is {_kind(field)}: write Field((28, 28, 1)), for example.")
        sizes = field.shape if isinstance(field.shape, tuple | list) else (None,)  # None is no size: refused below
        if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
            raise UserError(
                f"{subject} has the shape {field.shape}: give a tuple of positive numbers without the batch axis, "
                "such as (28, 28, 1), or () for a number."
            )
        _require_dtype(subject, field)


def _require_dtype(subject: str, field: Field) -> None:
    try:
        dtype = jnp.dtype(field.dtype)
    except TypeError as error:
        raise UserError(
            f"{subject} has the dtype {field.dtype!r}: use jnp.float32 or jnp.int32, for example."
        ) from error
    if field.classes is not None and not jnp.issubdtype(dtype, jnp.integer):
        raise UserError(f"{subject} has classes={field.classes} and the dtype {dtype}: labels are integers, jnp.int32.")
    if field.classes is None and not jnp.issubdtype(dtype, jnp.floating):
        raise UserError(
            f"{subject} has the dtype {dtype} and no classes: give an integer field its number of classes, such as "
            "Field((), jnp.int32, classes=10), or use a float dtype."
        )


def _require_call(workload: TrainWorkload, name: str, arguments: tuple[str, ...]) -> None:
    """Raises UserError unless the function `name` can be called with these arguments."""
    function, call = getattr(workload, name), f"{name}({', '.join(arguments)})"
    if not callable(function):
        raise UserError(f"'{workload.name}': {name} is {_kind(function)} and must be a function, {call}.")
    try:
        signature = signatures.signature(function)
    except (TypeError, ValueError):  # a builtin without a signature
        return
    try:
        # As Python itself would at the call, so *args, defaults and partials are understood.
        signature.bind(*arguments)
    except TypeError as error:
        raise UserError(f"{_where(workload, name)} takes {signature}: it is called as {call}.") from error


def _where(workload: TrainWorkload, name: str) -> str:
    """ "'mine.py', line 12: loss", or "the loss of 'mine'" for a function that is not the user's own."""
    # The user's own code stands behind wrappers (`functools.wraps`) and partials (`func`).
    function = signatures.unwrap(getattr(workload, name))
    code = getattr(signatures.unwrap(getattr(function, "func", function)), "__code__", None)
    if code is None or not discovery.is_theirs(code.co_filename):
        return f"the {name} of '{workload.name}'"
    return f"'{code.co_filename}', line {code.co_firstlineno}: {name}"


def _initial(workload: TrainWorkload) -> tuple[ArrayTree, ArrayTree]:
    """(params, model_state) as shapes and dtypes. Raises UserError for values that are not arrays."""
    returned = traced(workload, "init", KEY)
    where = _where(workload, "init")
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise UserError(
            f"{where} returns {_kind(returned)}: it must return (params, model_state), or (params, {{}}) for a "
            "model without state."
        )
    params, model_state = returned
    if not jax.tree.leaves(params):
        raise UserError(f"{where} returns no parameters: there is nothing to train.")
    overwritten = [path for path in (*_paths(params), *_paths(model_state)) if OVERWRITTEN in path.split("/")]
    if overwritten:
        raise UserError(
            f"{where} returns '{overwritten[0]}': Flax overwrites the collection {OVERWRITTEN} with its gradient (the "
            "scales of fp8 products), but jaxbench's steps would leave it at its first value. Use products in bfloat16 "
            "(--config.lever.precision=bfloat16), or bring your own train step with Flax's TrainState."
        )
    for path, leaf in _paths(params).items():  # integers cannot be trained, and a float is no array to place
        if leaf.kind not in NUMBERS and leaf.kind != "function" and not hasattr(builtins, leaf.kind):
            what = f"the parameter '{path}'" if path else "parameters"
            raise UserError(
                f"{where} returns {what} of the class {leaf.kind}, which JAX does not know as a pytree: register it, "
                "with jax.tree_util.register_dataclass or flax.struct, or use a dict."
            )
        if leaf.kind != "array" or not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise UserError(
                f"{where} returns the parameter '{path}', which is {leaf}: numbers must be float arrays, such as "
                "jnp.asarray(1.0), or part of the model's state."
            )
    for path, leaf in _paths(model_state).items():
        if leaf.kind not in NUMBERS:
            raise UserError(f"{where} returns the state '{path}', which is {leaf}: a model's state must be arrays.")
        # NumPy and checkpoints have no arrays of keys.
        if leaf.kind == "array" and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise UserError(
                f"{where} returns the state '{path}', which is a random key: store jax.random.key_data(key)."
            )
    return jax.eval_shape(workload.init, KEY)  # again, for shapes instead of Leafs


def _require_loss(workload: TrainWorkload, params: ArrayTree, model_state: ArrayTree, batch: int) -> None:
    given = params, model_state, workload.batch_avals(batch), KEY
    returned = traced(workload, "loss", *given, batch=batch)
    where = _where(workload, "loss")
    pair = isinstance(returned, tuple | list) and len(returned) == 2
    if not pair or not (isinstance(returned[1], tuple | list) and len(returned[1]) == 2):
        raise UserError(f"{where} returns {_kind(returned)}: {LOSS}, with ({{}}, {{}}) if there are neither.")
    loss, (new_state, found) = returned
    for at, number in enumerate(_numbers(loss)):
        scalar = isinstance(number, Leaf) and number.scalar
        # The second number is a weight, and a count of tokens is an integer.
        if not scalar or (at == 0 and not jnp.issubdtype(number.dtype, jnp.floating)):
            raise UserError(
                f"{where} returns a loss that is {_kind(number)}: it must be a float scalar, the mean over the "
                "examples, such as jnp.mean(...)."
            )
    metrics(found, where)
    _require_state(where, model_state, new_state)


def _require_state(where: str, given: ArrayTree, returned: Tree[Leaf]) -> None:
    """Raises UserError unless the state is returned with its old structure, shapes and dtypes."""
    old, new = _paths(jax.tree.map(_leaf, given)), _paths(returned)
    # Leaf by leaf before the structure as a whole, because the path tells what to change in the code.
    for path in [*old, *(path for path in new if path not in old)]:
        if old.get(path) != new.get(path):
            raise UserError(
                f"{where}: the state '{path}' is returned as {new.get(path, 'nothing')} and was given as "
                f"{old.get(path, 'nothing')}: the two must be equal. Return the model_state that the model returned, "
                "or the given one."
            )
    if jax.tree.structure(given) != jax.tree.structure(returned):  # type: ignore[operator]
        raise UserError(f"{where}: the model's state is returned as {_kind(returned)} and was given as {_kind(given)}.")


def _paths(tree: Tree[Leaf]) -> dict[str, Leaf]:
    """Leafs by path, such as "batch_stats/mean"."""
    return {jax.tree_util.keystr(at, simple=True, separator="/"): x for at, x in jax.tree.leaves_with_path(tree)}


def _kind(value: object) -> str:
    """Describes a value, for a sentence."""
    if isinstance(value, Leaf):
        return str(value)
    if isinstance(value, Mapping):
        return f"a dict with {quoted(value, 5)}" if value else "an empty dict"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}" + (f" ({', '.join(map(_kind, value))})" if value else "")
    return "None" if value is None else f"of type {type(value).__name__}"


def _hint(error: Exception, workload: TrainWorkload, given: tuple[object, ...], batch: int) -> str:
    """Advice for an error of a traced function: how models are called, or which fields exist."""
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "Use jax.numpy instead of numpy: while a function is traced, its arrays have no values."
    if isinstance(error, jax.errors.ConcretizationTypeError):
        return "Use jnp.where or jax.lax.cond: while a function is traced, its arrays have no values."
    # ValueError: "too many values to unpack", of an output used as a pair.
    if isinstance(error, TypeError | AttributeError | ValueError) and _miscalled(error):
        return f"{CALL[:1].upper()}{CALL[1:]}."
    if len(given) < 3:  # init takes no batch
        return ""
    if isinstance(error, KeyError):  # a field, a parameter or a state that does not exist
        trees = ("the parameters have", given[0]), ("the state has", given[1])
        more = [f"{what} {quoted(tree, 5)}" for what, tree in trees if isinstance(tree, Mapping) and tree]
        return "; ".join([f"The batch has {quoted(workload.example, 5)}", *more]) + "."
    # Any other error may come from the shapes, so they are all shown.
    fields = workload.example.items()
    description = ", ".join(f"'{name}' {jnp.dtype(f.dtype)} {(batch, *f.shape)}" for name, f in fields)
    firsts = {tuple(field.shape)[:1] for _, field in fields}  # equal first sizes: the batch axis, written by mistake
    if len(firsts) == 1 and (len(fields) > 1 or firsts == {(batch,)}) and firsts != {()}:
        return (
            f"The batch has {description}: if {firsts.pop()[0]} is the number of examples, leave it out of every Field."
        )
    return f"The batch has {description}."


def _miscalled(error: Exception) -> bool:
    """Whether `apply` lacks arguments, the model itself was called, or `apply`'s pair was used as the output."""
    if re.search(r"apply\(\) (missing|takes|got)|'PureModel' object", str(error)):
        return True
    found = discovery.line_of(error)
    return "tuple" in str(error) and found is not None and ".apply(" in Path(found[0]).read_text()


def require_trainable(workload: TrainWorkload, metric: str = "accuracy") -> None:
    """Raises UserError with a list of what is missing: data, an inference mode for a model with state, the metric."""
    params, model_state = jax.eval_shape(workload.init, KEY)
    missing = []
    if workload.data is None:
        missing.append("`data` to train on, such as data=(train, test), two dicts of arrays by field")
    # With batch statistics or random streams, the loss in training mode is no evaluation of the model.
    if workload.evaluate is None and stateful(model_state):
        missing.append(
            "`evaluate`, a function of (params, model_state, batch) that returns the metrics in inference mode with "
            f"'{metric}' among them, because it has state such as batch statistics"
        )
    elif metric not in (names := _metric_names(workload, params, model_state)):
        source = "loss" if workload.evaluate is None else "evaluate"
        other = f" (or train to another: --config.train.metric={names[0]})" if names else ""
        missing.append(f"'{metric}' among the metrics of its {source}, which are {names}{other}")
    if missing:
        raise UserError(
            f"'{workload.name}' can be measured but not trained to a target: its TrainWorkload needs "
            f"{', and '.join(missing)}."
        )


def _metric_names(workload: TrainWorkload, params: object, model_state: object) -> list[str]:
    """The names of the metrics by which training is evaluated. Raises UserError unless they are scalars."""
    batch = workload.batch_avals(workload.traceable(8))  # any number of examples, as in `inspect`
    if workload.evaluate is not None:
        found = traced(workload, "evaluate", params, model_state, batch)
        return metrics(found, f"the evaluate of '{workload.name}'")
    _, (_, found) = traced(workload, "loss", params, model_state, batch, KEY)
    return ["loss"] + metrics(found, f"the loss of '{workload.name}'")
