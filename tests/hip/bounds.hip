// Accesses outside allocations, one a run: the word says which.
#include "check.h"

#include <cstring>

__global__ void store_behind(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = in[0] + 1;  // one too many
}

__global__ void load_before(const float* in, float* out) {
    out[threadIdx.x] = in[int(threadIdx.x) - 1];
}

__global__ void through_null(const float* in, float* out) {
    out[threadIdx.x] = in ? in[threadIdx.x] : 0;
}

int main(int, char** words) {
    const int n = 1000;
    float *in, *out;
    HIP(hipMalloc(&in, 4096 * sizeof(float)));
    HIP(hipMalloc(&out, n * sizeof(float)));
    HIP(hipMemset(in, 0, 4096 * sizeof(float)));
    if (!std::strcmp(words[1], "inside")) store_behind<<<4, 256>>>(in, out, n - 1);
    if (!std::strcmp(words[1], "behind")) store_behind<<<4, 256>>>(in, out, n);
    if (!std::strcmp(words[1], "before")) load_before<<<1, 64>>>(in, out);
    if (!std::strcmp(words[1], "null")) through_null<<<1, 64>>>(in, nullptr);
    if (!std::strcmp(words[1], "freed")) {
        HIP(hipFree(out));
        store_behind<<<4, 256>>>(in, out, n - 1);
    }
    HIP(hipDeviceSynchronize());
    std::vector<float> got(n);
    HIP(hipMemcpy(got.data(), out, n * sizeof(float), hipMemcpyDeviceToHost));
    for (float x : got) EXPECT(x == 1);
    std::printf("good\n");
}
