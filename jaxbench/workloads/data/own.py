# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The user's own data, in any common form, read into host memory as a Dataset.

Forms: a dict of arrays; an iterable of examples or batches (a list, a generator, a Grain dataset); a Hugging Face
dataset on disk. Two of these, or a dict {"train": ..., "test": ...}, are the two splits; one is split.

A Hugging Face dataset is read as `datasets.save_to_disk` writes it since version 2: Arrow streams, ``state.json`` with
the names of one split's files, and ``dataset_dict.json`` with the splits, each in a folder of its name. Only `pyarrow`
is needed to read them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import jax.numpy as jnp
import numpy as np

from jaxbench import discovery
from jaxbench.core.workload import Dataset, Field, TrainWorkload
from jaxbench.errors import UserError
from jaxbench.records import reading
from jaxbench.workloads.data.input import permutation

Arrays = dict[str, np.ndarray]

MAX_BYTES = 2**33  # host memory for one split; more does not fit on many machines
MAX_EXAMPLES = 10**7  # read one by one; an iterator with more is usually infinite
TEST_FRACTION = 0.2
CHUNK = 1024  # elements that are stacked at a time
_FORMS = "a dict of arrays, examples as dicts, a pair (train, test) of these, or hugging_face('folder')"
SAVE = "save it with dataset.save_to_disk(folder)"


def read(workload: TrainWorkload, *, seed: int) -> Dataset:
    """Loads the data of a workload. seed: of the split, for data that is not already split.

    Raises UserError for illegal data, and for any exception of the user's own function.
    """
    with discovery.naming_lines():
        data = workload.data() if callable(workload.data) else workload.data
        # A Dataset has both as mappings; other objects may have methods of these names.
        splits = (getattr(data, part, None) for part in ("train", "test"))
        return (
            cast(Dataset, data) if all(isinstance(each, Mapping) for each in splits) else _split(workload, data, seed)
        )


def _split(workload: TrainWorkload, data: object, seed: int) -> Dataset:
    """Both splits of data in any form. Raises UserError."""
    name = f"data of {workload.name}"
    # A model may have a field that is called train, and then the dict is one split.
    if isinstance(data, Mapping) and "train" in data and "train" not in workload.example:
        test = data.get("test", data.get("validation"))
        data = data["train"] if test is None else (data["train"], test)
    if isinstance(data, tuple) and len(data) == 2:
        train, test = (_arrays(workload, part) for part in data)
        return Dataset(train, test, name)
    arrays = _arrays(workload, data)
    _require_examples(arrays, f"the {name}")
    count = len(next(iter(arrays.values())))
    # Drawn, not cut off at the end: data on disk are often sorted by class.
    drawn, cut = permutation(count, seed), max(1, round(TEST_FRACTION * count))
    train, test = ({k: array[rows] for k, array in arrays.items()} for rows in (drawn[cut:], drawn[:cut]))
    return Dataset(train, test, name)


def _arrays(workload: TrainWorkload, data: object) -> Arrays:
    """One split, or all data, as arrays of the fields' dtypes. Raises UserError."""
    if isinstance(data, Mapping):
        arrays = {name: np.asarray(data[name]) for name in workload.example if name in data}
        _require_fields(workload, data, f"the data of '{workload.name}'")
    elif isinstance(data, Iterable) or hasattr(data, "__getitem__"):
        arrays = _concatenated(workload, _elements(data))
    else:
        raise UserError(f"the data of '{workload.name}' are {type(data).__name__}: legal are {_FORMS}.")
    return {name: _cast(array, workload.example[name]) for name, array in arrays.items()}


def _elements(data: Any) -> Iterator[object]:
    """Iterates over elements, by index if the data has a length."""
    # A Grain MapDataset repeats forever when iterated, and has None in place of filtered elements.
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return (element for i in range(len(data)) if (element := data[i]) is not None)
    return iter(data)


def _concatenated(workload: TrainWorkload, elements: Iterator[object]) -> Arrays:
    """Concatenates examples or batches. Raises UserError if they do not fit in memory."""
    chunks: list[Arrays] = []
    size = count = 0
    # In chunks, so that an infinite iterator is refused before it fills the memory.
    while elements_read := list(itertools.islice(elements, CHUNK)):
        for element in elements_read:
            if not isinstance(element, Mapping):
                raise UserError(
                    f"the data of '{workload.name}' hold {type(element).__name__}: each must be a dict with the fields "
                    f"{', '.join(workload.example)}, one example or a batch of them."
                )
            _require_fields(workload, element, f"the data of '{workload.name}'")
        # Stacked chunk by chunk: a million small arrays take many times the memory of one.
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
        stacked = values[0].ndim <= len(field.shape)  # fewer axes too, to be refused with both shapes by `require`
        if any(value.shape[not stacked :] != values[0].shape[not stacked :] for value in values):
            raise UserError(
                f"'{name}' in the data of '{workload.name}' differs in shape from example to example: pad or crop it "
                f"to {field.shape}."
            )
        made[name] = np.stack(values) if stacked else np.concatenate(values)
    return made


