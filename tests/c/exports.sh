#!/bin/sh
# exports.sh NM LIBRARY HEADERS: the library exports the functions that the headers declare, and nothing else.
set -eu
nm=$1 library=$2 headers=$3
exported=$("$nm" -D --defined-only -C "$library" | sed 's/^[0-9a-f]* . //; s/(.*//; s/.*:://' | sort -u)
# A library of kernels defines TF_InitKernel.
declared=$(cat $(find "$headers" -name '*.h' ! -name c_api_macros.h) | sed 's|//.*||' | tr '\n' ' ' |
  grep -o 'TF_CAPI_EXPORT[^(;]*(' | sed 's/($//; s/.*[ *]//' | grep -v '^TF_InitKernel$' | sort -u)
if [ "$exported" != "$declared" ]; then
  echo "exported (left) and declared (right) functions differ:"
  echo "$exported" > "${TMPDIR:-/tmp}/exported.$$"
  echo "$declared" | diff "${TMPDIR:-/tmp}/exported.$$" - || true
  rm -f "${TMPDIR:-/tmp}/exported.$$"
  exit 1
fi
echo "$(echo "$declared" | wc -l) functions"
