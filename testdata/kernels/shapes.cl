// Kernels in the shapes of real loads, for benches/execution.rs: reductions, scans, gathers, atomics, matrix instructions.
// Written for the compiler's builtins alone (-nogpulib).
#define WG ((int)__builtin_amdgcn_workgroup_id_x())
#define WGY ((int)__builtin_amdgcn_workgroup_id_y())
#define TI ((int)__builtin_amdgcn_workitem_id_x())
#define BARRIER() do { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); } while (0)
#define KERNEL __kernel __attribute__((reqd_work_group_size(256, 1, 1)))

// out[g] = sum of 4096 numbers
KERNEL void reduce(__global const float* in, __global float* out) {
  __local float part[256];
  float sum = 0;
  for (int k = 0; k < 16; k++) sum += in[WG * 4096 + k * 256 + TI];
  part[TI] = sum;
  for (int step = 128; step > 0; step >>= 1) {
    BARRIER();
    if (TI < step) part[TI] += part[TI + step];
  }
  if (TI == 0) out[WG] = part[0];
}

// inclusive sums within each 256
KERNEL void scan(__global const uint* in, __global uint* out) {
  __local uint part[256];
  uint own = in[WG * 256 + TI];
  part[TI] = own;
  for (int step = 1; step < 256; step <<= 1) {
    BARRIER();
    uint other = TI >= step ? part[TI - step] : 0;
    BARRIER();
    own += other;
    part[TI] = own;
  }
  out[WG * 256 + TI] = own;
}

// 32 by 32 tiles of an n by n matrix through LDS
KERNEL void transpose(__global const uint* in, __global uint* out, int n) {
  __local uint tile[32][33];
  int x = TI & 31, y = TI >> 5;
  for (int k = 0; k < 32; k += 8) tile[y + k][x] = in[(WGY * 32 + y + k) * n + WG * 32 + x];
  BARRIER();
  for (int k = 0; k < 32; k += 8) out[(WG * 32 + y + k) * n + WGY * 32 + x] = tile[x][y + k];
}

KERNEL void gather(__global const uint* table, __global const uint* index, __global uint* out) {
  int i = WG * 256 + TI;
  out[i] = table[index[i]];
}

// every work-item adds to one of 16 counters
KERNEL void contend(__global const uint* in, __global uint* counters) {
  uint value = in[WG * 256 + TI];
  __atomic_fetch_add(counters + (value & 15), value >> 4, __ATOMIC_RELAXED);
}

// a row of 4096
KERNEL void softmax(__global const float* in, __global float* out) {
  __local float part[256];
  float x[16], most = -3.4e38f, sum = 0;
  for (int k = 0; k < 16; k++) {
    x[k] = in[WG * 4096 + k * 256 + TI];
    most = __builtin_fmaxf(most, x[k]);
  }
  part[TI] = most;
  for (int step = 128; step > 0; step >>= 1) {
    BARRIER();
    if (TI < step) part[TI] = __builtin_fmaxf(part[TI], part[TI + step]);
  }
  BARRIER();
  most = part[0];
  BARRIER();
  for (int k = 0; k < 16; k++) {
    x[k] = __builtin_amdgcn_exp2f((x[k] - most) * 1.44269504f);
    sum += x[k];
  }
  part[TI] = sum;
  for (int step = 128; step > 0; step >>= 1) {
    BARRIER();
    if (TI < step) part[TI] += part[TI + step];
  }
  BARRIER();
  float scale = 1.0f / part[0];
  for (int k = 0; k < 16; k++) out[WG * 4096 + k * 256 + TI] = x[k] * scale;
}

// a private array that registers cannot hold
KERNEL void spill(__global const uint* in, __global uint* out) {
  uint a[128];
  int i = WG * 256 + TI;
  uint seed = in[i];
  for (int k = 0; k < 128; k++) a[k] = seed * (uint)(k + 1);
  uint sum = 0;
  for (int k = 0; k < 128; k++) {
    sum = sum * 31 + a[(sum >> 7 ^ (uint)k) & 127];
    a[sum & 127] += (uint)k;
  }
  out[i] = sum;
}

