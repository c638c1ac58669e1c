#!/usr/bin/env bash
# pkg_config.sh COMPILER LIBDIR SOURCE_DIR
#
# Builds and runs programs with the flags that pkg-config prints for the gradflow in LIBDIR: one of
# gradflow's, one written for TensorFlow, and a library of ops built as their repositories do. If the
# static library is there, also links it alone.
set -euo pipefail
compiler=$1 libdir=$2 source=$3
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
# The output of pkg-config must be split into words.
# shellcheck disable=SC2046
"$compiler" -std=c++17 "$source/examples/readme/main.cc" $(pkg-config --cflags --libs gradflow) \
  -o "$folder/program"
"$folder/program" | grep -q 'values: 0 2 3 0>'

# shellcheck disable=SC2046
"$compiler" -std=c++17 "$source/tests/compat/matmul_program.cc" \
  $(pkg-config --cflags --libs gradflow-tensorflow) -o "$folder/tensorflow_program"
"$folder/tensorflow_program"

flags=$(pkg-config --cflags --libs gradflow-tensorflow)
# shellcheck disable=SC2086
"$compiler" -std=c++17 -shared -fPIC -O2 "$source/tests/plugin/tensorflow_plugin.cc" \
  -o "$folder/zero_out.so" $flags
# The programs are next to lib or lib/TRIPLET.
program=$libdir/../bin/gradflow
[[ -x $program ]] || program=$libdir/../../bin/gradflow
"$program" ops --plugin "$folder/zero_out.so" PluginZeroOut | grep -q to_zero

# An installation with only the static library.
[[ -f $libdir/libgradflow.a ]] || exit 0
mkdir -p "$folder/static/lib"
ln -s "$libdir"/*.a "$folder/static/lib"
cp -r "$libdir/pkgconfig" "$folder/static/lib"
headers=$libdir/../include
[[ -d $headers ]] || headers=$libdir/../../include
ln -s "$(realpath "$headers")" "$folder/static/include"
export PKG_CONFIG_PATH=$folder/static/lib/pkgconfig
unset LD_LIBRARY_PATH
# shellcheck disable=SC2046
"$compiler" -std=c++17 "$source/examples/readme/main.cc" \
  $(pkg-config --static --cflags --libs gradflow) -o "$folder/static_program"
"$folder/static_program" | grep -q 'values: 0 2 3 0>'
# shellcheck disable=SC2046
"$compiler" -std=c++17 "$source/tests/compat/matmul_program.cc" \
  $(pkg-config --static --cflags --libs gradflow-tensorflow) -o "$folder/static_tensorflow_program"
"$folder/static_tensorflow_program"
