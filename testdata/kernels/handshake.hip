// Spin-waits between workgroups, waves and queues: they end only if the
// device makes progress on a workgroup or wave that another one waits for.
#include "hipmini.h"

#define LOAD(p) __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)
#define STORE(p, v) __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT)

// The chain's next link: never zero, so that zero means "not yet set".
D u32 link(u32 previous, u32 group) {
  return (previous * 1664525u + 1013904223u + group) | 1u;
}

// Workgroup N waits for flag N-1 and sets flag N. `data` is written without
// atomics before the release, so it shows whether acquire and release order it.
K void handshake(u32 *flags, u32 *data, u32 seed) {
  u32 group = BX;
  if (TX == 0) {
    u32 previous = seed, sum = 0;
    if (group) {
      while ((previous = LOAD(&flags[group - 1])) == 0) {
      }
      sum = data[group - 1];
    }
    data[group] = sum + (previous ^ group);
    STORE(&flags[group], link(previous, group));
  }
}

// The same with s_sleep in the loop and volatile accesses of system memory.
K void handshake_sleep(volatile u32 *flags, u32 seed) {
  u32 group = BX;
  if (TX == 0) {
    u32 previous = seed;
    if (group) {
      while ((previous = flags[group - 1]) == 0)
        __builtin_amdgcn_s_sleep(2);
    }
    flags[group] = link(previous, group);
  }
}

// Inside one workgroup wave N waits for wave N+1, against the order of start.
K void __launch_bounds__(1024) handshake_waves(u32 *out, u32 seed) {
  __shared__ u32 flags[64];
  u32 wave = TX / WAVE, waves = DX / WAVE;
  if (TX < 64)
    flags[TX] = 0;
  sync();
  if (lane() == 0) {
    u32 previous = seed;
    if (wave + 1 < waves) {
      while ((previous = __hip_atomic_load(&flags[wave + 1], __ATOMIC_ACQUIRE,
                                           __HIP_MEMORY_SCOPE_WORKGROUP)) == 0) {
      }
    }
    u32 next = link(previous, wave);
    __hip_atomic_store(&flags[wave], next, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
    out[BX * waves + wave] = next;
  }
}
