// What programs of csmith need, freestanding: arithmetic that is always defined, and the checksum of their globals.
#include "random.h"
typedef i8 int8_t; typedef u8 uint8_t; typedef i16 int16_t; typedef u16 uint16_t;
typedef i32 int32_t; typedef u32 uint32_t; typedef long int64_t; typedef unsigned long uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807l - 1)
#define INT64_MAX 9223372036854775807l
#define UINT64_MAX 18446744073709551615ul

// Signed arithmetic wraps (-fwrapv); divisions and shifts that C leaves undefined give their left operand.
#define SAFE(T, S, BITS) \
  INLINE T safe_unary_minus_func_##T##_##S(T a) { return (T)(0 - a); } \
  INLINE T safe_add_func_##T##_##S##_##S(T a, T b) { return (T)(a + b); } \
  INLINE T safe_sub_func_##T##_##S##_##S(T a, T b) { return (T)(a - b); } \
  INLINE T safe_mul_func_##T##_##S##_##S(T a, T b) { return (T)((uint64_t)a * (uint64_t)b); } \
  INLINE T safe_div_func_##T##_##S##_##S(T a, T b) { return b == 0 || ((T)-1 < 0 && b == (T)-1) ? a : (T)(HIDDEN(T, a) / b); } \
  INLINE T safe_mod_func_##T##_##S##_##S(T a, T b) { return b == 0 || ((T)-1 < 0 && b == (T)-1) ? a : (T)(HIDDEN(T, a) % b); } \
  INLINE T safe_lshift_func_##T##_##S##_s(T a, int n) { return a < 0 || n < 0 || n >= BITS ? a : (T)(a << n); } \
  INLINE T safe_lshift_func_##T##_##S##_u(T a, unsigned n) { return a < 0 || n >= BITS ? a : (T)(a << n); } \
  INLINE T safe_rshift_func_##T##_##S##_s(T a, int n) { return a < 0 || n < 0 || n >= BITS ? a : (T)(a >> n); } \
  INLINE T safe_rshift_func_##T##_##S##_u(T a, unsigned n) { return a < 0 || n >= BITS ? a : (T)(a >> n); }
SAFE(int8_t, s, 8) SAFE(uint8_t, u, 8) SAFE(int16_t, s, 16) SAFE(uint16_t, u, 16)
SAFE(int32_t, s, 32) SAFE(uint32_t, u, 32) SAFE(int64_t, s, 64) SAFE(uint64_t, u, 64)
#define SAFE_FLOAT(T) \
  INLINE T safe_add_func_##T##_f_f(T a, T b) { return a + b; } \
  INLINE T safe_sub_func_##T##_f_f(T a, T b) { return a - b; } \
  INLINE T safe_mul_func_##T##_f_f(T a, T b) { return a * b; } \
  INLINE T safe_div_func_##T##_f_f(T a, T b) { return a / b; }
SAFE_FLOAT(float) SAFE_FLOAT(double)
INLINE int32_t safe_convert_func_float_to_int32_t(float a) { return i32_of_f32(a); }

// A checksum that sees every byte's value and place.
static u32 checksum;
static void add_to_checksum(u64 value) {
  for (int i = 0; i < 8; i++) checksum = (checksum ^ (u32)(value >> 8 * i & 255)) * 16777619u;
}
#define transparent_crc(value, name, flag) add_to_checksum((u64)(value))
#define transparent_crc_bytes(p, size, name, flag) add_float_to_checksum((const u8 *)(p), size)
INLINE void add_float_to_checksum(const u8 *p, int size) {
  u64 bits = 0;
  for (int i = 0; i < size; i++) bits |= (u64)p[i] << 8 * i;
  if (size == 4 && (bits & 0x7fffffff) > 0x7f800000) bits = 0;
  if (size == 8 && (bits & 0x7fffffffffffffff) > 0x7ff0000000000000) bits = 0;
  add_to_checksum(bits);
}
#define platform_main_begin() checksum = 2166136261u
#define crc32_gentab()
#define crc32_context checksum
#define platform_main_end(value, flag) ((void)(value))
#define printf(...) 0
#define main csmith_main
static int csmith_main(void);
