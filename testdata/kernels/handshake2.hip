// Two kernels for two queues, which hand a token to each other.
#include "hipmini.h"

#define LOAD(p) __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM)
#define STORE(p, v) __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM)

// `token` counts the turns: even ones are ping's, odd ones pong's. Each turn
// mixes its number into `state`, which is written without atomics.
D void turns(u32 *token, u32 *state, u32 rounds, u32 side, u32 factor) {
  if (TX || BX)
    return;
  for (u32 round = 0; round < rounds; round++) {
    u32 turn = 2 * round + side;
    while (LOAD(token) != turn) {
    }
    *state = (*state ^ turn) * factor + turn;
    STORE(token, turn + 1);
  }
}

K void ping(u32 *token, u32 *state, u32 rounds) { turns(token, state, rounds, 0, 0x9e3779b1u); }
K void pong(u32 *token, u32 *state, u32 rounds) { turns(token, state, rounds, 1, 0x85ebca77u); }
