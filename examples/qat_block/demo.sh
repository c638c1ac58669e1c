#!/usr/bin/env bash
# Demo: writes the block's graph and a batch, runs the graph with `gradflow run`, prints a report,
# and writes a page of the run. Usage: demo.sh BUILD_DIR [OUTPUT_DIR]
set -euo pipefail

build=$1
out=${2:-$build/demo}
mkdir -p "$out"

"$build/examples/qat_block/qat_block" prepare "$out"

gradients=()
for branch in per_tensor per_channel; do
  for name in input scale offset min max; do
    gradients+=(--fetch "$branch/grad_$name=$out/$branch.grad_$name.npy")
  done
done
run=(run "$out/qat_block.pb" --feed "images=$out/images.npy" --feed "upstream=$out/upstream.npy")
echo "Running: gradflow run qat_block.pb --feed images=images.npy --feed upstream=upstream.npy" \
  "--fetch per_tensor/grad_input=per_tensor.grad_input.npy ..."
"$build/tools/gradflow" "${run[@]}" "${gradients[@]}" --report "$out/qat_block.html"

"$build/examples/qat_block/qat_block" report "$out"
echo "The graph and its run as a page: $out/qat_block.html"
