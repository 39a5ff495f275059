/* A local array of 64 that is indexed by an argument: work-item i writes a[at + i]. */
__kernel void kscr(__global int* out, int at) {
  volatile int a[64];
  for (int i = 0; i < 64; i++) a[i] = i;
  a[at + (int)__builtin_amdgcn_workitem_id_x()] = 7;
  out[__builtin_amdgcn_workitem_id_x()] = a[63];
}
