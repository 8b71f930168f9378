# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Rewrites commands in messages to the form that the user typed: `jaxbench VERB`, or `make VERB` under make.

Messages in the code have one form. They are rewritten where they leave the program: on the terminal and on a page.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

from jaxbench import discovery

FORM = "JAXBENCH_FORM"  # "make" in the processes that the Makefile starts
# The Makefile's variable for a flag, and for the argument of a verb.
VARIABLES = {name: name.upper() for name in "preset workdir from to run a b across name card docs".split()}
VARIABLES["targets"] = "TARGET"
ARGUMENTS = {"paper": "ID", "launch": "ENGINE"}  # of all other verbs with an argument: EXP
LAUNCH = ("--nodes", "--devices", "--processes_per_node", "--minutes", "--options")  # go into LAUNCH, others into ARGS

# A full stop or a comma after a flag belongs to the sentence and not to the flag.
_FLAG = r"""--\w+(?:\.\w+)*(?:=(?:"[^"]*"|'[^']*'|[^\s'"]*[^\s'".,;:)]))?"""


@functools.cache
def verbs() -> dict[str, str]:
    """The module of each verb by its name. A verb is a file in `commands`."""
    files = sorted(file.stem for file in (Path(__file__).parent / "commands").glob("[!_]*.py"))
    return {stem.rstrip("_").replace("_", "-"): f"jaxbench.commands.{stem}" for stem in files}


def by_make() -> bool:
    return os.environ.get(FORM) == "make"


def as_typed(text: str) -> str:
    """`text` with its commands and flags in make's form if make started this process, else unchanged.

    "jaxbench run cnn --preset=smoke" -> "make run EXP=cnn PRESET=smoke"; "--workdir" -> "WORKDIR".
    """
    if not by_make() or ("--" not in text and "jaxbench" not in text):
        return text
    # Only known words are arguments: in "run jaxbench calibrate first", the last word is English.
    known = "|".join((*discovery.experiments(), "EXPERIMENT", r"[a-z]+\d{4}", "slurm", "mpi", "k8s", "ray"))
    word = rf"{_FLAG}|-- (?:run|train|accept)|(?:[\w./-]+\.py|{known})(?![\w-])"
    verb = "|".join(verbs())
    text = re.sub(rf"\bjaxbench ({verb})(?![\w-])((?: (?:{word}))*)", lambda m: _make(m[1], m[2], word), text)
    text = re.sub(rf"\badd ({_FLAG})", lambda found: f"add {_variables([found[1]])}", text)
    return re.sub(_FLAG, lambda found: _variable(found[0]) or found[0], text)


def _make(verb: str, rest: str, word: str) -> str:
    words = [found[0] for found in re.finditer(word, rest)]
    plain = [word for word in words if not word.startswith("-")]
    arguments = [f"{name}={word}" for name, word in zip((ARGUMENTS.get(verb, "EXP"), "EXP"), plain, strict=False)]
    return " ".join(["make", verb, *arguments, _variables([w for w in words if re.match(r"--\w", w)])]).rstrip()


def _variables(flags: list[str]) -> str:
    shown = [variable for flag in flags if (variable := _variable(flag))]
    for name in ("LAUNCH", "ARGS"):
        text = " ".join(f for f in flags if not _variable(f) and (f.split("=")[0] in LAUNCH) == (name == "LAUNCH"))
        shown += [f'{name}="{text}"' if re.search(r"[\s'\"]", text) else f"{name}={text}"] if text else []
    return " ".join(shown)


def _variable(flag: str) -> str:
    """make's variable for a flag: "--workdir=x" -> "WORKDIR=x"; "" for a flag without a variable."""
    name, equals, value = flag.removeprefix("--").partition("=")
    return f"{VARIABLES[name]}{equals}{value}" if name in VARIABLES else ""


def with_extra(name: str) -> str:
    """How to install an extra. The package is in no index, so it comes from a clone or from a wheel file."""
    if by_make():
        return f"add EXTRAS={name}"
    return f"pip install '.[{name}]' in a clone, or 'FILE.whl[{name}]' for a wheel"
