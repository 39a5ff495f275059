// Traps: llvm.trap ends the dispatch, llvm.debugtrap does nothing unless a
// debugger listens.
#include "hipmini.h"

K void trap_all(u32 *out) {
  out[gid()] = 1;
  __builtin_trap();
}

K void trap_one(u32 *out, u32 culprit) {
  u32 i = gid();
  out[i] = i + 1;
  if (i == culprit)
    __builtin_trap();
}

K void debugtrap(u32 *out, u32 n) {
  u32 i = gid();
  if (i < n)
    out[i] = i * 5 + 1;
  __builtin_debugtrap();
  if (i < n)
    out[i] += 1;
}
