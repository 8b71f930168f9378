# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
# jaxbench with the locked versions of all packages, for CPUs or NVIDIA GPUs:
#
#   docker build -t jaxbench .                                   # CPU
#   docker build -t jaxbench:cuda13 --build-arg EXTRAS=cuda13 .  # NVIDIA GPUs; also cuda12
#
#   docker run --rm -v "$PWD/results:/work/results" jaxbench run cnn
#   jaxbench launch k8s --options="image=registry.example/jaxbench:cuda13 claim=runs" --devices=gpu:8 -- run gpt
FROM python:3.13-slim

# JAX's CUDA wheels bring all libraries of CUDA; the host has the driver.
ARG EXTRAS=""
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# git: `jaxbench ab --a=ref:main` measures commits.
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/jaxbench
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY jaxbench ./jaxbench
COPY experiments ./experiments
COPY configs ./configs
COPY docs/metrics ./docs/metrics
RUN PIP_CONSTRAINT=requirements.lock PIP_BUILD_CONSTRAINT=requirements.lock pip install ".${EXTRAS:+[$EXTRAS]}"
# Results go to the folder that is mounted here; a mounted folder belongs to the caller, so any user may run it.
WORKDIR /work
ENV HOME=/tmp
ENTRYPOINT ["jaxbench"]
CMD ["help"]
