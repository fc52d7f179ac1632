#!/usr/bin/env bash
# Builds the server and lays it out below a folder: bin/srf and share/srf/models. Used by the Dockerfile and by tests.
set -euo pipefail
target=${1:?usage: deploy/install.sh FOLDER}
cd "$(dirname "$0")/.."
cargo build --release --locked --package srf-cli
mkdir -p "$target/bin" "$target/share/srf" "$target/share/doc/srf"
install -m 755 "${CARGO_TARGET_DIR:-target}/release/srf" "$target/bin/srf"
cp -r models "$target/share/srf/"
cp docs/SERVER.md README.md LICENSE-MIT LICENSE-APACHE "$target/share/doc/srf/"
