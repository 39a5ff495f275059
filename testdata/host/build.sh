#!/bin/bash
# Builds the kernels for the host: a check of the references in tests/kernels
# that no part of rocr takes part in. Needs clang-19 and an x86-64 with FMA.
#
#   testdata/host/build.sh DIR
#   ROCR_KERNEL_RUNNER=DIR/run cargo test --release --test kernels
#
# testdata/README.md lists the few cases that differ, and why.
set -euo pipefail
out=$(realpath -m "${1:?usage: testdata/host/build.sh DIR}")
cd "$(dirname "$0")/../kernels"
mkdir -p "$out"
FLAGS="-std=c++20 -mfma -mf16c -ffp-contract=fast -fno-builtin -w -O${HOST_OPT:-1}"
# kernels_in SOURCE: its kernels, as R(name) R(name)...
kernels_in() { grep -E '^(K |kernel |void |__kernel )' "$1" | sed 's/__attribute__((\([^()]*([^()]*)\)*[^()]*))//g; s/__launch_bounds__([0-9]*)//' |
  sed -nE 's/^[^(]*void +([a-z_A-Z0-9]+)\(.*/R(\1)/p' | tr '\n' ' '; }
for source in k01_vadd.hip k02_reduce.hip k03_transpose_matmul.hip k09_dynlds.hip k10_calls.hip k12_globals.hip \
  k18_switch_diverge.hip handshake.hip handshake2.hip args.hip order.hip preload.hip; do
  name=${source%.hip}
  # A flexible LDS array is an ordinary one here.
  sed 's/#include "hipmini.h"//; s/extern __shared__/extern/' "$source" > "$out/kernels.inc"
  clang++-19 $FLAGS -rdynamic -I../host -I"$out" -DREGISTER="$(kernels_in "$source")" ../host/runner.cpp -pthread -o "$out/$name"
done
for copy in args:args_v4 order:order_native geometry:geometry_v4; do ln -sf "${copy%:*}" "$out/${copy#*:}"; done
clang++-19 $FLAGS -I../host -c ../host/opencl.cpp -o "$out/opencl.o"
for source in k23_ocl.cl bench.cl geometry.cl; do
  name=${source%.cl}
  clang-19 -x cl -cl-std=CL2.0 --target=x86_64-linux-gnu -mfma -mf16c -O1 -w -c "$source" -o "$out/$name.o"
  # C++ prototypes of the kernels: address spaces do not matter on the host.
  sed -nE 's/__attribute__\(\(([^()]*(\([^()]*\))?)*\)\)//g; /void [a-z_A-Z0-9]+\(/s/.*void +([a-z_A-Z0-9]+\([^)]*\)).*/extern "C" void \1;/p' "$source" |
    sed -E 's/\b(__global|global|constant|local|restrict|uniform)\b//g; s/\buint\b/u32/g; s/\buchar16\b/u8/g; s/\bfloat([24])\b/floatx\1/g;
      s/\bshort3\b/shortx3/g; s/\b(short8|int3|long4|half4)\b/u8/g' > "$out/kernels.inc"
  clang++-19 $FLAGS -rdynamic -I../host -I"$out" -DREGISTER="$(kernels_in "$source")" ../host/runner.cpp "$out/$name.o" "$out/opencl.o" -pthread -o "$out/$name"
done
printf '#!/bin/sh\nread -r _ name _ < "$1/case.txt"\nexec "$(dirname "$0")/$name" "$1"\n' > "$out/run"
chmod +x "$out/run"
