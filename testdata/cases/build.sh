#!/bin/bash
# Builds the inputs of tests/cli/cases that only tools can make. Needs Debian's clang-19, lld-19, llvm-19,
# clang-tools-19 (clang-offload-bundler). Everything else the tests make themselves, by patching these.
set -euo pipefail
cd "$(dirname "$0")"
cl() {
  local out=$1 cpu=$2 version=$3; shift 3
  clang-19 -x cl -cl-std=CL2.0 --target=amdgcn-amd-amdhsa -mcpu="$cpu" -mcode-object-version="$version" -nogpulib \
    -O2 "$@" cases.cl -o "$out"
}
cl v4_gfx90a.hsaco gfx90a 4
cl v5_gfx90a.hsaco gfx90a 5
cl v6_gfx90a.hsaco gfx90a 6
cl v5_gfx1100.hsaco gfx1100 5
cl v6_gfx11_generic.hsaco gfx11-generic 6
cl v5_gfx90a.o gfx90a 5 -c
for cpu in gfx90a gfx1100; do
  clang-19 -x cl -cl-std=CL2.0 --target=amdgcn-amd-amdhsa -mcpu=$cpu -mcode-object-version=5 -nogpulib -O2 -g \
    -fdebug-compilation-dir=. scratch.cl -o scratch_$cpu.hsaco
done
for name in local_a local_b; do
  clang-19 -x assembler --target=amdgcn-amd-amdhsa -mcpu=gfx90a -mcode-object-version=5 -c $name.s -o $name.o
done
ld.lld-19 -r local_a.o local_b.o -o locals.o
ld.lld-19 -shared locals.o -o locals.hsaco
clang-offload-bundler-19 -type=o -bundle-align=4096 \
  -targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx90a,hipv4-amdgcn-amd-amdhsa--gfx1100 \
  -input=/dev/null -input=v5_gfx90a.hsaco -input=v5_gfx1100.hsaco -output=bundle0.bin
clang-offload-bundler-19 -type=o -bundle-align=4096 -compress \
  -targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx11-generic \
  -input=/dev/null -input=v6_gfx11_generic.hsaco -output=bundle1.bin
clang-19 --target=x86_64-unknown-linux-gnu -c fat.s -o fat.o
# -z notext and no apply-dynamic-relocs: the wrappers' pointers are 0 in the file
ld.lld-19 -shared --no-apply-dynamic-relocs fat.o -o fat.so
rm -f local_a.o local_b.o locals.o fat.o
