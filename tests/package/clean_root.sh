#!/usr/bin/env bash
# clean_root.sh FOLDER
#
# Installs the Debian packages in FOLDER into a minimal system of this machine's release, and builds
# and runs ../consumer there with the shared and with the static library. Requires root.
set -euo pipefail
packages=$(realpath "$1")
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
"$source/tests/package/debian_root.sh" "$suite" "$root"
mkdir -p "$root/gradflow/tests"
cp "$packages"/*.deb "$root/gradflow/"
cp -r "$source/examples" "$root/gradflow/"
cp -r "$source/tests/consumer" "$source/tests/compat" "$root/gradflow/tests/"

chroot "$root" env DEBIAN_FRONTEND=noninteractive bash -euo pipefail <<'INSIDE'
cd /gradflow
install() {
  apt-get install -qq -y --no-install-recommends "$@" >log 2>&1 || { tail log; exit 1; }
}
apt-get update -qq
# The library and the command line must be sufficient to run programs.
install ./libgradflow0_*.deb ./gradflow-tools_*.deb
gradflow test tests/consumer/golden
gradflow ops Relu >/dev/null
install ./libgradflow-dev_*.deb g++ cmake ninja-build protobuf-compiler libgmock-dev libeigen3-dev
for kind in shared static; do
  cmake -G Ninja -S tests/consumer -B $kind -DGRADFLOW_KIND=$kind >log || { cat log; exit 1; }
  ninja -C $kind >log || { cat log; exit 1; }
  ctest --test-dir $kind --output-on-failure --no-tests=error | tail -n 4
done
INSIDE
