#!/bin/bash
# Builds every fixture under testdata/objects, quickstart and bad from kernels/.
# The results are committed: neither CI nor a test runs this.
#
# Needs Debian's clang-19, lld-19, llvm-19 and rocm-device-libs, nothing else.
# Usage: testdata/build.sh            rebuild all
#        BITCODE=DIR testdata/build.sh   where the adapted device libraries go
#
# Objects come out the same on every machine: paths are relative and no
# compilation-unit ID is used.
set -euo pipefail
cd "$(dirname "$0")"
CLANG=${CLANG:-clang-19}
# gfx950 and gfx1250 need clang 22, for instance `CLANG22="python3 -m ziglang clang"` of PyPI's ziglang, with an `lld` on PATH
# that calls `zig ld.lld`; without it their objects are kept as they are.
CLANG22=${CLANG22:-}
DEVICE_LIBS=${DEVICE_LIBS:-/usr/lib/x86_64-linux-gnu/amdgcn/bitcode}
own_bitcode=
if [ -z "${BITCODE:-}" ]; then
  BITCODE=$(mktemp -d); own_bitcode=$BITCODE
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" ${own_bitcode:+"$own_bitcode"}' EXIT

# Debian's device libraries (5.2.3) end before gfx942, gfx1100 and gfx1201: their ISA
# version constant is derived from gfx90a's.
adapt_device_libs() {
  mkdir -p "$BITCODE"
  cp -n "$DEVICE_LIBS"/*.bc "$BITCODE"/
  # opencl.bc has a body of printf, which keeps clang from lowering calls to it.
  if [ ! -e "$BITCODE/.printf_removed" ]; then
    llvm-extract-19 --delete --func=printf "$DEVICE_LIBS/opencl.bc" -o "$BITCODE/opencl.bc"
    touch "$BITCODE/.printf_removed"
  fi
  local isa
  for isa in 942:9402 950:9500 1100:11000 1201:12001 1250:12500; do
    [ -e "$BITCODE/oclc_isa_version_${isa%:*}.bc" ] && continue
    llvm-dis-19 -o - "$DEVICE_LIBS/oclc_isa_version_90a.bc" |
      sed "s/@__oclc_ISA_version = \(.*\) i32 9010/@__oclc_ISA_version = \1 i32 ${isa#*:}/" |
      llvm-as-19 -o "$BITCODE/oclc_isa_version_${isa%:*}.bc"
  done
}

# build OUTPUT SOURCE TARGET FLAGS...
# TARGET is a processor, or a processor and "-w64".
build() {
  local out=$1 source=$2 target=$3; shift 3
  local cpu=${target%-w64} wave=
  case $cpu in
    gfx950 | gfx1250) local CLANG=$CLANG22
      # newer drivers do not link the denormal mode, and zig has no OpenCL header
      set -- "$@" -Xclang -mlink-builtin-bitcode -Xclang "$BITCODE/oclc_daz_opt_off.bc"
      [[ $source == *.cl ]] && set -- "$@" -isystem /usr/lib/llvm-19/lib/clang/19/include ;;
  esac
  [ "$target" = "$cpu" ] || wave=-mwavefrontsize64
  mkdir -p "$(dirname "$out")"
  case $source in
    *.hip) $CLANG -x hip --offload-device-only --no-gpu-bundle-output --offload-arch="$cpu" \
        -nogpuinc -fuse-cuid=none -std=c++17 -Wall -Wno-unused -Wno-missing-braces $wave \
        --rocm-device-lib-path="$BITCODE" -fdebug-compilation-dir=. "$@" "$source" -o "$out" ;;
    *.cl) $CLANG -x cl --target=amdgcn-amd-amdhsa -mcpu="$cpu" $wave \
        --rocm-device-lib-path="$BITCODE" -fdebug-compilation-dir=. "$@" "$source" -o "$out" ;;
    *.s) local family lanes=64
      case $cpu in gfx90a) family=GFX90A ;; gfx942) family=GFX942 ;; *) family=GFX11 ;; esac
      [ "$target" = gfx1100 ] && lanes=32
      $CLANG -E -P -x assembler-with-cpp "-D$family" "-DWAVE=$lanes" "$source" -o "$scratch/asm.s"
      $CLANG -x assembler --target=amdgcn-amd-amdhsa -mcpu="$cpu" $wave "$@" "$scratch/asm.s" -o "$out" ;;
  esac
}

# build_levels KERNEL SOURCE TARGET LEVELS FLAGS...
# -O3 is kept only where it differs from -O2.
build_levels() {
  local name=$1 source=$2 target=$3 levels=$4 level; shift 4
  for level in $levels; do
    build "objects/$target/$level/$name.hsaco" "$source" "$target" "-$level" "$@"
  done
  if [[ $levels == *O3* ]] && cmp -s "objects/$target/O2/$name.hsaco" "objects/$target/O3/$name.hsaco"; then
    rm "objects/$target/O3/$name.hsaco"
  fi
}

build_target() {
  local target=$1 kernel v4=-mcode-object-version=4 v5=-mcode-object-version=5
  # The whole-kernel oracle.
  for kernel in k01_vadd k02_reduce k03_transpose_matmul k09_dynlds k10_calls k12_globals k18_switch_diverge; do
    build_levels "$kernel" "kernels/$kernel.hip" "$target" "O0 O2 O3" $v5
  done
  build_levels k23_ocl kernels/k23_ocl.cl "$target" "O0 O2 O3" $v5 -cl-std=CL1.2
  # As the peers' figures were taken, without the device libraries. -O0 needs
  # them, because fma becomes an instruction only in an optimisation pass.
  build_levels bench kernels/bench.cl "$target" "O2 O3" $v5 -cl-std=CL2.0 -nogpulib
  build_levels bench kernels/bench.cl "$target" "O0" $v5 -cl-std=CL2.0
  # Behaviour of the device and the runtime.
  for kernel in handshake handshake2 args order; do
    build_levels "$kernel" "kernels/$kernel.hip" "$target" "O0 O2" $v5
  done
  build_levels order_native kernels/order.hip "$target" O2 $v5 -munsafe-fp-atomics
  build_levels args_v4 kernels/args.hip "$target" "O0 O2" $v4 -DIMPLICIT_DWORDS=14
  build_levels geometry kernels/geometry.cl "$target" "O0 O2" $v5 -cl-std=CL2.0
  build_levels geometry_v4 kernels/geometry.cl "$target" O2 $v4 -cl-std=CL2.0
  for kernel in oob endless trap; do
    build_levels "$kernel" "kernels/$kernel.hip" "$target" O2 $v5
  done
  build_levels oob_g kernels/oob.hip "$target" "O0 O2" $v5 -g -gdwarf-5
  # Device output. -O0 has hostcall as well; OpenCL's lowering of printf is an optimisation.
  build_levels k08_printf kernels/k08_printf.hip "$target" "O0 O2" $v5
  build_levels printf_buffered kernels/printf_buffered.hip "$target" "O0 O2" $v5 -mprintf-kind=buffered
  build_levels k24_oclprintf kernels/k24_oclprintf.cl "$target" O2 $v5 -cl-std=CL1.2 -DCOV=5
  build_levels k24_oclprintf_v4 kernels/k24_oclprintf.cl "$target" O2 $v4 -cl-std=CL1.2 -DCOV=4
  build "objects/$target/unsupported.hsaco" kernels/unsupported.s "$target" $v5
  case $target in
    gfx942 | gfx1100) build "objects/$target/classes.hsaco" kernels/classes.s "$target" $v5 ;;
    gfx90a) build "objects/$target/O2/beginning.hsaco" kernels/beginning.s "$target" $v5 ;;
  esac
  case $target in
    gfx90a | gfx942)
      build_levels preload kernels/preload.hip "$target" O2 $v5 -mllvm -amdgpu-kernarg-preload-count=8 ;;
  esac
}

# The kernels alone, for families that stand beside the four above.
build_kernels() {
  local target=$1 kernel v5=-mcode-object-version=5
  for kernel in k01_vadd k02_reduce k03_transpose_matmul k09_dynlds k10_calls k12_globals k18_switch_diverge; do
    build_levels "$kernel" "kernels/$kernel.hip" "$target" "O0 O2" $v5
  done
  build_levels k23_ocl kernels/k23_ocl.cl "$target" "O0 O2" $v5 -cl-std=CL1.2
  build_levels bench kernels/bench.cl "$target" "O2" $v5 -cl-std=CL2.0 -nogpulib
  for kernel in handshake handshake2; do
    build_levels "$kernel" "kernels/$kernel.hip" "$target" "O2" $v5
  done
}

# Shapes of real loads, for benches/execution.rs.
build_shapes() {
  build_levels shapes kernels/shapes.cl "$1" O2 -mcode-object-version=5 -cl-std=CL2.0 -nogpulib -w
}

# The Rust compiler's own target, without any library.
build_rust() {
  local target
  for target in gfx900 gfx90a gfx942 gfx950 gfx1010 gfx1030 gfx1100 gfx1201 gfx1250; do
    mkdir -p "objects/$target/O2"
    RUSTC_BOOTSTRAP=1 ${RUSTC:-rustc} --target amdgcn-amd-amdhsa -C target-cpu=$target -C opt-level=2 --crate-type cdylib \
      -C strip=none kernels/k28_rust.rs -o "objects/$target/O2/k28_rust.hsaco"
  done
}

adapt_device_libs
if [ -n "$CLANG22" ]; then
  rm -rf objects quickstart bad
  for target in gfx950 gfx1250; do build_kernels "$target"; done
  build_shapes gfx950
else
  find objects -mindepth 1 -maxdepth 1 ! -name gfx950 ! -name gfx1250 -exec rm -rf {} +
  rm -rf quickstart bad
fi
for target in ${MORE_TARGETS:-gfx900 gfx1010 gfx1030 gfx1030-w64 gfx1201 gfx1201-w64}; do
  build_kernels "$target"
done
for target in ${TARGETS:-gfx90a gfx942 gfx1100 gfx1100-w64}; do
  build_target "$target"
done
for target in gfx942 gfx1100 gfx1201; do build_shapes "$target"; done
build_rust

build quickstart/vadd.hsaco kernels/vadd.cl gfx90a -cl-std=CL2.0 -O2 -g -gdwarf-5 \
  -cl-kernel-arg-info -mcode-object-version=5

# Files that must be refused.
mkdir -p bad
printf 'This is not a code object.\n' > bad/text.hsaco
printf '.globl _start\n_start: mov $60, %%eax\nxor %%edi, %%edi\nsyscall\n' > "$scratch/x86.s"
$CLANG --target=x86_64-linux-gnu -c "$scratch/x86.s" -o "$scratch/x86.o"
ld.lld-19 -s -z noseparate-code "$scratch/x86.o" -o bad/x86_64.elf
head -c 3000 objects/gfx90a/O2/k01_vadd.hsaco > bad/truncated.hsaco
build bad/gfx1201.hsaco kernels/vadd.cl gfx1201 -cl-std=CL1.2 -O2 -mcode-object-version=5
find objects quickstart bad -type f -exec chmod 644 {} +
