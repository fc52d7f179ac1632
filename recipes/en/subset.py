#!/usr/bin/env python3
"""Copies a prepared corpus with only every Nth training utterance: recipes/en/subset.py data/cv data/cv-half 2"""

import pathlib
import shutil
import sys

source, target, every = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
shutil.copytree(source, target)
lines = (source / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
(target / "train.jsonl").write_text("".join(lines[::every]), encoding="utf-8")
