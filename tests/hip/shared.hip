// Two processes share memory of a GPU by IPC handles: what one writes the other reads, by kernels and by copies.
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void add(int* values, int by) { values[threadIdx.x] += by; }

static void look(const int* values, int first) {
    int got[256];
    HIP(hipMemcpy(got, values, sizeof got, hipMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) EXPECT(got[i] == first + i);
}

static void other(int in, int out) {
    char byte = 0;
    hipIpcMemHandle_t handle;
    EXPECT(read(in, &handle, sizeof handle) == sizeof handle);
    int* values;
    HIP(hipIpcOpenMemHandle(reinterpret_cast<void**>(&values), handle, hipIpcMemLazyEnablePeerAccess));
    look(values, 1000);
    add<<<1, 256>>>(values, 1000);
    HIP(hipDeviceSynchronize());
    EXPECT(write(out, &byte, 1) == 1);
    EXPECT(read(in, &byte, 1) == 1);
    look(values, 5000);
    HIP(hipIpcCloseMemHandle(values));
    EXPECT(write(out, &byte, 1) == 1);
    // What was freed cannot be opened.
    EXPECT(read(in, &byte, 1) == 1);
    EXPECT(hipIpcOpenMemHandle(reinterpret_cast<void**>(&values), handle, hipIpcMemLazyEnablePeerAccess) != hipSuccess);
    std::exit(0);
}

int main() {
    int to[2], from[2];
    EXPECT(pipe(to) == 0 && pipe(from) == 0);
    pid_t child = fork();
    if (child == 0) other(to[0], from[1]);
    int start[256], *values;
    char byte = 0;
    for (int i = 0; i < 256; i++) start[i] = 1000 + i;
    HIP(hipMalloc(&values, 3 << 20));
    HIP(hipMemcpy(values, start, sizeof start, hipMemcpyHostToDevice));
    hipIpcMemHandle_t handle;
    HIP(hipIpcGetMemHandle(&handle, values));
    EXPECT(write(to[1], &handle, sizeof handle) == sizeof handle);
    EXPECT(read(from[0], &byte, 1) == 1);
    look(values, 2000);
    add<<<1, 256>>>(values, 3000);
    HIP(hipDeviceSynchronize());
    EXPECT(write(to[1], &byte, 1) == 1);
    EXPECT(read(from[0], &byte, 1) == 1);
    HIP(hipFree(values));
    EXPECT(write(to[1], &byte, 1) == 1);
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    std::printf("good\n");
}
