#!/bin/bash
# The small tables of docs/RESULTS.md: about two hours on two cores. What was done is not done again.
#
#   xtask/tables/small.sh [DIR]        corpora, runs and tables go to DIR (default: tables)
#
# The paper's recipes run 200 epochs; here the training is short, so batches are smaller, the gradient is clipped, and
# every network has a schedule that begins high and ends low within its epochs.
set -euo pipefail

dir=${1:-tables}
srf=${SRF:-srf}
recipes=$(cd "$(dirname "$0")/../../recipes" && pwd)
short=(features.cmvn=online training.batch_frames=2500 training.clip_norm=20.0)

mkdir -p "$dir"
[ -d "$dir/b61" ] || "$srf" prepare builtin "$dir/b61" --hours 1 --fold 61
[ -d "$dir/b39" ] || "$srf" prepare builtin "$dir/b39" --hours 1

# A rate that warms up to KAPPA / sqrt(DIMENSION STEPS), falls with the root of time, and is cut at epochs A and B.
rates() { # DIMENSION STEPS KAPPA A B
    local later last
    later=$(awk "BEGIN { print $3 * 0.4 }")
    last=$(awk "BEGIN { print $3 * 0.15 }")
    echo "{warmup={dimension=$1,steps=$2,kappa=[{from_epoch=1,value=$3},{from_epoch=$4,value=$later},{from_epoch=$5,value=$last}]}}"
}

# Table 1 with the initial weights of the paper's text, and with those of the authors' code, which need half of the time.
changes=("${short[@]}" model.initialiser=fan_avg training.epochs=12 training.average_epochs=2 "training.schedule=$(rates 1 250 0.1 9 11)")
"$srf" reproduce routing --data "$dir/b61" --out "$dir/routing-text" --seeds 3 "${changes[@]}"
"$srf" reproduce distance --data "$dir/b61" --out "$dir/routing-text" --seeds 3 "${changes[@]}"
changes=("${short[@]}" training.epochs=6 training.average_epochs=2 "training.schedule=$(rates 1 250 0.1 4 6)")
"$srf" reproduce routing --data "$dir/b61" --out "$dir/routing" --rows routing-dr-1,routing-dr-2,routing-sdr-1,routing-sdr-2,routing-sdr-3 "${changes[@]}"
"$srf" reproduce depth --data "$dir/b61" --out "$dir/depth" "${changes[@]}"

# The same time for every network: 5 minutes at the speed of `srf bench train --threads 2`.
row() { # NAME EPOCHS AVERAGED DIMENSION STEPS KAPPA A B
    rows+=("$1")
    changes+=("$1:training.epochs=$2" "$1:training.average_epochs=$3" "$1:training.schedule=$(rates "$4" "$5" "$6" "$7" "$8")")
}
rows=() changes=("${short[@]}")
row srf-1l 21 2 1 250 0.1 15 19
row srf-2l 22 2 1 250 0.1 16 20
row srf-5l 15 2 1 250 0.1 11 14
row srf-7l 13 2 1 250 0.1 10 12
row tf-5l 16 2 128 250 0.5 12 14
row blstm-5l-250h 4 1 1 100 0.03 3 4
# A quarter of the paper's width: the whole would see a fifth of an epoch in that time.
row cnn-10l-maxout 3 1 1 100 0.03 2 3
changes+=('cnn-*:model.narrow_filters=16' 'cnn-*:model.wide_filters=32' 'cnn-*:model.dense_width=128')
"$srf" reproduce architectures --data "$dir/b61" --out "$dir/architectures" --rows "$(IFS=,; echo "${rows[*]}")" "${changes[@]}"
"$srf" reproduce architectures --data "$dir/b61" --out "$dir/architectures-text" --rows srf-7l "${changes[@]}" 'srf-*:model.initialiser=fan_avg'

train() { # NAME RECIPE CHANGES
    local run=$dir/family-$1 recipe=$recipes/family/$2.toml
    shift 2
    [ -d "$run/model" ] || "$srf" train "$recipe" --data "$dir/b39" --out "$run" "$@"
    "$srf" evaluate --model "$run/model" "$dir/b39/test.jsonl"
}
for name in sdr em self inverted min-max entropy learned-start; do
    train "$name" "$name"
done
train sdr-text sdr model.initialiser=fan_avg

# How often routing and softmax differ, with and without classes that are never said.
"$srf" analyze --model "$dir/family-sdr/model" "$dir/b39/test.jsonl" --pictures 0 --out "$dir/analysis-sdr"
"$srf" analyze --model "$dir/architectures/srf-7l/seed-1/model" "$dir/b61/test.jsonl" --pictures 0 --out "$dir/analysis-srf-7l"
