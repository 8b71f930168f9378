# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench advise`: which accelerators for a training of known size."""

from __future__ import annotations

import datetime
from pathlib import Path

from absl import flags
from ml_collections import ConfigDict
from rich.console import Console

from jaxbench.verbs import FLAGS, Verb

_TEXTS = ("tokens", "examples", "deadline", "prices", "run", "targets", "counts")
_OF_TOKENS = ("tpot", "ttft", "context")  # flags of an experiment that generates

flags.DEFINE_string("tokens", None, "advise: how many tokens the training sees: 1e12.")
flags.DEFINE_string("examples", None, "advise: how many examples the training sees, such as images: 1.2e8.")
flags.DEFINE_string("deadline", None, "advise: how long the training may take: 36h, 14d or 2w.")
flags.DEFINE_string("tpot", None, "advise decode: the longest time of a token: 50ms.")
flags.DEFINE_string("ttft", None, "advise decode: the longest time to the first token: 1s.")
flags.DEFINE_string("context", None, "advise decode: places of a request's cache: 8192.")
flags.DEFINE_string("prices", None, "advise: a CSV file of prices that replaces the catalogue's.")

VERB = Verb(
    usage="advise EXPERIMENT --tokens=1e12 --deadline=14d",
    help="which accelerators for a training: what fits, time, cost and energy",
    group="absent hardware",
    details="advise takes --tokens=1e12 or --examples=1e8, --deadline=14d, --prices=FILE, --run=DIR, "
    "--targets=h100,v5p and --counts=8..256; for decode --tpot=50ms, --ttft=1s and --context=8192.",
    argument="experiment",
    flags=("preset", "workdir", *_TEXTS, *_OF_TOKENS),
    configured=True,
    refused=("cases", "targets"),
    examples=(
        "advise gpt --config.model.preset=7b --tokens=1e12 --deadline=14d",
        "advise resnet50 --examples=1e8 --targets=h100,v5p",
        "advise gpt --config.model.preset=small --tokens=1e10 --counts=8..256 --prices=prices.csv",
    ),
)


def prepare(config: ConfigDict) -> None:
    """The defaults: weak scaling. A model of blocks shards its state and recomputes its blocks."""
    if config.get("measures") == "decode":
        return
    if "scaling" in config:
        config.scaling = "weak"
    # "jit_auto" is the default: whoever chose another strategy keeps it.
    if config.get("model", {}).get("layers") is not None and config.strategy == "jit_auto":
        config.strategy, config.lever.remat, config.accelerator_batch = "fsdp", "block", 1


def main(arguments: list[str], workdir: Path, console: Console) -> int:
    if FLAGS.config is not None and FLAGS.config.get("measures") == "decode":
        from jaxbench.features.decode import absent

        texts = {name: FLAGS[name].value for name in ("tpot", "ttft", "context", "prices", "targets")}
        return 0 if absent.advise(FLAGS.config, texts, workdir, console) else 1
    from jaxbench.features.forecast import advise_command, page

    (experiment,) = arguments
    texts = {name: FLAGS[name].value for name in _TEXTS}
    asked = advise_command.request(texts, today=datetime.date.today())
    fits = advise_command.advise(experiment, FLAGS.config, asked, workdir, console)
    page.write_advice(workdir, console)
    return 0 if fits else 1
