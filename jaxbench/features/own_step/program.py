# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Builds the Program of a step that somebody else wrote (`workloads.own_step`), and finds what makes it unfit.

The user's state becomes a `TrainState`: a counter of steps, which the suite adds and checks; the arrays that are
compared as parameters; and the other arrays. Leaves that are no arrays are kept aside and put back while tracing. One
outer `jax.jit` over the arrays compiles it, so a step may be jitted inside or not.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, Sharding

from jaxbench import discovery
from jaxbench.core.program import Program, Shardings, TrainState
from jaxbench.core.workload import Batch
from jaxbench.errors import UserError
from jaxbench.measure.compile_report import with_sharding
from jaxbench.parallel import multihost
from jaxbench.workloads.jaxprs import equations, inner
from jaxbench.workloads.own_step import OwnStep, StepWorkload

T = TypeVar("T")
AXIS = "devices"  # of the mesh of a step that names no mesh of its own
# Primitives of jaxprs: draws of random numbers, functions of a part of each array, and what takes most of a step.
DRAWS = ("random_bits", "threefry2x32", "rng_bit_generator", "rng_uniform")
MAPS = ("shard_map", "xla_pmap")
PRODUCTS = ("dot_general", "conv_general_dilated")
# What tracing raises when Python needs the value of a number, which therefore must stay one.
NEEDS_VALUE = (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError)


def where(function: Callable[..., object]) -> str:
    """ "'mine.py', line 12": where a function of the user begins."""
    inside: Callable[..., object] = getattr(function, "func", function)
    function = inspect.unwrap(inside)
    code = getattr(function, "__code__", None)
    return f"'{code.co_filename}', line {code.co_firstlineno}" if code else f"'{function!r}'"


@dataclass(frozen=True)
class Leaves:
    """How a tree is taken apart into arrays by path, and put together again.

    constants: the leaves that are no arrays, by path. keys: by path, the implementation of arrays of random keys, which
    travel as plain numbers. numbers: whether Python numbers become arrays.
    """

    tree: jax.tree_util.PyTreeDef
    paths: tuple[str, ...]
    constants: Mapping[str, object]
    keys: Mapping[str, Any]
    numbers: bool = True

    @classmethod
    def of(cls, tree: object, *, numbers: bool = True) -> Leaves:
        found, structure = jax.tree_util.tree_flatten_with_path(tree)
        paths = [jax.tree_util.keystr(path, simple=True, separator="/") or "state" for path, _ in found]
        # {"a/b": x, "a": {"b": y}} has two leaves of one name.
        paths = [path if paths.count(path) == 1 else f"{path}#{i}" for i, path in enumerate(paths)]
        leaves = dict(zip(paths, (leaf for _, leaf in found), strict=True))
        kinds = (jax.Array, int, float, complex, np.generic) if numbers else (jax.Array,)
        # A truth value is a flag that Python decides by, although it is an int.
        constants = {path: x for path, x in leaves.items() if not isinstance(x, kinds) or isinstance(x, bool)}
        keys = {path: jax.random.key_impl(leaf) for path, leaf in leaves.items() if _is_key(leaf)}
        return cls(structure, tuple(paths), constants, keys, numbers)

    def arrays(self, tree: object) -> Batch:
        """The arrays of a tree with this structure, by path."""
        leaves = dict(zip(self.paths, jax.tree.leaves(tree), strict=True))
        arrays = {path: leaf for path, leaf in leaves.items() if path not in self.constants}
        arrays |= {path: jax.random.key_data(arrays[path]) for path in self.keys}
        return {path: x if isinstance(x, jax.Array) else jnp.asarray(x) for path, x in arrays.items()}

    def whole(self, arrays: Mapping[str, jax.Array]) -> Any:
        """The tree with these arrays."""
        keys = {path: jax.random.wrap_key_data(arrays[path], impl=impl) for path, impl in self.keys.items()}
        leaves = {**self.constants, **arrays, **keys}
        return jax.tree.unflatten(self.tree, [leaves[path] for path in self.paths])


