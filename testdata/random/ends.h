// The two ends of a random program: the kernel, and the host's loop over the same work-items.
#ifdef __AMDGCN__
LOCAL u64 lds_of_all[BLOCK * LDS_BYTES / 8] __attribute__((loader_uninitialized));
KERNEL program(const u8 GLOBAL *in, u8 GLOBAL *mem, u64 GLOBAL *out) {
  u32 local = __builtin_amdgcn_workitem_id_x();
  u32 lane = __builtin_amdgcn_workgroup_id_x() * BLOCK + local;
  if (lane >= LANES) return;
  u8 LOCAL *own = (u8 LOCAL *)lds_of_all + local * LDS_BYTES;
  for (int i = 0; i < LDS_BYTES / 8; i++) ((u64 LOCAL *)own)[i] = 0;
  body(lane, in, mem + lane * MEM_BYTES, own, out + lane * RESULTS);
}
#else
#include <stdio.h>
static u8 in[IN_BYTES] __attribute__((aligned(16))), mem[LANES * MEM_BYTES] __attribute__((aligned(16)));
static u64 out[LANES * RESULTS];
int main(int argc, char **argv) {
  FILE *f = fopen(argv[1], "rb");
  if (!f || fread(in, 1, IN_BYTES, f) != IN_BYTES) return 1;
  fclose(f);
  for (u32 lane = 0; lane < LANES; lane++) {
    u64 lds[LDS_BYTES / 8] = {0};
    body(lane, in, mem + lane * MEM_BYTES, (u8 *)lds, out + lane * RESULTS);
  }
  f = fopen(argv[2], "wb");
  if (!f || fwrite(mem, 1, sizeof mem, f) != sizeof mem || fwrite(out, 1, sizeof out, f) != sizeof out) return 1;
  return fclose(f);
}
#endif