def _require_fields(workload: TrainWorkload, found: Mapping[str, object], where: str) -> None:
    if missing := sorted(workload.example.keys() - found.keys()):
        raise UserError(f"{where} lack the field '{missing[0]}': they have {', '.join(map(str, found))}.")


def _cast(array: np.ndarray, field: Field) -> np.ndarray:
    """The array in the field's dtype, if that is of the same kind and can represent the values."""
    # An array that stays as it is, `require` refuses. uint8 pixels are not converted to floats, because it is not known
    # whether the model wants 0 to 255, 0 to 1 or normalized values.
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
    _require_fields(workload, arrays, f"the examples of {where}")
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


def hugging_face(folder: str) -> Callable[[], object]:
    """The `data` of a TrainWorkload: the columns of the dataset in `folder`, as fields of the same names.

    Its splits "train" and "test" (or "validation") are used; a single split is divided by the seed. The folder is read
    when the data is needed, which raises UserError for missing files or columns that are not numbers.
    """
    return lambda: _read(Path(folder).expanduser())


def _read(folder: Path) -> Any:
    """{split: columns}, or the columns of a dataset without splits."""
    if not folder.is_dir():
        raise UserError(f"there is no folder '{folder}' with a Hugging Face dataset: {SAVE}.")
    if not (folder / "dataset_dict.json").is_file():
        return _columns(folder)
    splits = [str(name) for name in _json(folder / "dataset_dict.json", "splits")]
    wanted = [name for name in ("train", "test", "validation") if name in splits]
    if "train" not in wanted:
        raise UserError(f"'{folder}' has the splits {', '.join(splits)}: one must be called train.")
    return {name: _columns(folder / name) for name in wanted[:2]}  # with both "test" and "validation": "test"


def _columns(folder: Path) -> Columns:
    """The columns of one split."""
    try:
        import pyarrow
        from pyarrow import ipc
    except ImportError as error:
        raise UserError(
            "a Hugging Face dataset is read by pyarrow, which is not installed: pip install pyarrow."
        ) from error
    names = [str(file["filename"]) for file in _json(folder / "state.json", "_data_files")]
    try:
        tables = []
        for name in names:
            with pyarrow.memory_map(str(folder / name)) as source:  # reads only the columns that are used
                tables.append(ipc.open_stream(source).read_all())
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise UserError(f"'{folder}' cannot be read ({' '.join(str(error).split())}): {SAVE} again.") from error
    return Columns(pyarrow.concat_tables(tables), folder)


class Columns(Mapping[str, np.ndarray]):
    """The columns of a table as arrays, converted on access: unused columns, such as texts, may be anything."""

    def __init__(self, table: Any, folder: Path):
        self._table, self._folder = table, folder

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return self._table.num_columns

    def __getitem__(self, name: str) -> np.ndarray:
        """Nested lists become axes. Raises UserError if their lengths differ, or values are not numbers."""
        import pyarrow
        from pyarrow import compute, types

        array = pyarrow.concat_arrays(self._table.column(name).chunks)
        column = f"the column '{name}' of '{self._folder}'"
        # Each level of lists with one common length is an axis.
        kind, shape, lists = array.type, [len(array)], (types.is_list, types.is_large_list, types.is_fixed_size_list)
        while any(is_list(_storage(array).type) for is_list in lists):
            array = _storage(array)
            lengths = compute.unique(compute.list_value_length(array)).to_pylist()
            if len(lengths) > 1 or array.null_count:
                raise UserError(
                    f"{column} holds lists of different or missing lengths: pad or crop them to one length."
                )
            shape, array = [*shape, *lengths], array.flatten()
        if not (types.is_integer(array.type) or types.is_floating(array.type)) or array.null_count:
            raise UserError(
                f"{column} holds {kind}, in which not every value is a number: add a column of numbers with "
                "dataset.map, such as images as float arrays, and give the field its name."
            )
        return array.to_numpy(zero_copy_only=False).reshape(shape)


def _storage(array: Any) -> Any:
    """The storage of an extension type of `datasets`, such as Array2D, or the array itself."""
    return getattr(array, "storage", array)


def _json(path: Path, key: str) -> Any:
    """One entry of a file of a Hugging Face dataset. Raises UserError."""
    return reading.read_json(path, lambda value: value[key], f"it is not that of a Hugging Face dataset: {SAVE}.")
