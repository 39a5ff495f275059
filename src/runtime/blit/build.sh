#!/bin/bash
# Builds src/runtime/blit/objects from blit.cl. The results are committed; nothing runs this.
# Needs Debian's clang-19 and lld-19. gfx950 and gfx1250 are newer than that compiler.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p objects
for target in gfx9-generic gfx906 gfx908 gfx90a gfx942 gfx10-1-generic gfx10-3-generic gfx11-generic gfx12-generic; do
  ${CLANG:-clang-19} -x cl -cl-std=CL2.0 --target=amdgcn-amd-amdhsa -mcpu="$target" -mcode-object-version=6 \
    -nogpulib -O2 -fdebug-compilation-dir=. blit.cl -o "objects/$target.hsaco"
  llvm-strip-19 --strip-debug "objects/$target.hsaco"
  chmod 644 "objects/$target.hsaco"
done
