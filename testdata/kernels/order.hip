// Results that depend on the order in which atomics reach memory.
#include "hipmini.h"

// The old value is the work-item's ticket: any permutation is right, and one
// fixed permutation is what a deterministic run gives.
K void order_ticket(u32 *counter, u32 *ticket, u32 n) {
  u32 i = gid();
  if (i < n)
    ticket[i] = __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Float accumulation is not associative: the sum's last bits follow the order.
K void order_fsum(const float *x, float *sum, u32 n) {
  u32 i = gid();
  if (i < n)
    __hip_atomic_fetch_add(sum, x[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Every work-item pushes itself onto one list.
K void order_list(u32 *head, u32 *next, u32 n) {
  u32 i = gid();
  if (i < n)
    next[i] = __hip_atomic_exchange(head, i + 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
}

// The same float accumulation in LDS, between the waves of a group.
K void __launch_bounds__(256) order_lds(const float *x, float *sums, u32 n) {
  __shared__ float sum;
  if (TX == 0)
    sum = 0;
  sync();
  u32 i = gid();
  if (i < n)
    __hip_atomic_fetch_add(&sum, x[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  sync();
  if (TX == 0)
    sums[BX] = sum;
}
