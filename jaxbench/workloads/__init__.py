# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What can be measured: the Workload doorway, ways to pass through it, Flax models and data."""

from jaxbench.workloads.adapters import from_functions, from_linen, from_nnx
from jaxbench.workloads.base import Dataset, Field, TrainWorkload
from jaxbench.workloads.cases import CaseSet, CollectiveWorkload, KernelWorkload, TransferWorkload
from jaxbench.workloads.data.hugging_face import hugging_face
from jaxbench.workloads.losses import classification, evaluation, prediction
from jaxbench.workloads.optimizers import make_optimizer

__all__ = [
    "CaseSet",
    "CollectiveWorkload",
    "Dataset",
    "Field",
    "KernelWorkload",
    "TrainWorkload",
    "TransferWorkload",
    "classification",
    "evaluation",
    "from_functions",
    "from_linen",
    "from_nnx",
    "hugging_face",
    "make_optimizer",
    "prediction",
]
