#!/usr/bin/env bash
# debian_root.sh SUITE ROOT [PACKAGE]...
#
# Makes a minimal system of a Debian suite in the folder ROOT, with these packages. Keeps the folder
# if it has been made with the same arguments. Takes the mirror and the settings for downloads from
# apt on this machine. Requires root and debootstrap.
set -euo pipefail
suite=$1
root=$(realpath -m "$2")
shift 2

# debootstrap mounts file systems in the folder. In a separate namespace, they disappear when this
# script ends, even if it is killed.
if [[ -z ${GRADFLOW_OWN_MOUNTS-} ]]; then
  export GRADFLOW_OWN_MOUNTS=1
  exec unshare --mount --propagation private "${BASH_SOURCE[0]}" "$suite" "$root" "$@"
fi

wanted=$(printf '%s\n' "$suite" "$@")
made=$root/etc/gradflow_packages
if [[ -f $made && $(<"$made") == "$wanted" ]]; then exit 0; fi

# The address of the Debian archive that apt uses on this machine, or of any archive if none has
# that label.
mirror=$(apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
  awk -F'|' 'NR == 1 || $1 == "Debian" && !found { uri = $2; found = $1 == "Debian" } END { print uri }')
[[ -n $mirror ]] || {
  echo "debian_root.sh: apt has no archive of packages on this machine" >&2
  exit 1
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
  "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    exit 1
  }
}

rm -rf --one-file-system "$root"
mkdir -p "$root"
chmod 755 "$root"
run debootstrap --variant=minbase "$suite" "$root" "$mirror"
apt-config dump | grep -E '^Acquire::(https?::|Check-|Retries )' >"$root/etc/apt/apt.conf.d/00machine" || true
run chroot "$root" apt-get -qq update
if (($#)); then
  run chroot "$root" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends "$@"
fi
echo "$wanted" >"$made"
