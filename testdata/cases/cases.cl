// Kernels of the loading cases: every way that an argument can lie in the kernarg segment. No device library is needed.
typedef struct {
  char a;
  double b;
  char c[3];
} S;

// explicit arguments at 0, 8, 32, 40; the group's size makes the compiler declare hidden ones
kernel void kst(char a, S s, global int *out, short c) {
  uint i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
           __builtin_amdgcn_workitem_id_x();
  out[i] = a + (int)s.b + s.c[1] + c + (int)i;
}

// one size of workgroup, no hidden arguments
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void kreq(global int *p) {
  p[__builtin_amdgcn_workitem_id_x()] = 1;
}

// dynamic LDS
kernel void kdyn(local int *l, global int *p) {
  uint i = __builtin_amdgcn_workitem_id_x();
  l[i] = p[i];
  __builtin_amdgcn_s_barrier();
  p[i] = l[63 - i];
}

// pointers that a launcher may leave null
kernel void ktail(global int *p, int n, global int *scratch, global int *profile) {
  uint i = __builtin_amdgcn_workitem_id_x();
  if (scratch)
    n += scratch[0];
  if (profile)
    profile[i] = n;
  p[i] = n;
}
