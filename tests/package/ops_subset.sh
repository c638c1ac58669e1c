#!/usr/bin/env bash
# ops_subset.sh SOURCE_DIR BUILD_DIR OUTPUT_DIR
#
# Builds a program with only the ops of MobileNet v2, and compares its results with the results of the whole
# library in BUILD_DIR: all bits must agree. Prints the size of gradflow's code in the program.
set -euo pipefail
source=$1
build=$2
out=$3
mkdir -p "$out"

"$build/benchmarks/models" --model mobilenet_v2 --batch 1 --write "$out"
model=$out/mobilenet_v2.pb
python3 - "$out/input.npy" <<'PYTHON'
import array, math, sys
shape = (1, 224, 224, 3)
values = array.array("f", (math.sin(0.37 * i) for i in range(math.prod(shape))))
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    values.tofile(file)
PYTHON

cmake -G Ninja -S "$source/tests/ops_subset" -B "$out/build" -DCMAKE_BUILD_TYPE=Release \
  -DGRADFLOW_SOURCE_DIR="$source" -DGRADFLOW_OPS_FROM="$model" >"$out/configure.log" || {
  cat "$out/configure.log"
  exit 1
}
grep "families of ops" "$out/configure.log"
ninja -C "$out/build" run_model >"$out/build.log" || {
  tail -n 40 "$out/build.log"
  exit 1
}

for option in "" --fast; do
  "$build/tools/gradflow" run "$model" --feed "input=$out/input.npy" \
    --fetch "output=$out/expected.npy" $option >/dev/null
  "$out/build/run_model" "$model" input "$out/input.npy" output "$out/actual.npy" $option
  cmp "$out/expected.npy" "$out/actual.npy"
  echo "same bits as the whole library: ${option:-default options}"
done

# The program does not contain this op.
cat >"$out/erf.pbtxt" <<'TEXT'
node { name: "input" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "output" op: "Erf" input: "input" attr { key: "T" value { type: DT_FLOAT } } }
TEXT
if message=$("$out/build/run_model" "$out/erf.pbtxt" input "$out/input.npy" output "$out/erf.npy" 2>&1); then
  echo "a graph with an op that is left out runs"
  exit 1
fi
echo "$message"
[[ $message == *"op 'Erf' is not part of this build of gradflow"*"add it to GRADFLOW_OPS"* ]]

strip -o "$out/run_model" "$out/build/run_model"
"$source/tests/package/link_map.py" "$out/build/run_model.map"
echo "the stripped program: $(stat -c %s "$out/run_model") bytes"
