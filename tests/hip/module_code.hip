// Code that `module` loads by itself, from its own file.
#include <hip/hip_runtime.h>

__device__ int offset = 100;

extern "C" __global__ void affine(const int* in, int* out, int n, int factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * factor + offset;
}
