# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The user's own data, in any common form, read into host memory as a Dataset.

Forms: a dict of arrays; an iterable of examples or batches (a list, a generator, a Grain dataset); a Hugging Face
dataset on disk (`hugging_face`). Two of these, or a dict {"train": ..., "test": ...}, are the two splits; one is split.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbench import discovery
from jaxbench.errors import UserError
from jaxbench.workloads.base import Dataset, Field, Splits, TrainWorkload
from jaxbench.workloads.data.order import permutation

Arrays = dict[str, np.ndarray]

MAX_BYTES = 2**33  # host memory for one split; more does not fit on many machines
MAX_EXAMPLES = 10**7  # read one by one; an iterator with more is usually infinite
TEST_FRACTION = 0.2
CHUNK = 1024  # elements that are stacked at a time
_FORMS = "a dict of arrays, examples as dicts, a pair (train, test) of these, or hugging_face('folder')"


def read(workload: TrainWorkload, *, seed: int) -> Dataset:
    """Loads the data of a workload. seed: of the split, for data that is not already split.

    Raises UserError for illegal data, and for any exception of the user's own function.
    """
    with discovery.explaining():
        data = workload.data() if callable(workload.data) else workload.data
        return data if _is_dataset(data) else _split(workload, data, seed)


def _is_dataset(data: Any) -> bool:
    """Whether `data` already is a Dataset; an object with methods `train` and `test` is not."""
    return isinstance(getattr(data, "train", None), Mapping) and isinstance(getattr(data, "test", None), Mapping)


def _split(workload: TrainWorkload, data: Any, seed: int) -> Splits:
    """Both splits of data in any form. Raises UserError."""
    name = f"data of {workload.name}"
    if isinstance(data, Mapping) and "train" in data and "train" not in workload.example:
        test = data.get("test", data.get("validation"))
        data = data["train"] if test is None else (data["train"], test)
    if isinstance(data, tuple) and len(data) == 2:
        train, test = (_arrays(workload, part) for part in data)
        return Splits(train, test, name)
    arrays = _arrays(workload, data)
    _require_examples(arrays, f"the {name}")
    if (count := len(next(iter(arrays.values())))) < 2:
        raise UserError(f"the {name} have {count} examples: at least 2 are needed, to train and to test on.")
    drawn, cut = permutation(count, seed), max(1, round(TEST_FRACTION * count))
    train, test = ({k: array[rows] for k, array in arrays.items()} for rows in (drawn[cut:], drawn[:cut]))
    return Splits(train, test, name)


def _arrays(workload: TrainWorkload, data: Any) -> Arrays:
    """One split, or all data, as arrays of the fields' dtypes. Raises UserError."""
    if isinstance(data, Mapping):
        arrays = {name: np.asarray(data[name]) for name in workload.example if name in data}
        _require_same_fields(workload, data)
    elif isinstance(data, Iterable) or hasattr(data, "__getitem__"):
        arrays = _concatenated(workload, _elements(data))
    else:
        raise UserError(f"the data of '{workload.name}' are {type(data).__name__}: legal are {_FORMS}.")
    return {name: _cast(array, workload.example[name]) for name, array in arrays.items()}


def _elements(data: Any) -> Iterator[Any]:
    """Iterates over elements, by index if the data has a length.

    A Grain MapDataset repeats forever when iterated, and has None in place of filtered elements.
    """
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return (element for i in range(len(data)) if (element := data[i]) is not None)
    return iter(data)


