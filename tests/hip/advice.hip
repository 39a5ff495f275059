// Managed memory with advice and prefetching: what was said is told again, kernels and host see each other's values, and
// memory of the process becomes a GPU's by its attributes.
#include "check.h"

__global__ void twice(int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 2;
}

static int told(const void* at, size_t bytes, hipMemRangeAttribute attribute) {
    int value = -7;
    HIP(hipMemRangeGetAttribute(&value, sizeof value, attribute, at, bytes));
    return value;
}

int main() {
    int managed = 0;
    HIP(hipDeviceGetAttribute(&managed, hipDeviceAttributeManagedMemory, 0));
    EXPECT(managed == 1);
    const int n = 100000;
    const size_t bytes = n * sizeof(int);
    int* values;
    HIP(hipMallocManaged(reinterpret_cast<void**>(&values), bytes));
    for (int i = 0; i < n; i++) values[i] = i;
    HIP(hipMemAdvise(values, bytes, hipMemAdviseSetPreferredLocation, 0));
    HIP(hipMemAdvise(values, bytes, hipMemAdviseSetAccessedBy, 0));
    HIP(hipMemAdvise(values, bytes, hipMemAdviseSetReadMostly, 0));
    EXPECT(told(values, bytes, hipMemRangeAttributePreferredLocation) == 0);
    EXPECT(told(values, bytes, hipMemRangeAttributeReadMostly) == 1);
    HIP(hipMemAdvise(values, bytes, hipMemAdviseUnsetReadMostly, 0));
    EXPECT(told(values, bytes, hipMemRangeAttributeReadMostly) == 0);
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    for (int round = 1; round <= 3; round++) {
        HIP(hipMemPrefetchAsync(values, bytes, 0, stream));
        twice<<<(n + 255) / 256, 256, 0, stream>>>(values, n);
        HIP(hipMemPrefetchAsync(values, bytes, hipCpuDeviceId, stream));
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < n; i++) EXPECT(values[i] == i << round);
    }
    EXPECT(told(values, bytes, hipMemRangeAttributeLastPrefetchLocation) == hipCpuDeviceId);
    HIP(hipMemAdvise(values, bytes, hipMemAdviseSetPreferredLocation, hipCpuDeviceId));
    EXPECT(told(values, bytes, hipMemRangeAttributePreferredLocation) == hipCpuDeviceId);
    // Copies to and from it, from memory of the GPU and of the host.
    int* on_gpu;
    std::vector<int> host(n, 5);
    HIP(hipMalloc(&on_gpu, bytes));
    HIP(hipMemcpy(on_gpu, values, bytes, hipMemcpyDefault));
    HIP(hipMemcpy(values, host.data(), bytes, hipMemcpyDefault));
    for (int i = 0; i < n; i++) EXPECT(values[i] == 5);
    HIP(hipMemcpy(values, on_gpu, bytes, hipMemcpyDefault));
    HIP(hipMemset(on_gpu, 0, bytes));
    for (int i = 0; i < n; i++) EXPECT(values[i] == i << 3);
    HIP(hipFree(values));
    // Again and again: ranges come and go.
    for (int round = 0; round < 20; round++) {
        HIP(hipMallocManaged(reinterpret_cast<void**>(&values), bytes * (1 + round % 3)));
        values[n - 1] = round;
        twice<<<(n + 255) / 256, 256>>>(values, n);
        HIP(hipDeviceSynchronize());
        EXPECT(values[n - 1] == 2 * round);
        HIP(hipFree(values));
    }
    std::printf("good\n");
}
