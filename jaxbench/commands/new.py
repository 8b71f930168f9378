# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench new`: writes a complete example to start from, a model or a train step."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from rich.console import Console

from jaxbench.errors import UserError, did_you_mean
from jaxbench.verbs import FLAGS, Verb

TEMPLATES = {path.stem: path for path in sorted((Path(__file__).parents[1] / "templates").glob("[!_]*.py"))}

VERB = Verb(
    usage="new FILE.py",
    help="write an example to start from: a model (--from=nnx, linen, functions, equinox, haiku) or --from=step",
    group="bring your own",
    argument="file to write",
    example="jaxbench new mine.py",
    flags=("from", "template"),
    examples=(
        "new mine.py",
        "new mine.py --from=equinox",
        "new mystep.py --from=step",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    (file,) = arguments
    write(Path(file), str(FLAGS["from"].value))
    then = f"explain it: jaxbench try {file}" if FLAGS["from"].value == "step" else f"measure it: jaxbench run {file}"
    console.print(f"Written: {file}. To {then}", highlight=False, soft_wrap=True)
    return 0


def write(path: Path, style: str) -> None:
    """Writes the example `style`, a name in TEMPLATES, and names its experiment after the file.

    Raises UserError if the style is unknown, or if the file exists, is not a Python file, or would hide an installed
    module.
    """
    if style not in TEMPLATES:
        raise UserError(f"--from={style} is unknown: {did_you_mean(style, TEMPLATES)}")
    if path.suffix != ".py":
        raise UserError(f"'{path}' is not the name of a Python file: write jaxbench new {path.with_suffix('.py')}.")
    # Python puts the folder of a script first, so `equinox.py` would be imported in place of the library.
    if path.stem.isidentifier() and not path.exists() and importlib.util.find_spec(path.stem) is not None:
        raise UserError(f"'{path}' would hide the library of that name: choose another name, such as my_{path.name}.")
    _, text = TEMPLATES[style].read_text().split("\n", 1)  # without our licence line: the file is the user's
    try:
        with path.open("x") as file:
            file.write(text.replace("mine.py", path.name).replace('name="mine"', f'name="{path.stem}"'))
    except FileExistsError as error:
        raise UserError(f"'{path}' already exists and is not overwritten: choose another name.") from error
