# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A Hugging Face dataset on disk, as `datasets.save_to_disk` writes it: Arrow streams and JSON files that list them.

The format is that of `datasets` since version 2: ``state.json`` names the files of one split, ``dataset_dict.json`` the
splits, each in a folder of its name. Only `pyarrow` is needed to read them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxbench.errors import UserError

SAVE = "save it with dataset.save_to_disk(folder)"


def hugging_face(folder: str) -> Callable[[], Any]:
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
    return {name: _columns(folder / name) for name in wanted[:2]}


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
            with pyarrow.memory_map(str(folder / name)) as source:
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
    try:
        return json.loads(path.read_text())[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"'{path.parent}' holds no Hugging Face dataset ({error!r}): {SAVE}.") from error