def _is_key(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


@dataclass(frozen=True, kw_only=True)
class OwnProgram(Program):
    """A Program of a user's step.

    Attributes:
      own: what `make` returned. state_leaves: of its state. origin: where `make` begins, for sentences.
      first: the arrays of the first state before they are placed, as shapes with shardings.
      batch_of: step number -> the arrays of the batch, by path.
    """

    own: OwnStep
    state_leaves: Leaves
    origin: str
    first: TrainState
    batch_of: Callable[[int], Batch]


def build(workload: StepWorkload, devices: Sequence[jax.Device], batch: int, *, numbers: bool = True) -> OwnProgram:
    """Calls `make` and looks at what it returns; nothing is traced. Raises UserError for bad input.

    numbers: whether Python numbers in the state become arrays; they cannot if tracing raises one of `NEEDS_VALUE`.
    """
    made, origin = where(workload.make), f"make(devices, batch) in {where(workload.make)}"
    with discovery.naming_lines(f"make of {made}", hint):
        own = workload.make([*devices], batch)
    if not isinstance(own, OwnStep):
        raise UserError(f"{origin} returned {type(own).__name__}: return an OwnStep.")
    for name in ("step", "init", "parameters", "context"):
        if not callable(getattr(own, name)):
            raise UserError(f"{origin} gives {name}={getattr(own, name)!r}, which cannot be called: give a function.")
    with discovery.naming_lines(f"init of {made}", hint), own.context():
        state = _fresh(own, origin)
        batch_0 = own.batch(0) if callable(own.batch) else own.batch
    # A transfer in each step would be timed as a part of it, and `transfer_guard` stops it with a worse message.
    _require_placed("state", state, origin)
    _require_placed("batch", batch_0, origin)
    _require_rows(batch_0, batch, workload.units_per_example, origin)
    leaves, batch_leaves = Leaves.of(state, numbers=numbers), Leaves.of(batch_0, numbers=False)
    mesh = _mesh_of([*leaves.arrays(state).values(), *batch_leaves.arrays(batch_0).values()], devices, origin)
    return _of_leaves(own, leaves, batch_leaves, mesh, origin, state)


def _of_leaves(
    own: OwnStep, leaves: Leaves, batch_leaves: Leaves, mesh: Mesh, origin: str, state: object
) -> OwnProgram:
    # By identity: `parameters` returns a part of the state in a structure of its own.
    compared = {id(leaf) for leaf in jax.tree.leaves(own.parameters(state))}
    originals = dict(zip(leaves.paths, jax.tree.leaves(state), strict=True))
    names = {path for path, leaf in originals.items() if id(leaf) in compared} - {*leaves.constants}
    counter = NamedSharding(mesh, PartitionSpec())

    def batch_of(step: int) -> Batch:
        return batch_leaves.arrays(own.batch(step) if callable(own.batch) else own.batch)

    def packed(step: jax.Array, arrays: Batch) -> TrainState:
        # Without names, as if `parameters` makes copies, all arrays are compared.
        params = {path: x for path, x in arrays.items() if not names or path in names}
        others = {path: x for path, x in arrays.items() if path not in params}
        return TrainState(step, params, (), others, ())  # type: ignore[arg-type]

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, object]:
        given = {**state.params, **state.opt_state}
        returned = own.step(leaves.whole(given), batch_leaves.whole(batch))
        if not (isinstance(returned, tuple) and len(returned) == 2):
            kind = f"{len(returned)} values" if isinstance(returned, tuple) else type(returned).__name__
            raise UserError(f"the step of {origin} returned {kind}, not (state, metrics): wrap it in a function.")
        new, metrics = returned
        arrays = _chained(leaves, given, new, origin)
        # Metrics may be any object; only numbers can leave a compiled step.
        shown = [x for x in jax.tree.leaves(metrics) if isinstance(x, jax.Array | np.ndarray | int | float)]
        named = metrics if isinstance(metrics, dict) and len(shown) == len(jax.tree.leaves(metrics)) else shown
        return packed(state.step + 1, arrays), named

    def init(key: jax.Array) -> TrainState:
        with context():
            arrays = leaves.arrays(_fresh(own, origin))
        arrays = {path: multihost.with_shards(x) for path, x in arrays.items()}
        return packed(multihost.put(np.int32(0), counter), arrays)

    context = own.context
    first = jax.tree.map(aval, packed(multihost.put(np.int32(0), counter), leaves.arrays(state)))
    return OwnProgram(
        mesh=mesh,
        init=init,
        # keep_unused: `placed_as_compiled` compares the sharding of every array of the state going in and coming out.
        step=jax.jit(step, donate_argnums=0 if own.donate else (), keep_unused=True),
        put=lambda _: batch_of(0),
        enter=context,
        avals=lambda: (first, jax.tree.map(aval, batch_of(0))),
        own=own,
        state_leaves=leaves,
        origin=origin,
        first=first,
        batch_of=batch_of,
    )


