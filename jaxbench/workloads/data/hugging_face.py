# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A Hugging Face dataset on the disk, as `datasets.save_to_disk` writes it: Arrow streams beside JSON that lists them.

The format is that of `datasets` since its version 2: ``state.json`` names the files of one split, ``dataset_dict.json``
the splits, each in a folder of its name. Only `pyarrow` is needed to read them.
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
    """The `data` of a TrainWorkload whose fields are columns of the dataset in `folder`.

    Its splits "train" and "test" (or "validation") are those of the training; a single one is split by the seed. The
    folder is read when the data are asked for, and then raises UserError for what is not there, or is no numbers.
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
        raise UserError("a Hugging Face dataset is read by pyarrow, which is missing: pip install pyarrow.") from error
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
    """The columns of a table as arrays, each made when it is asked for: others, such as texts, need not be numbers."""

    def __init__(self, table: Any, folder: Path):
        self._table, self._folder = table, folder

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return self._table.num_columns

    def __getitem__(self, name: str) -> np.ndarray:
        """Lists, and lists of lists, become axes. Raises UserError where their lengths differ, and for no numbers."""
        import pyarrow
        from pyarrow import compute, types

        array, said = pyarrow.concat_arrays(self._table.column(name).chunks), f"the column '{name}' of '{self._folder}'"
        kind, shape, lists = array.type, [len(array)], (types.is_list, types.is_large_list, types.is_fixed_size_list)
        while any(is_list(_stored(array).type) for is_list in lists):
            array = _stored(array)
            lengths = compute.unique(compute.list_value_length(array)).to_pylist()
            if len(lengths) > 1 or array.null_count:
                raise UserError(f"{said} holds lists of different lengths: pad or crop them, and leave none out.")
            shape, array = [*shape, *lengths], array.flatten()
        if not (types.is_integer(array.type) or types.is_floating(array.type)) or array.null_count:
            raise UserError(
                f"{said} holds {kind}, in which not every value is a number: add a column of numbers, such as images "
                "as float arrays, by dataset.map, and call the field as that column."
            )
        return array.to_numpy(zero_copy_only=False).reshape(shape)


def _stored(array: Any) -> Any:
    """What an array of a type that `datasets` adds, such as Array2D, consists of."""
    return getattr(array, "storage", array)


def _json(path: Path, key: str) -> Any:
    try:
        return json.loads(path.read_text())[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"'{path.parent}' holds no Hugging Face dataset ({error!r}): {SAVE}.") from error
