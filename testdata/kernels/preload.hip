// Kernel arguments that arrive in SGPRs: built with a kernarg preload count,
// so that the code starts 256 bytes behind the entry on devices that preload.
#include "hipmini.h"

K void preload(u32 *out, const u32 *in, u32 n, u32 add, u64 wide, i16 small, u16 high) {
  u32 i = gid();
  if (i < n)
    out[i] = in[i] * add + (u32)(wide >> 32) + (u32)wide + (u32)(i32)small + high;
}

// Loops over the grid, so that hidden arguments are needed beside preloaded ones.
K void preload_hidden(u32 *out, u32 n, u32 add) {
  for (u32 i = gid(); i < n; i += GX)
    out[i] = i * add + DX;
}
