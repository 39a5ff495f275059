// Streams run in order, events order them among each other and measure time, callbacks are called.
#include "check.h"

__global__ void step(int* value, int factor, int summand) { *value = *value * factor + summand; }

__global__ void spin(long long ticks, int* done) {
    long long start = clock64();
    while (clock64() - start < ticks) {
    }
    *done = 1;
}

static void host_work(hipStream_t, hipError_t, void* flag) { *static_cast<int*>(flag) = 42; }

int main() {
    hipStream_t a, b;
    HIP(hipStreamCreate(&a));
    HIP(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
    hipEvent_t first, second;
    HIP(hipEventCreate(&first));
    HIP(hipEventCreate(&second));
    int *value, *done;
    HIP(hipMalloc(&value, sizeof(int)));
    HIP(hipMalloc(&done, sizeof(int)));

    int one = 1, got = 0;
    HIP(hipMemcpyAsync(value, &one, sizeof(int), hipMemcpyHostToDevice, a));
    int want = 1;
    for (int i = 0; i < 200; i++) {
        step<<<1, 1, 0, a>>>(value, 3, i);
        want = int(unsigned(want) * 3u + unsigned(i));
    }
    HIP(hipEventRecord(first, a));
    HIP(hipStreamWaitEvent(b, first, 0));
    step<<<1, 1, 0, b>>>(value, 1, 7);
    HIP(hipMemcpyAsync(&got, value, sizeof(int), hipMemcpyDeviceToHost, b));
    HIP(hipStreamSynchronize(b));
    EXPECT(got == want + 7);
    EXPECT(hipEventQuery(first) == hipSuccess);

    HIP(hipEventRecord(first, a));
    spin<<<1, 1, 0, a>>>(200000, done);
    HIP(hipEventRecord(second, a));
    HIP(hipEventSynchronize(second));
    float milliseconds = -1;
    HIP(hipEventElapsedTime(&milliseconds, first, second));
    EXPECT(milliseconds > 0 && milliseconds < 60000);

    int flag = 0;
    HIP(hipStreamAddCallback(a, host_work, &flag, 0));
    HIP(hipStreamSynchronize(a));
    EXPECT(flag == 42);
    HIP(hipStreamDestroy(a));
    HIP(hipStreamDestroy(b));
    HIP(hipEventDestroy(first));
    HIP(hipEventDestroy(second));
    HIP(hipDeviceSynchronize());
    std::printf("good\n");
}
