// What the random programs share: the same source is compiled for amdgcn and for the host, and both must store equal bits.
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
typedef unsigned __int128 u128; typedef __int128 i128;
typedef _Float16 f16; typedef float f32; typedef double f64;
#define VEC(T, N) typedef T T##x##N __attribute__((ext_vector_type(N)));
VEC(i8, 4) VEC(u8, 4) VEC(i16, 2) VEC(u16, 2) VEC(i16, 4) VEC(u16, 4) VEC(i32, 2) VEC(u32, 2) VEC(i32, 4) VEC(u32, 4)
VEC(i64, 2) VEC(u64, 2) VEC(f16, 2) VEC(f16, 4) VEC(f32, 2) VEC(f32, 4) VEC(f64, 2)

#define LANES 100      // work-items that compute; the rest of the grid has nothing to do
#define BLOCK 64
#define IN_BYTES 4096  // read by all
#define MEM_BYTES 256  // of every work-item alone
#define LDS_BYTES 64   // of every work-item alone

#ifdef __AMDGCN__
#define GLOBAL __attribute__((address_space(1)))
#define LOCAL __attribute__((address_space(3)))
#define FUNCTION static __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
#define KERNEL __attribute__((amdgpu_kernel)) void
// a width of more than 31 is not what an instruction of scalars makes of it at -O0
#define ubfe(a, b, c) __builtin_amdgcn_ubfe(a, b, (c) & 31)
#define sbfe(a, b, c) __builtin_amdgcn_sbfe(a, b, (c) & 31)
#define perm(a, b, c) __builtin_amdgcn_perm(a, b, c)
#define alignbit(a, b, c) __builtin_amdgcn_alignbit(a, b, c)
#define alignbyte(a, b, c) __builtin_amdgcn_alignbyte(a, b, c)
#define sad_u8(a, b, c) __builtin_amdgcn_sad_u8(a, b, c)
#define lerp(a, b, c) __builtin_amdgcn_lerp(a, b, c)
#else
#define GLOBAL
#define LOCAL
#define FUNCTION static __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
INLINE u32 ubfe(u32 a, u32 from, u32 width) { from &= 31; width &= 31; return (u32)(((u64)a >> from) & ((1ull << width) - 1)); }
INLINE i32 sbfe(i32 a, u32 from, u32 width) {
  from &= 31; width &= 31;
  if (!width) return 0;
  u32 bits = (u32)(((i64)a >> from) & ((1ull << width) - 1)), top = 1u << (width - 1);
  return (i32)((bits ^ top) - top);
}
INLINE u32 perm(u32 a, u32 b, u32 select) {
  u64 bytes = (u64)a << 32 | b; u32 r = 0;
  for (int i = 0; i < 4; i++) {
    u32 s = select >> 8 * i & 255, v;
    if (s >= 13) v = 255; else if (s == 12) v = 0;
    else if (s >= 8) v = (bytes >> (16 * (s - 8) + 15) & 1) ? 255 : 0;
    else v = bytes >> 8 * s & 255;
    r |= v << 8 * i;
  }
  return r;
}
INLINE u32 alignbit(u32 a, u32 b, u32 c) { return (u32)(((u64)a << 32 | b) >> (c & 31)); }
INLINE u32 alignbyte(u32 a, u32 b, u32 c) { return (u32)(((u64)a << 32 | b) >> 8 * (c & 3)); }
INLINE u32 sad_u8(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 32; i += 8) { int d = (int)(a >> i & 255) - (int)(b >> i & 255); c += d < 0 ? -d : d; }
  return c;
}
INLINE u32 lerp(u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (int i = 0; i < 32; i += 8) r |= ((a >> i & 255) + (b >> i & 255) + (c >> i & 1)) >> 1 << i;
  return r;
}
#endif

// ---- bits of floats; every NaN is one NaN -------------------------------------------------------------------------
INLINE u16 bits_f16(f16 x) { union { f16 f; u16 u; } b = {x}; return x != x ? 0x7e00 : b.u; }
INLINE u32 bits_f32(f32 x) { union { f32 f; u32 u; } b = {x}; return x != x ? 0x7fc00000u : b.u; }
INLINE u64 bits_f64(f64 x) { union { f64 f; u64 u; } b = {x}; return x != x ? 0x7ff8000000000000ull : b.u; }
INLINE f16 of_f16(u16 x) { union { u16 u; f16 f; } b = {x}; return b.f != b.f ? (f16)0 : b.f; }
INLINE f32 of_f32(u32 x) { union { u32 u; f32 f; } b = {x}; return b.f != b.f ? 0.0f : b.f; }
INLINE f64 of_f64(u64 x) { union { u64 u; f64 f; } b = {x}; return b.f != b.f ? 0.0 : b.f; }