def _fresh(own: OwnStep, origin: str) -> Any:
    """A state of `init`. Raises UserError if its arrays are, or are made from, arrays that a step has donated."""
    # `jax.device_put` of an array that lies there already makes no copy, so donating the result deletes both.
    donated = UserError(
        f"init of {origin} returns arrays again that a step has donated, or makes them with jax.device_put, which may "
        "not copy: make the state inside of init, or give donate=False."
    )
    try:
        state = own.init()
    except (RuntimeError, ValueError) as error:
        if not re.search(r"has been (deleted|donated)|deleted or donated", str(error)):
            raise
        raise donated from error
    if any(isinstance(x, jax.Array) and x.is_deleted() for x in jax.tree.leaves(state)):
        raise donated
    return state


def aval(x: jax.Array) -> jax.ShapeDtypeStruct:
    """Its shape and, if it was placed, its sharding. The compiler chooses where an array that was not placed lies."""
    sharding = x.sharding if x.committed else None
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding, weak_type=x.weak_type)


def _chained(leaves: Leaves, given: Mapping[str, jax.Array], new: object, origin: str) -> Batch:
    """The arrays of the new state. Raises UserError if the next step could not take it."""
    before = f"the step of {origin} cannot be chained: it returns"
    if (structure := jax.tree.structure(new)) != leaves.tree:
        there, more = Leaves.of(new, numbers=leaves.numbers).paths, f"the structure {str(structure)[:120]}"
        lost, extra = ([p for p in a if p not in b] for a, b in ((leaves.paths, there), (there, leaves.paths)))
        if lost or extra:
            more = f"a state without '{lost[0]}'" if lost else f"a state with '{extra[0]}', which init does not have"
        raise UserError(f"{before} {more}: return a state like the one of init.")
    found = dict(zip(leaves.paths, jax.tree.leaves(new), strict=True))
    for path, old in leaves.constants.items():
        if isinstance(old, int | float | str) and found[path] is not old and found[path] != old:
            raise UserError(
                f"{before} '{path}' as {found[path]!r}, and it was {old!r}: make it an array, jnp.asarray({old!r})."
            )
    arrays = {}
    for path, old in given.items():  # a step counter that becomes a float, or bfloat16 that becomes float32
        x = jax.random.key_data(found[path]) if path in leaves.keys else jnp.asarray(found[path])
        if (x.shape, x.dtype) != (old.shape, old.dtype):
            was, now = (f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in (old, x))
            raise UserError(f"{before} '{path}' as {now}, and it was {was}: keep shape and dtype (x.astype).")
        arrays[path] = x
    return arrays


def _require_placed(what: str, tree: object, origin: str) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if isinstance(leaf, np.ndarray):
            name = jax.tree_util.keystr(path, simple=True, separator="/")
            raise UserError(
                f"the {what} of {origin} has a NumPy array{f' at {name!r}' if name else ''}, which every step would "
                "send to the devices again: place it with jax.device_put(array, sharding)."
            )


def _require_rows(tree: object, batch: int, units: int, origin: str) -> None:
    """Raises UserError if no array of the batch has as many rows as examples were asked for.

    The rows may have further axes: of devices, as under `pmap`, and of micro-batches. units: of an example, such as its
    tokens, which may lie one after the other.
    """
    arrays = [x for x in jax.tree.leaves(tree) if isinstance(x, jax.Array) and x.ndim and not _is_key(x)]
    shapes = [x.shape for x in arrays]

    def rows(axes: int) -> bool:
        """Whether the first axes have all rows, of one array or, if there are several axes, of all that begin alike."""
        found = {s[:axes] for s in shapes if len(s) >= axes and math.prod(s[:axes]) in (batch, batch * units)}
        return any(axes == 1 or all(s[:axes] == f for s in shapes if s[0] == f[0]) for f in found)

    def later() -> bool:
        """Whether time comes first: the second axis of all arrays has the rows, and the first one is whole."""
        return all(x.ndim > 1 and x.shape[1] == batch and _is_whole(x, 0) for x in arrays)

    if not arrays or any(map(rows, (1, 2, 3))) or later():
        return
    path, widest = max(
        ((p, x) for p, x in jax.tree_util.tree_leaves_with_path(tree) if isinstance(x, jax.Array) and x.ndim),
        key=lambda pair: pair[1].size,
    )
    name = jax.tree_util.keystr(path, simple=True, separator="/") or "batch"
    raise UserError(
        f"the batch of {origin} has '{name}' with the shape {list(widest.shape)}, but {batch} examples were asked for: "
        "give as many rows as the argument `batch` says, or each step is counted with examples that it does not have."
    )


