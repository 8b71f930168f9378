# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench new`: a complete example to start from, written into a file of one's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from jaxbench.errors import UserError, did_you_mean

TEMPLATES = {path.stem: path for path in sorted((Path(__file__).parent / "templates").glob("[!_]*.py"))}


def write(path: Path, style: str) -> None:
    """Writes the example of a `style`, a name of TEMPLATES, whose experiment is called as the file is.

    Raises:
      UserError: there is no such style; the file is there already, cannot be written, or is no Python file that can be
        imported beside its libraries.
    """
    if style not in TEMPLATES:
        raise UserError(f"--from={style} is unknown: {did_you_mean(style, TEMPLATES)}")
    if path.suffix != ".py":
        raise UserError(f"'{path}' is not the name of a Python file: write jaxbench new {path.with_suffix('.py')}.")
    if path.stem.isidentifier() and not path.exists() and importlib.util.find_spec(path.stem) is not None:
        raise UserError(f"'{path}' would hide the library of that name: choose another, such as my_{path.name}.")
    licence, text = TEMPLATES[style].read_text().split("\n", 1)
    assert licence.startswith("# Copyright")  # ours; what is made of the example belongs to whoever makes it
    try:
        with path.open("x") as file:
            file.write(text.replace("mine.py", path.name).replace('name="mine"', f'name="{path.stem}"'))
    except FileExistsError as error:
        raise UserError(f"'{path}' already exists and is not overwritten: choose another name.") from error
    except OSError as error:
        raise UserError(f"'{path}' cannot be written ({error.strerror}): name a folder that exists.") from error
