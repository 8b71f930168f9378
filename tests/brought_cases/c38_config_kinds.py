# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Settings that are tuples, None, references and placeholders (ml_collections 5, yacs 21)."""

import jax
import jax.numpy as jnp
import optax
from ml_collections import ConfigDict, config_dict

from jaxbench.workloads import Field, TrainWorkload, classification, from_functions


def get_config():
    width = config_dict.FieldReference(16)
    return ConfigDict(
        {
            "model": {
                "widths": (16, 16),
                "names": ["a", "b"],
                "dropout": config_dict.placeholder(float),
                "kind": None,
                "width": width,
                "double": width * 2,
                "scale": 1.0,
                "flag": True,
                "by": {"deep": {"er": 3}},
            },
            "batch": 32,
        }
    )


def build(config):
    m = config.model
    print("SETTINGS", tuple(m.widths), list(m.names), m.dropout, m.kind, m.width, m.double, m.flag, m.by.deep.er)

    def init(key):
        return {"w": jax.random.normal(key, (16, m.double)) / 4, "v": jax.random.normal(key, (m.double, 5)) / 6}

    model = from_functions(init, lambda p, x: jax.nn.relu(x @ p["w"]) @ p["v"])
    return TrainWorkload(
        name="c38",
        init=model.init,
        loss=classification(model, inputs="x", labels="y"),
        optimizer=optax.sgd(0.1),
        example={"x": Field((16,)), "y": Field((), jnp.int32, classes=5)},
    )
