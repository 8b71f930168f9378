# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Workloads to measure: their types, adapters that build them from models, Flax models, and data."""

from jaxbench.core.weighted import WeightedMean
from jaxbench.core.workload import Dataset, Field, Partition, TrainWorkload
from jaxbench.workloads.adapters import from_equinox, from_functions, from_haiku, from_linen, from_nnx
from jaxbench.workloads.cases import CaseSet, CollectiveWorkload, KernelWorkload, TransferWorkload
from jaxbench.workloads.data.own import hugging_face
from jaxbench.workloads.losses import classification, contrastive, evaluation, next_token, prediction, score
from jaxbench.workloads.optimizers import make_optimizer
from jaxbench.workloads.sharding_context import first, gathered
from jaxbench.workloads.sums.adapt import from_sums

__all__ = [
    "CaseSet",
    "CollectiveWorkload",
    "Dataset",
    "Field",
    "KernelWorkload",
    "Partition",
    "TrainWorkload",
    "TransferWorkload",
    "WeightedMean",
    "classification",
    "contrastive",
    "evaluation",
    "first",
    "from_equinox",
    "from_functions",
    "from_haiku",
    "from_linen",
    "from_nnx",
    "from_sums",
    "gathered",
    "hugging_face",
    "make_optimizer",
    "next_token",
    "prediction",
    "score",
]
