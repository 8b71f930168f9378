# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Looks at a person's workload before anything is compiled, and says in one sentence what is not as it must be.

Its functions are traced with shapes alone, so this takes no device and hardly any time. What is wrong is told with the
person's own file and line, and with what is legal.
"""

from __future__ import annotations

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
from jaxbench.errors import UserError
from jaxbench.workloads import keys, weighted
from jaxbench.workloads.base import KEY, Field, PyTree, TrainWorkload

CALL = "a model is called as `y, model_state = model.apply(params, model_state, x, key)`"
LOSS = "a loss returns (scalar, (model_state, metrics))"


@dataclass(frozen=True)
class Leaf:
    """What a function returned in one place. kind: "array", or the name of another type."""

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
    """Raises UserError for the first thing that is not as `TrainWorkload` says. Compiles and runs nothing.

    batch: examples that the loss is traced with.
    """
    _require_fields(workload)
    for name, arguments in (("init", ("key",)), ("loss", ("params", "model_state", "batch", "key"))):
        _require_call(workload, name, arguments)
    if not (hasattr(workload.optimizer, "init") and hasattr(workload.optimizer, "update")):
        raise UserError(
            f"'{workload.name}': the optimizer is {_said(workload.optimizer)} and must be an optax transformation, "
            "such as optax.adam(1e-3)."
        )
    params, model_state = _initial(workload)
    _require_loss(workload, params, model_state, batch)


def traced(workload: TrainWorkload, name: str, *avals: PyTree, batch: int = 8) -> tuple[PyTree, Any]:
    """(what the workload's function `name` returns, each value as a Leaf; its jaxpr). Raises UserError, also for
    whatever the function raises.

    avals: its arguments, as ``jax.ShapeDtypeStruct`` trees. batch: examples in them, for what the sentence says.
    """
    function, returned = getattr(workload, name), []

    def call(*arguments: Any) -> list[jax.Array]:
        found = function(*arguments)
        returned.append(jax.tree.map(_leaf, found))
        return [x for x in jax.tree.leaves(found) if isinstance(x, jax.Array)]

    with discovery.explaining(f"the {name} of '{workload.name}'", lambda error: _hint(error, workload, avals, batch)):
        jaxpr = jax.make_jaxpr(call)(*avals).jaxpr
    return returned[-1], jaxpr


def metrics(returned: PyTree, where: str) -> list[str]:
    """The names of the metrics that a function returned, as Leafs. Raises UserError unless all are scalars."""
    if not isinstance(returned, Mapping):
        raise UserError(f"{where} returns metrics that are {_said(returned)}: they must be a dict of scalars by name.")
    for name, value in returned.items():
        if wrong := [leaf for leaf in _numbers(value) if not (isinstance(leaf, Leaf) and leaf.scalar)]:
            raise UserError(
                f"{where} returns the metric '{name}', which is {_said(wrong[0])}: metrics are scalar arrays, means "
                "over the examples, such as jnp.mean(...)."
            )
    return [str(name) for name in returned]


def _numbers(value: Any) -> tuple[Any, ...]:
    """What a loss or a metric consists of, each of which must be a scalar, and the first of a loss a float."""
    return (value.total, value.weight) if weighted.is_weighted(value) else (value,)


def _leaf(x: Any) -> Leaf:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return Leaf("array", tuple(x.shape), jax.dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True))
    return Leaf(type(x).__name__)


def _require_fields(workload: TrainWorkload) -> None:
    """Raises UserError for fields of the example that no batch can be drawn of."""
    if not isinstance(workload.example, Mapping) or not workload.example:
        raise UserError(f"'{workload.name}': the example is {_said(workload.example)} and must be a dict of Field.")
    for name, field in workload.example.items():
        said = f"'{workload.name}': the field '{name}' of the example"
        if not isinstance(field, Field):
            raise UserError(f"{said} is {_said(field)}: write Field((28, 28, 1)), for example.")
        sizes = field.shape if isinstance(field.shape, tuple | list) else (None,)
        if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
            raise UserError(
                f"{said} has the shape {field.shape}: it is a tuple of positive numbers without the batch axis, such "
                "as (28, 28, 1), or () for a number."
            )
        _require_dtype(said, field)


def _require_dtype(said: str, field: Field) -> None:
    try:
        dtype = jnp.dtype(field.dtype)
    except TypeError as error:
        raise UserError(f"{said} has the dtype {field.dtype!r}: use jnp.float32 or jnp.int32, for example.") from error
    integer = jnp.issubdtype(dtype, jnp.integer)
    if field.classes is not None and not integer:
        raise UserError(f"{said} has classes={field.classes} and the dtype {dtype}: labels are integers, jnp.int32.")
    if field.classes is not None and not 0 < field.classes <= jnp.iinfo(dtype).max + 1:
        raise UserError(f"{said} has classes={field.classes}: of {dtype} there are 1 to {jnp.iinfo(dtype).max + 1}.")
    if field.classes is None and not jnp.issubdtype(dtype, jnp.floating):
        raise UserError(
            f"{said} has the dtype {dtype} and no classes: give a whole number the count of its values, such as "
            "Field((), jnp.int32, classes=10), and others a float dtype."
        )


def _require_call(workload: TrainWorkload, name: str, arguments: tuple[str, ...]) -> None:
    """Raises UserError unless the function `name` can be called with so many arguments."""
    function, said = getattr(workload, name), f"{name}({', '.join(arguments)})"
    if not callable(function):
        raise UserError(f"'{workload.name}': {name} is {_said(function)} and must be a function, {said}.")
    try:
        signature = signatures.signature(function)
    except (TypeError, ValueError):  # a builtin, which does not say
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise UserError(f"{_where(workload, name)} takes {signature}: it is called as {said}.") from error


def _where(workload: TrainWorkload, name: str) -> str:
    """ "'mine.py', line 12: loss", or, where the function is none of a person's own, "the loss of 'mine'"."""
    function = getattr(workload, name)
    code = getattr(signatures.unwrap(getattr(function, "func", function)), "__code__", None)
    if code is None or not discovery.is_theirs(code.co_filename):
        return f"the {name} of '{workload.name}'"
    return f"'{code.co_filename}', line {code.co_firstlineno}: {name}"


def _initial(workload: TrainWorkload) -> tuple[PyTree, PyTree]:
    """(params, model_state), as shapes and dtypes. Raises UserError for values that are neither."""
    returned, _ = traced(workload, "init", KEY)
    where = _where(workload, "init")
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise UserError(
            f"{where} returns {_said(returned)}: it must return (params, model_state), (params, {{}}) for a model "
            "without state."
        )
    params, model_state = returned
    if not jax.tree.leaves(params):
        raise UserError(f"{where} returns no parameters: there is nothing to train.")
    for path, leaf in _paths(params).items():
        if leaf.kind != "array" or not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise UserError(
                f"{where} returns the parameter '{path}', which is {leaf}: numbers must be float arrays, such as "
                "jnp.asarray(1.0), or belong to the model's state."
            )
    for path, leaf in _paths(model_state).items():
        if leaf.kind not in ("array", "float", "int", "bool", "complex"):
            raise UserError(f"{where} returns the state '{path}', which is {leaf}: a model's state must be arrays.")
        if leaf.kind == "array" and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise UserError(
                f"{where} returns the state '{path}', which is a random key: keep it as jax.random.key_data(key)."
            )
    return jax.eval_shape(workload.init, KEY)


def _require_loss(workload: TrainWorkload, params: PyTree, model_state: PyTree, batch: int) -> None:
    given = params, model_state, workload.batch_avals(batch), KEY
    returned, jaxpr = traced(workload, "loss", *given, batch=batch)
    where = _where(workload, "loss")
    pair = isinstance(returned, tuple | list) and len(returned) == 2
    if not pair or not (isinstance(returned[1], tuple | list) and len(returned[1]) == 2):
        raise UserError(f"{where} returns {_said(returned)}: {LOSS}, with ({{}}, {{}}) where there are neither.")
    loss, (new_state, found) = returned
    for at, number in enumerate(_numbers(loss)):
        scalar = isinstance(number, Leaf) and number.scalar
        if not scalar or (at == 0 and not jnp.issubdtype(number.dtype, jnp.floating)):
            raise UserError(
                f"{where} returns a loss that is {_said(number)}: it must be a float scalar, the mean over the "
                "examples, such as jnp.mean(...)."
            )
    metrics(found, where)
    _require_state(where, model_state, new_state)
    if twice := keys.drawn_twice(jaxpr):
        (file, line), (again_file, again) = twice
        other = f"line {line}" if file == again_file else f"'{file}', line {line}"
        raise UserError(
            f"'{again_file}', line {again}: random numbers are drawn from a key that {other} has drawn from already, "
            "so they are no new ones: use jax.random.split, or jax.random.clone(key) where the same are meant."
        )


def _require_state(where: str, given: PyTree, returned: PyTree) -> None:
    """Raises UserError unless the state has come back in the form it was given in."""
    old, new = _paths(jax.tree.map(_leaf, given)), _paths(returned)
    for path in [*old, *(path for path in new if path not in old)]:
        if path not in new:
            raise UserError(
                f"{where}: the state '{path}' is not returned: return the model_state that the model gave back, or the "
                "one that was given."
            )
        if path not in old:
            raise UserError(f"{where}: the state '{path}' is returned, and init gave none: init must give it too.")
        if old[path] != new[path]:
            raise UserError(
                f"{where}: the state '{path}' is returned as {new[path]} and was given as {old[path]}: it must stay "
                "the same."
            )
    if jax.tree.structure(given) != jax.tree.structure(returned):  # type: ignore[operator]
        raise UserError(f"{where}: the model's state is returned as {_said(returned)} and was given as {_said(given)}.")


def _paths(tree: PyTree) -> dict[str, Leaf]:
    """Leafs by path, such as "batch_stats/mean"."""
    return {jax.tree_util.keystr(at, simple=True, separator="/"): x for at, x in jax.tree.leaves_with_path(tree)}


def _said(value: Any) -> str:
    """What a value is, for a sentence."""
    if isinstance(value, Leaf):
        return str(value)
    if isinstance(value, Mapping):
        return f"a dict with {_names(value)}" if value else "an empty dict"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}" + (f" ({', '.join(map(_said, value))})" if value else "")
    return "None" if value is None else f"of type {type(value).__name__}"