// ---- scalars: what the elementwise builtins make of small integers differs between compilers ----------------------------
#define ORDER(T) \
  INLINE T min_##T(T a, T b) { return a < b ? a : b; } \
  INLINE T max_##T(T a, T b) { return a > b ? a : b; }
ORDER(i8) ORDER(u8) ORDER(i16) ORDER(u16) ORDER(i32) ORDER(u32) ORDER(i64) ORDER(u64)
#define SATURATION(T, LOW, HIGH) \
  INLINE T add_sat_##T(T a, T b) { i32 r = (i32)a + b; return (T)(r < LOW ? LOW : r > HIGH ? HIGH : r); } \
  INLINE T sub_sat_##T(T a, T b) { i32 r = (i32)a - b; return (T)(r < LOW ? LOW : r > HIGH ? HIGH : r); }
SATURATION(i8, -128, 127) SATURATION(u8, 0, 255) SATURATION(i16, -32768, 32767) SATURATION(u16, 0, 65535)
#define WIDE_SATURATION(T) \
  INLINE T add_sat_##T(T a, T b) { return __builtin_elementwise_add_sat(a, b); } \
  INLINE T sub_sat_##T(T a, T b) { return __builtin_elementwise_sub_sat(a, b); }
WIDE_SATURATION(i32) WIDE_SATURATION(u32) WIDE_SATURATION(i64) WIDE_SATURATION(u64)

// ---- operations that C leaves undefined, defined ------------------------------------------------------------------
// clang 19 divides an unsigned number in 24 bits where it knows that the upper ones are equal, be they ones: it may not know
#ifdef __AMDGCN__
INLINE u64 hidden64(u64 x) { __asm__("" : "+v"(x)); return x; }
INLINE u32 hidden32(u32 x) { __asm__("" : "+v"(x)); return x; }
#else
INLINE u64 hidden64(u64 x) { return x; }
INLINE u32 hidden32(u32 x) { return x; }
#endif
#define HIDDEN(T, x) ((T)-1 < 0 || sizeof(T) < 4 ? (x) : sizeof(T) == 8 ? (T)hidden64((u64)(x)) : (T)hidden32((u32)(x)))
#define DIVISION(T) \
  INLINE T div_##T(T a, T b) { a = HIDDEN(T, a); return b == 0 ? a : (T)-1 < 0 && b == (T)-1 ? (T)(0 - a) : (T)(a / b); } \
  INLINE T rem_##T(T a, T b) { a = HIDDEN(T, a); return b == 0 ? a : (T)-1 < 0 && b == (T)-1 ? (T)0 : (T)(a % b); }
DIVISION(i8) DIVISION(u8) DIVISION(i16) DIVISION(u16) DIVISION(i32) DIVISION(u32) DIVISION(i64) DIVISION(u64)
#define TO_INT(F, T, LOW, HIGH, MIN, MAX) \
  INLINE T T##_of_##F(F x) { return x != x ? (T)0 : x <= (F)(LOW) ? (T)(MIN) : x >= (F)(HIGH) ? (T)(MAX) : (T)x; }
#define TO_INTS(F) \
  TO_INT(F, i8, -128, 127, -128, 127) TO_INT(F, u8, 0, 255, 0, 255) TO_INT(F, i16, -32768, 32767, -32768, 32767) \
  TO_INT(F, u16, 0, 65535, 0, 65535)
TO_INTS(f32) TO_INTS(f64)
TO_INT(f32, i32, -2147483648.0, 2147483648.0, (-2147483647 - 1), 2147483647)
TO_INT(f64, i32, -2147483648.0, 2147483647.0, (-2147483647 - 1), 2147483647)
TO_INT(f32, u32, 0, 4294967296.0, 0, 4294967295u)
TO_INT(f64, u32, 0, 4294967295.0, 0, 4294967295u)
TO_INT(f32, i64, -9223372036854775808.0, 9223372036854775808.0, (-9223372036854775807ll - 1), 9223372036854775807ll)
TO_INT(f64, i64, -9223372036854775808.0, 9223372036854775808.0, (-9223372036854775807ll - 1), 9223372036854775807ll)
TO_INT(f32, u64, 0, 18446744073709551616.0, 0, 18446744073709551615ull)
TO_INT(f64, u64, 0, 18446744073709551616.0, 0, 18446744073709551615ull)
INLINE i16 i16_of_f16(f16 x) { return i16_of_f32((f32)x); }
INLINE i32 i32_of_f16(f16 x) { return i32_of_f32((f32)x); }
INLINE f32 frexp_f32(f32 x, i32 *e) { *e = 0; return x != x || x - x != 0 ? x : __builtin_frexpf(x, e); }
INLINE f64 frexp_f64(f64 x, i32 *e) { *e = 0; return x != x || x - x != 0 ? x : __builtin_frexp(x, e); }