def _is_whole(x: jax.Array, dim: int) -> bool:
    """Whether each device has all of a dimension."""
    return x.sharding.shard_shape(x.shape)[dim] == x.shape[dim]


def _mesh_of(arrays: Sequence[jax.Array], devices: Sequence[jax.Device], origin: str) -> Mesh:
    """The mesh of the arrays on most devices. Raises UserError if it does not have all devices."""
    shardings = sorted((x.sharding for x in arrays), key=lambda s: -len(s.device_set))
    if not shardings:
        raise UserError(f"the state and the batch of {origin} have no array.")
    widest = next(x for x in arrays if x.sharding is shardings[0])
    order = [*shardings[0].devices_indices_map(widest.shape)]  # as programs number them
    if len(order) < len(devices):
        raise UserError(
            f"{origin} puts the state and the batch on {len(order)} of {len(devices)} devices: build the mesh from the "
            "argument `devices`."
        )
    meshes = [s.mesh for s in shardings if isinstance(s, NamedSharding) and isinstance(s.mesh, Mesh)]
    # A trainer may have several, such as a flat one for data. The one with most axes names what collectives go over.
    largest = max((m for m in meshes if m.size == len(order)), key=lambda m: len(m.axis_names), default=None)
    return Mesh(np.array(order), (AXIS,), axis_types=(AxisType.Auto,)) if largest is None else largest


def hint(error: Exception) -> str:
    """What to do about an exception of the user's code; "" if that is unknown."""
    text = str(error)
    if "divisible" in text or "divide" in text:
        return "Choose a --config.batch that divides over the devices."
    if "Received incompatible devices" in text:
        return "Place the state and the batch on the argument `devices`, all of them."
    return ""


def placed_as_compiled(program: OwnProgram, compiled: Any) -> tuple[OwnProgram, bool]:
    """(the program with state and batch placed as its executable wants, whether it must be compiled again for that).

    Raises UserError if a state comes back with another sharding than it went in with.
    """
    (state_in, batch_in), _ = compiled.input_shardings
    state_out, first, again = compiled.output_shardings[0], program.first, False
    arrays = jax.tree_util.tree_leaves_with_path(first)
    shardings = []
    for (path, x), goes_in, comes_out in zip(arrays, *map(jax.tree.leaves, (state_in, state_out)), strict=True):
        same = goes_in.is_equivalent_to(comes_out, len(x.shape))
        if not same and x.sharding is not None:
            name = path[-1].key if hasattr(path[-1], "key") else str(path[-1])
            raise UserError(
                f"the step of {program.origin} cannot be chained: '{name}' goes in as {spec(goes_in)} and comes out as "
                f"{spec(comes_out)}, so a second call would compile again: constrain it in the step with "
                "jax.lax.with_sharding_constraint, or place it so in init."
            )
        again |= not same  # the compiler chose where it lies: what comes out goes in
        shardings.append(goes_in if same else comes_out)  # compiled with what comes out, the step can be chained
    state_on = jax.tree.unflatten(jax.tree.structure(first), shardings)
    state, init, batch_of = with_sharding(first, state_on), program.init, program.batch_of

    def placed(tree: T, on: Shardings) -> T:
        return jax.tree.map(lambda x, s: x if x.committed and x.sharding == s else multihost.put(x, s), tree, on)

    new = dataclasses.replace(
        program,
        first=state,
        init=lambda key: placed(init(key), state_on),
        put=lambda _: placed(batch_of(0), batch_in),
        batch_of=lambda step: placed(batch_of(step), batch_in),
        avals=lambda: (state, with_sharding(batch_of(0), batch_in)),
    )
    return new, again


def parameters(program: OwnProgram) -> int:
    """How many numbers the parameters have. Under `pmap` each array has a leading axis of copies, which count once."""
    count, arrays = program.mesh.size, program.first.params.values()

    def has_row_each(x: jax.Array | jax.ShapeDtypeStruct) -> bool:
        """Whether each device holds one row of an array."""
        # A sharded parameter may happen to have as many rows as devices, so the batch must look like this, too.
        return x.shape[:1] == (count,) and x.sharding is not None and x.sharding.shard_shape(x.shape)[0] == 1

    mapped = all(map(has_row_each, arrays)) and any(map(has_row_each, program.batch_of(0).values()))
    return sum(x.size for x in arrays) // (count if mapped else 1)


