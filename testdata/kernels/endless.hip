// Kernels that never end by themselves.
#include "hipmini.h"

K void endless(u32 *out) {
  u32 i = gid();
  for (;;) {
    i = i * 5 + 1;
    asm volatile("" : "+v"(i));
  }
  out[gid()] = i;
}

K void endless_sleep(u32 *out) {
  for (;;) {
    __builtin_amdgcn_s_sleep(8);
    asm volatile("");
  }
  out[gid()] = 1;
}

// Waits for a flag that nobody sets.
K void endless_flag(u32 *flag, u32 *out) {
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0) {
  }
  out[gid()] = 1;
}

// One lane loops; the others wait for it at the end of the branch.
K void endless_lane(u32 *flag, u32 *out, u32 culprit) {
  if (TX == culprit) {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0) {
    }
  }
  out[gid()] = 1;
}

// The first wave loops; the other waves of the group stand at the barrier.
K void endless_barrier(u32 *flag, u32 *out) {
  if (TX < WAVE) {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0) {
    }
  }
  sync();
  out[gid()] = 1;
}
