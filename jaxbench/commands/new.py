# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench new`: writes a complete example to start from, a model or a train step."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from absl import flags
from rich.console import Console

from jaxbench.errors import UserError, did_you_mean
from jaxbench.records.reading import read_toml
from jaxbench.verbs import FLAGS, Verb

CI = "ci"  # the argument that asks for a workflow and no experiment
FILES = {"github": ".github/workflows/jaxbench.yml", "gitlab": ".gitlab-ci.yml"}  # by service
TEMPLATES = {path.stem: path for path in sorted((Path(__file__).parents[1] / "templates").glob("[!_]*.py"))}

flags.DEFINE_string("for", None, "new ci: the service that runs the workflow: github or gitlab.")

VERB = Verb(
    usage="new FILE.py",
    help="write an example to start from: a model (--from=nnx, linen, functions, equinox, haiku) or --from=step",
    group="bring your own",
    argument="file to write",
    example="jaxbench new mine.py",
    details="new ci --for=github|gitlab writes a workflow that compares each change with the main branch.",
    flags=("from", "template", "for"),
    examples=(
        "new mine.py",
        "new mine.py --from=equinox",
        "new mystep.py --from=step",
    ),
)


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    (file,) = arguments
    service = FLAGS["for"].value
    if (file == CI) != (service is not None):
        raise UserError("a workflow is written by jaxbench new ci --for=github (or gitlab).")
    if file == CI:
        path = write_ci(str(service))
        console.print(f"Written: {path}. It compares each change with origin/main.", highlight=False, soft_wrap=True)
        return 0
    write(Path(file), str(FLAGS["from"].value))
    then = f"explain it: jaxbench try {file}" if FLAGS["from"].value == "step" else f"measure it: jaxbench run {file}"
    console.print(f"Written: {file}. To {then}", highlight=False, soft_wrap=True)
    return 0


def write_ci(service: str, folder: Path = Path()) -> Path:
    """Writes the workflow of a service for the repository in `folder`. Raises UserError if it exists."""
    if service not in FILES:
        raise UserError(f"--for={service} is unknown: {did_you_mean(service, FILES)}")
    path = folder / FILES[service]
    text = (Path(__file__).parents[1] / "templates" / CI / f"{service}.yml").read_text()
    project = folder / "pyproject.toml"
    named = read_toml(project, "Mend it first.") if project.is_file() else {}
    name = named.get("project", {}).get("name")
    installed = [*([] if name == "jaxbench" else ["jaxbench"]), *(["--editable ."] if project.is_file() else [])]
    text = text.replace("INSTALLED", " ".join(installed)).replace("EXPERIMENT_NAME", "mlp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x") as file:
            file.write(text)
    except FileExistsError as error:
        raise UserError(f"'{path}' already exists and is not overwritten: rename it first.") from error
    return path


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