def spec(sharding: Sharding) -> str:
    if not isinstance(sharding, NamedSharding):
        return str(sharding)
    axes = [*sharding.spec]
    while axes and axes[-1] is None:  # as not split as without
        axes.pop()
    return f"P({', '.join(map(repr, axes))})"


def require_same_each_time(program: OwnProgram) -> None:
    """Raises UserError if `init` gives other values at its second call, or the step another program at its second
    trace, or if each call of the step would compile."""
    states = (program.init(None) for _ in range(2))  # type: ignore[arg-type]
    first, second = ({path: digest({path: x}) for path, x in {**s.params, **s.opt_state}.items()} for s in states)
    if changed := [path for path in first if first[path] != second[path]]:
        raise UserError(
            f"init of {program.origin} gives other values at its second call ('{changed[0]}'): seed its random numbers "
            "in init, so that all runs start alike."
        )
    step, given = program.step.__wrapped__, (program.first, program.batch_of(0))
    # Two traces instead of two runs: a changing Python value shows in the text, and nothing is compiled.
    with program.context():
        # A fresh function: a jitted one would remember its first trace.
        one, other = (jax.jit(lambda *args: step(*args)).trace(*given).jaxpr for _ in range(2))
    if line := _compiles_each_time(one.jaxpr, other.jaxpr):
        raise UserError(
            f"the step of {program.origin} makes a new jitted function in each call, so each step compiles ({line}): "
            "call jax.jit once, outside of the step."
        )
    if _values(one) != _values(other):
        raise UserError(
            f"the step of {program.origin} traces to another program at its second call: a Python value, such as a "
            "counter or a NumPy draw, changes in it; keep that in the state as an array."
        )


def _values(closed: core.ClosedJaxpr) -> tuple[str, list[bytes]]:
    """What the trace computes: its text and its constants."""
    # Without the addresses of Python functions, which differ between traces of the same step.
    text = re.sub(r" at 0x[0-9a-f]+", "", str(closed.jaxpr))
    return text, [np.asarray(x).tobytes() for x in closed.consts if not _is_key(x)]


def _compiles_each_time(one: core.Jaxpr, other: core.Jaxpr) -> str:
    """The line of a jitted function that is new at each call and has the work of the step; "" if there is none."""
    pairs = [(a, b) for a, b in zip(one.eqns, other.eqns, strict=False) if a.primitive.name in ("pjit", "jit")]
    if any(_has_products(a) for a in one.eqns if a.primitive.name not in ("pjit", "jit")):
        return ""  # it is not jitted inside: its inner functions are traced anew each time, as usual
    fresh = [a for a, b in pairs if a.params["jaxpr"] is not b.params["jaxpr"] and _has_products(a)]
    if not fresh or len(pairs) > 8:
        return ""
    return line_of(fresh[0]) or f"the function '{fresh[0].params.get('name', '')}'"


def _has_products(equation: core.JaxprEqn) -> bool:
    if equation.primitive.name in PRODUCTS:
        return True
    return any(each.primitive.name in PRODUCTS for body, _ in inner(equation) for each in equations(body))


def line_of(equation: core.JaxprEqn) -> str:
    """ "'mine.py', line 12": the last line of the user's files that made an equation; "" if there is none."""
    trace = equation.source_info.traceback
    frames: Sequence[Any] = trace.frames if trace is not None else ()
    return next((f"'{f.file_name}', line {f.line_num}" for f in frames if discovery.is_theirs(f.file_name)), "")


def draws_per_device(program: OwnProgram) -> str:
    """Where a step draws random numbers on each device by itself, as a line; "" if it does not."""
    with program.context():
        jaxpr = program.step.trace(program.first, program.batch_of(0)).jaxpr.jaxpr
    for mapped in (each for each in equations(jaxpr) if each.primitive.name in MAPS):
        for body, _ in inner(mapped):
            for each in equations(body):
                if each.primitive.name in DRAWS:
                    return line_of(each) or line_of(mapped) or "in a library"
    return ""


def digest(arrays: Mapping[str, jax.Array]) -> str:
    """A digest of arrays by path that does not depend on how they are spread over devices."""
    whole = hashlib.sha256()
    for path in sorted(arrays):  # a jitted function returns its dictionaries sorted
        whole.update(np.ascontiguousarray(multihost.on_host(arrays[path])).tobytes())
    return whole.hexdigest()
