#!/bin/bash
# Builds src/runtime/blit/objects from blit.cl. The results are committed; nothing runs this.
# Needs Debian's clang-19 and lld-19. gfx950 and gfx1250 are newer than that compiler and need clang 22, for instance
# `CLANG22="python3 -m ziglang clang"` of PyPI's ziglang, with an `ld.lld` on PATH that calls `zig ld.lld`; without it their
# objects are kept as they are. It takes the OpenCL header of clang-19.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p objects
build() { # target compiler...
  local target=$1
  shift
  "$@" -x cl -cl-std=CL2.0 --target=amdgcn-amd-amdhsa -mcpu="$target" -mcode-object-version=6 \
    -nogpulib -O2 -fdebug-compilation-dir=. blit.cl -o "objects/$target.hsaco"
  llvm-strip-19 --strip-debug "objects/$target.hsaco"
  chmod 644 "objects/$target.hsaco"
}
for target in gfx9-generic gfx906 gfx908 gfx90a gfx942 gfx10-1-generic gfx10-3-generic gfx11-generic gfx12-generic; do
  build "$target" "${CLANG:-clang-19}"
done
if [ -n "${CLANG22:-}" ]; then
  for target in gfx950 gfx1250; do
    # shellcheck disable=SC2086
    build "$target" $CLANG22 -I "$(clang-19 -print-resource-dir)/include"
  done
fi
