// The OpenCL functions that the kernels use, for the host build of runner.cpp.
#include <cmath>
#include "hipmini_host.h"
#define V(T, n) T __attribute__((ext_vector_type(n)))
using ucharx16 = V(unsigned char, 16); using shortx8 = V(short, 8); using intx3 = V(int, 3);
using longx4 = V(long, 4);
static u32 actual(u32 d) { u32 rest = item.grid[d] - item.group[d] * item.size[d]; return rest < item.size[d] ? rest : item.size[d]; }
u64 get_global_id(u32 d) { return item.group[d] * item.size[d] + item.local[d]; }
u64 get_global_offset(u32) { return 0; }
u64 get_global_size(u32 d) { return item.grid[d]; }
u64 get_local_id(u32 d) { return item.local[d]; }
u64 get_group_id(u32 d) { return item.group[d]; }
u64 get_local_size(u32 d) { return actual(d); }
u64 get_enqueued_local_size(u32 d) { return item.size[d]; }
u64 get_num_groups(u32 d) { return (item.grid[d] + item.size[d] - 1) / item.size[d]; }
u32 get_work_dim() { return item.grid[2] > 1 ? 3 : item.grid[1] > 1 ? 2 : 1; }
u64 get_local_linear_id() { return (item.local[2] * actual(1) + item.local[1]) * actual(0) + item.local[0]; }
u64 get_global_linear_id() { return (get_global_id(2) * item.grid[1] + get_global_id(1)) * item.grid[0] + get_global_id(0); }
void barrier(u32) { switch_fiber(true); }
float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
floatx2 fma(floatx2 a, floatx2 b, floatx2 c) { return {__builtin_fmaf(a.x, b.x, c.x), __builtin_fmaf(a.y, b.y, c.y)}; }
namespace wide {
// <cmath> has these as C functions: the mangled names are OpenCL's.
double exp(double) asm("_Z3expd");
double sin(double) asm("_Z3sind");
double exp(double a) { return ::exp(a); }
double sin(double a) { return ::sin(a); }
}
float pow(float a, float b) { return powf(a, b); }
float native_sin(float a) { return sinf(a); }
float half_exp(float a) { return expf(a); }
int mad24(int a, int b, int c) { return a * b + c; }
float length(floatx2 v) { return sqrtf(v.x * v.x + v.y * v.y); }
ucharx16 add_sat(ucharx16 a, ucharx16 b) { return __builtin_elementwise_add_sat(a, b); }
shortx8 rhadd(shortx8 a, shortx8 b) { shortx8 r; for (int i = 0; i < 8; i++) r[i] = (a[i] + b[i] + 1) >> 1; return r; }
intx3 clamp(intx3 v, int low, int high) { for (int i = 0; i < 3; i++) v[i] = v[i] < low ? low : v[i] > high ? high : v[i]; return v; }
longx4 mul_hi(longx4 a, longx4 b) { longx4 r; for (int i = 0; i < 4; i++) r[i] = ((__int128)a[i] * b[i]) >> 64; return r; }
