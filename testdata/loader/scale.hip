// Small source of the loader's fixtures: one kernel, one table, one pointer into it.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
__device__ int table[3] = {1, 2, 3};
__device__ int *cursor = &table[1];
extern "C" __global__ void scale(float *data, float factor, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) data[i] *= factor * *cursor + table[2];
}
