# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The measurements of `make machine`: enough for a machine profile in under three minutes."""

from ml_collections import ConfigDict

# By experiment: only the sizes at which the limits of a machine are visible.
NARROW = {
    "matmul": {
        "shapes": "square",
        "sizes": "auto:512,1024,2048,8192",
        "dtypes": "float32,bfloat16",
        "impls": "jit",
        "cores": "1,all",
    },
    "stream": {"ops": "copy,triad", "sizes": "auto:4Ki,32Ki,256Ki,2Mi,16Mi,256Mi", "impls": "jit", "cores": "1,all"},
    "transfer": {"sizes": "auto:1Ki,64Ki,4Mi,64Mi"},
    "collectives": {"sizes": "auto:1Ki,16Ki,256Ki,4Mi,32Mi,1Gi", "mesh.devices": "auto:2", "measure.block_s": 0.02},
}


def get_config(config: ConfigDict) -> ConfigDict:
    config.measure.rounds = 5
    config.measure.block_s = 0.01
    config.update_from_flattened_dict(NARROW.get(config.experiment, {}))
    return config