// steps of Collatz's sequence: lanes leave one after the other
KERNEL void diverge(__global const uint* in, __global uint* out) {
  int i = WG * 256 + TI;
  uint n = in[i], steps = 0;
  while (n > 1 && steps < 1000) {
    n = n & 1 ? 3 * n + 1 : n >> 1;
    steps++;
  }
  out[i] = steps;
}

// integer mixing, 512 rounds
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void mix(__global uint* out) {
  uint h = WG * 64 + TI;
  for (uint k = 0; k < 512; k++) {
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h += k;
  }
  out[WG * 64 + TI] = h;
}

// one wave: volatile load, arithmetic, volatile store, 256 times
#ifdef __GFX9__
#define WAVE 64
#else
#define WAVE 32
#endif
__kernel __attribute__((reqd_work_group_size(WAVE, 1, 1))) void valu_memory(__global volatile uint* data) {
  __global volatile uint* own = data + WG * WAVE + TI;
  for (int k = 0; k < 256; k++) {
    uint v = *own;
    v = (v << 5 | v >> 27) + (uint)k;
    v ^= v >> 7;
    *own = v * 3;
  }
}

typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f8 __attribute__((ext_vector_type(8)));
typedef int i8v __attribute__((ext_vector_type(8)));
typedef half h8 __attribute__((ext_vector_type(8)));
typedef half h16 __attribute__((ext_vector_type(16)));

// c = a * b of float8: a is m by k, b is n by k (both rows of k), a workgroup a tile of 64 by 64, a wave 32 by 32 of it
#if defined(__gfx942__) || defined(__gfx950__)
KERNEL void gemm_fp8(__global const uchar* restrict a, __global const uchar* restrict b, __global float* restrict c, int n,
                     int k) {
  int wave = TI >> 6, lane = TI & 63, low = lane & 15, high = lane >> 4;
  int row = WGY * 64 + (wave >> 1) * 32, column = WG * 64 + (wave & 1) * 32;
  f4 sum[2][2] = {};
  for (int at = 0; at < k; at +=
#ifdef __gfx950__
       128) {
    i8v x[2], y[2];
    for (int i = 0; i < 2; i++) {
      x[i] = *(__global const i8v*)(a + (row + 16 * i + low) * k + at + 32 * high);
      y[i] = *(__global const i8v*)(b + (column + 16 * i + low) * k + at + 32 * high);
    }
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++)
        sum[i][j] = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x[i], y[j], sum[i][j], 0, 0, 0, 127, 0, 127);
#else
       32) {
    long x[2], y[2];
    for (int i = 0; i < 2; i++) {
      x[i] = *(__global const long*)(a + (row + 16 * i + low) * k + at + 8 * high);
      y[i] = *(__global const long*)(b + (column + 16 * i + low) * k + at + 8 * high);
    }
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++) sum[i][j] = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x[i], y[j], sum[i][j], 0, 0, 0);
#endif
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int r = 0; r < 4; r++) c[(row + 16 * i + 4 * high + r) * n + column + 16 * j + low] = sum[i][j][r];
}
#endif

// one wave: 128 times four independent products of 16 by 16 by 16 in f16, summed in f32
#if defined(__gfx1100__) || defined(__gfx1201__)
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void wmma_chains(__global const half* in, __global float* out) {
#ifdef __gfx1100__
  h16 a = *(__global const h16*)(in + 16 * (TI & 15)), b = *(__global const h16*)(in + 256 + 16 * (TI & 15));
#define WMMA(s) __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, s)
#else
  h8 a = *(__global const h8*)(in + 16 * (TI & 15) + 8 * (TI >> 4)),
     b = *(__global const h8*)(in + 256 + 16 * (TI & 15) + 8 * (TI >> 4));
#define WMMA(s) __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, s)
#endif
  f8 s0 = 0, s1 = 1, s2 = 2, s3 = 3;
  for (int k = 0; k < 128; k++) {
    s0 = WMMA(s0);
    s1 = WMMA(s1);
    s2 = WMMA(s2);
    s3 = WMMA(s3);
  }
  *(__global f8*)(out + (WG * 32 + TI) * 8) = s0 + s1 + s2 + s3;
}
#endif
