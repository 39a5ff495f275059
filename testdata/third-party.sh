#!/bin/bash
# Decodes every instruction of the public packages that hold device code: about 125 million.
#
#   testdata/third-party.sh DIR
#
# Needs pip, python3, apt-get and dpkg-deb; 450 MB of downloads, 3 GB unpacked in DIR, minutes. What cannot be fetched is
# skipped by name. Nothing of it is committed.
set -u
root=$(realpath "$(dirname "$0")/..")
mkdir -p "$1" && cd "$1" || exit 1
dir=$PWD

wheel() {
  local name=${1%%==*} folder=${1//==/-}
  [ -d "$folder" ] && return
  pip download -q --no-deps -d "wheels-$folder" --only-binary :all: --python-version 3.13 "${@:2}" "$1" \
    && mkdir -p "$folder" && python3 -m zipfile -e "wheels-$folder"/"${name//-/_}"-*.whl "$folder" \
    || echo "skipped  $1"
  rm -rf "wheels-$folder"
}
debian() {
  [ -d "$1" ] && return
  apt-get download -q "$1" >/dev/null 2>&1 && mkdir -p "$1" && dpkg-deb -x "$1"_*.deb "$1" || echo "skipped  $1"
  rm -f "$1"_*.deb
}

wheel bitsandbytes==0.50.2
wheel cupy-rocm-7-0==14.2.0
wheel cyllama-rocm==0.2.18
wheel jax-rocm7-plugin==0.10.2
wheel jax-rocm10-plugin==0.12.0
wheel jax-rocm60-plugin==0.5.0 --python-version 3.12
wheel gafime-rocm==0.4.7
wheel amd-aiter==0.1.7.post2.dev18
wheel mojolearn-amd==0.8.62
wheel hip-quant==0.4.3 --platform win_amd64
wheel hipengine==0.8.3 --platform manylinux_2_39_x86_64
debian librocrand1
debian librocsparse0

# AOTriton's archives: 16 bytes, then one xz stream
python3 - <<'P'
import lzma, pathlib
for path in pathlib.Path(".").rglob("*.aks2"):
    unpacked = path.with_suffix(".unpacked")
    if not unpacked.exists():
        unpacked.write_bytes(lzma.decompress(path.read_bytes()[16:]))
P

cd "$root" && ROCR_THIRD_PARTY=$dir cargo test --release --test isa_third_party -- --nocapture
