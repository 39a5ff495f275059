// Stands in for kernels/hipmini.h when a HIP kernel is compiled for the host:
// the work-items of a group are fibers of one thread (see runner.cpp), LDS is
// static memory, a barrier or a spinning load switches to the next fiber.
#pragma once
#define K
#define D static inline
#define NOINLINE __attribute__((noinline))
#define __global__
#define __device__
#define __constant__
#define __shared__ static
#define __launch_bounds__(n)
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef signed char i8; typedef short i16; typedef int i32; typedef long i64; typedef _Float16 f16;
typedef float floatx2 __attribute__((ext_vector_type(2))); typedef float floatx4 __attribute__((ext_vector_type(4)));
typedef short shortx3 __attribute__((ext_vector_type(3)));

struct Item { u32 local[3], group[3], size[3], grid[3]; };
extern thread_local Item item;
extern u32 wave_size;
void switch_fiber(bool barrier);

#define TX item.local[0]
#define TY item.local[1]
#define TZ item.local[2]
#define BX item.group[0]
#define BY item.group[1]
#define BZ item.group[2]
#define DX item.size[0]
#define DY item.size[1]
#define GX item.grid[0]
#define WAVE wave_size
#define __builtin_amdgcn_workgroup_size_z() item.size[2]
#define __builtin_amdgcn_s_sleep(n) switch_fiber(false)
#define __builtin_amdgcn_implicitarg_ptr() nullptr
#define __builtin_amdgcn_dispatch_ptr() nullptr

#define __HIP_MEMORY_SCOPE_WORKGROUP 0
#define __HIP_MEMORY_SCOPE_AGENT 0
#define __HIP_MEMORY_SCOPE_SYSTEM 0
template <class T> T spin_load(T *p) { switch_fiber(false); return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
template <class T> T fetch_add(T *p, T v) { T old = *p; *p += v; return old; }
#define __hip_atomic_load(p, order, scope) spin_load(p)
#define __hip_atomic_store(p, v, order, scope) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define __hip_atomic_exchange(p, v, order, scope) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
// Fibers do not preempt each other, and no case adds from two queues.
#define __hip_atomic_fetch_add(p, v, order, scope) fetch_add(p, v)

D u32 gid() { return BX * DX + TX; }
#define sync() switch_fiber(true)
D u32 lane() { return TX % WAVE; }