def _names(value: Any) -> str:
    names = [f"'{name}'" for name in value]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _hint(error: Exception, workload: TrainWorkload, given: tuple[PyTree, ...], batch: int) -> str:
    """What helps with an error of a function that was traced: how models are called, or what there is."""
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "Use jax.numpy in place of numpy: while it is traced, an array has no numbers yet."
    if isinstance(error, jax.errors.ConcretizationTypeError):
        return "Use jnp.where or jax.lax.cond: while it is traced, an array has no numbers yet."
    if isinstance(error, TypeError | AttributeError | ValueError) and _miscalled(error):
        return f"{CALL[:1].upper()}{CALL[1:]}."
    if len(given) < 3:  # init knows of no batch
        return ""
    if isinstance(error, KeyError):
        trees = ("the parameters have", given[0]), ("the state has", given[1])
        more = [f"{what} {_names(tree)}" for what, tree in trees if isinstance(tree, Mapping) and tree]
        return "; ".join([f"The batch has {_names(workload.example)}", *more]) + "."
    fields = workload.example.items()
    said = ", ".join(f"'{name}' {jnp.dtype(f.dtype)} {(batch, *f.shape)}" for name, f in fields)
    firsts = {tuple(field.shape)[:1] for _, field in fields}
    if len(firsts) == 1 and (len(fields) > 1 or firsts == {(batch,)}) and firsts != {()}:
        return f"The batch has {said}: if {firsts.pop()[0]} is the number of examples, leave it out of every Field."
    return f"The batch has {said}."


def _miscalled(error: Exception) -> bool:
    """Whether a model's `apply` was given too little, or called by another name, or its pair taken for the answer."""
    if re.search(r"apply\(\) (missing|takes|got)|'PureModel' object", str(error)):
        return True
    found = discovery.line_of(error)
    return "tuple" in str(error) and found is not None and ".apply(" in Path(found[0]).read_text()
