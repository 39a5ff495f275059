// Accesses outside every buffer. `skip` counts elements, so that a caller
// chooses how far outside: a page or more is a fault on every device.
#include "hipmini.h"

K void oob_store(u32 *out, u32 n, u64 skip) {
  u32 i = gid();
  if (i < n) {
    u32 value = i * 3 + 1;
    out[i + skip] = value;
  }
}

K void oob_load(const u32 *in, u32 *out, u32 n, u64 skip) {
  u32 i = gid();
  if (i < n)
    out[i] = in[i + skip];
}

K void oob_atomic(u32 *counter, u64 skip) {
  __hip_atomic_fetch_add(counter + skip, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Only one work-item goes astray: the report has to name it.
K void oob_one(u32 *out, u32 n, u32 victim, i64 skip) {
  u32 i = gid();
  if (i >= n)
    return;
  i64 index = i;
  if (i == victim)
    index += skip;
  out[index] = i;
}

K void null_store(u32 *out, u32 n) {
  u32 *nowhere = nullptr;
  asm volatile("" : "+v"(nowhere));
  if (gid() < n)
    nowhere[gid()] = 7;
  out[0] = 1;
}
