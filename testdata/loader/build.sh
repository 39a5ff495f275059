#!/bin/bash
# Builds the objects that README.md lists from scale.hip, extern.s and provider.s. Needs Debian's clang-19 and lld-19.
set -euo pipefail
cd "$(dirname "$0")"
hip() {
  local out=$1 cpu=$2; shift 2
  clang-19 -x hip --offload-device-only --no-gpu-bundle-output --offload-arch="$cpu" -nogpuinc -nogpulib \
    -fuse-cuid=none -O2 -fdebug-compilation-dir=. "$@" scale.hip -o "$out"
}
hip v4_gfx90a_g.hsaco gfx90a -mcode-object-version=4 -g
hip v5_gfx90a.hsaco gfx90a -mcode-object-version=5
hip v6_gfx11_generic.hsaco gfx11-generic -mcode-object-version=6
asm() {
  local out=$1 source=$2; shift 2
  clang-19 -x assembler --target=amdgcn-amd-amdhsa -mcpu=gfx90a -mcode-object-version=5 -c "$source" -o "$out.o"
  ld.lld-19 -shared --unresolved-symbols=ignore-all "$@" "$out.o" -o "$out"
}
asm extern.hsaco extern.s
asm provider.hsaco provider.s
asm relr.hsaco provider.s -z pack-relative-relocs
mv extern.hsaco.o unlinked.o
rm -f provider.hsaco.o relr.hsaco.o