def _concatenated(workload: TrainWorkload, elements: Iterator[Any]) -> Arrays:
    """Concatenates examples or batches. Raises UserError if they do not fit in memory."""
    chunks: list[Arrays] = []
    size = count = 0
    while elements_read := list(itertools.islice(elements, CHUNK)):
        for element in elements_read:
            if not isinstance(element, Mapping):
                raise UserError(
                    f"the data of '{workload.name}' hold {type(element).__name__}: each must be a dict with the fields "
                    f"{', '.join(workload.example)}, one example or a batch of them."
                )
            _require_same_fields(workload, element)
        chunk = _batch(workload, elements_read)
        chunks.append(chunk)
        size, count = size + sum(a.nbytes for a in chunk.values()), count + len(next(iter(chunk.values())))
        if size > MAX_BYTES or count > MAX_EXAMPLES:
            raise UserError(
                f"the data of '{workload.name}' do not end within {MAX_BYTES / 2**30:.0f} GiB and {MAX_EXAMPLES:,} "
                "examples, the most that are held in memory: give fewer, such as itertools.islice(examples, 100_000)."
            )
    if not chunks:
        raise UserError(f"the data of '{workload.name}' are empty: an iterator can be read only once.")
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in workload.example}


def _batch(workload: TrainWorkload, elements: list[Any]) -> Arrays:
    """Elements as one batch. A value with no more axes than its field is an example, otherwise a batch."""
    made = {}
    for name, field in workload.example.items():
        values = [np.asarray(element[name]) for element in elements]
        stacked = values[0].ndim <= len(field.shape)
        if any(value.shape[not stacked :] != values[0].shape[not stacked :] for value in values):
            raise UserError(
                f"'{name}' in the data of '{workload.name}' differs in shape from example to example: pad or crop it "
                f"to {field.shape}."
            )
        made[name] = np.stack(values) if stacked else np.concatenate(values)
    return made


def _require_same_fields(workload: TrainWorkload, found: Mapping[str, Any]) -> None:
    missing = sorted(workload.example.keys() - found.keys())
    if missing:
        raise UserError(
            f"the data of '{workload.name}' have no '{missing[0]}': they have {', '.join(map(str, found))}."
        )


def _cast(array: np.ndarray, field: Field) -> np.ndarray:
    """The array in the field's dtype, if that is of the same kind and can represent the values.

    uint8 pixels are not converted to floats, because the intended range is unknown.
    """
    wanted = np.dtype(field.dtype)
    if array.dtype.kind == "f" and jnp.issubdtype(wanted, jnp.floating):
        return array.astype(wanted, copy=False)
    if array.dtype.kind in "iu" and wanted.kind in "iu" and array.size:
        legal = np.iinfo(wanted)
        return array.astype(wanted, copy=False) if legal.min <= array.min() and array.max() <= legal.max else array
    return array


def _require_examples(arrays: Mapping[str, np.ndarray], where: str) -> None:
    """Raises UserError unless every array has the same examples along its first axis, and there are some."""
    lengths = {array.shape[:1] for array in arrays.values()}
    if len(lengths) != 1 or lengths <= {(), (0,)}:
        shapes = ", ".join(f"'{name}' {array.shape}" for name, array in arrays.items())
        raise UserError(f"the arrays of {where} have no common, positive length along their first axis: {shapes}.")


def require(workload: TrainWorkload, arrays: Mapping[str, np.ndarray], where: str) -> None:
    """Raises UserError unless the arrays are examples of the workload. where: "the train split of 'digits'"."""
    missing = sorted(workload.example.keys() - arrays.keys())
    if missing:
        raise UserError(f"{where} has no '{missing[0]}': it has {', '.join(arrays)}.")
    _require_examples(arrays, where)
    for name, field in workload.example.items():
        found, wanted = arrays[name], np.dtype(field.dtype)
        if found.shape[1:] != tuple(field.shape) or found.dtype != wanted:
            raise UserError(
                f"'{name}' in {where} is {found.dtype} of shape {found.shape}: '{workload.name}' takes {wanted} of "
                f"shape {('N', *field.shape)}."
            )
        if field.classes is not None and not 0 <= found.min() <= found.max() < field.classes:
            wrong = found.min() if found.min() < 0 else found.max()
            raise UserError(f"'{name}' in {where} holds {wrong}: legal are 0 to {field.classes - 1}.")
