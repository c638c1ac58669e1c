#!/usr/bin/env bash
# pkg_config.sh COMPILER LIBDIR SOURCE
#
# Builds and runs a program with the flags that pkg-config prints for the gradflow in LIBDIR.
set -euo pipefail
compiler=$1 libdir=$2 source=$3
export PKG_CONFIG_PATH=$libdir/pkgconfig
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
# The output of pkg-config must be split into words.
# shellcheck disable=SC2046
"$compiler" -std=c++17 $(pkg-config --cflags gradflow) "$source" $(pkg-config --libs gradflow) \
  -o "$folder/program"
LD_LIBRARY_PATH=$libdir "$folder/program" | grep -q 'values: 0 2 3 0>'
