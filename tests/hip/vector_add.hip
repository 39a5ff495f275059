// Vectors are added; sizes that are no multiple of the block; the last kernel's error is none.
#include "check.h"

__global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

int main() {
    for (int n : {1, 63, 1000, 100003}) {
        std::vector<float> a(n), b(n), c(n);
        for (int i = 0; i < n; i++) a[i] = float(i), b[i] = float(2 * i);
        float *da, *db, *dc;
        HIP(hipMalloc(&da, n * sizeof(float)));
        HIP(hipMalloc(&db, n * sizeof(float)));
        HIP(hipMalloc(&dc, n * sizeof(float)));
        HIP(hipMemcpy(da, a.data(), n * sizeof(float), hipMemcpyHostToDevice));
        HIP(hipMemcpy(db, b.data(), n * sizeof(float), hipMemcpyHostToDevice));
        add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
        HIP(hipGetLastError());
        HIP(hipMemcpy(c.data(), dc, n * sizeof(float), hipMemcpyDeviceToHost));
        for (int i = 0; i < n; i++) EXPECT(c[i] == float(3 * i));
        HIP(hipFree(da));
        HIP(hipFree(db));
        HIP(hipFree(dc));
    }
    std::printf("good\n");
}
