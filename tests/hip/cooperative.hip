// Cooperative launches: all workgroups of a grid meet at grid.sync(), again and again, with data passed on between.
#include "check.h"

#include <hip/hip_cooperative_groups.h>

namespace cg = cooperative_groups;

// Prefix sums over the whole grid, in steps that each need the last one's results of other workgroups.
__global__ void scan(int* values, int n) {
    cg::grid_group grid = cg::this_grid();
    int i = int(grid.thread_rank());
    for (int step = 1; step < n; step *= 2) {
        int before = i >= step && i < n ? values[i - step] : 0;
        grid.sync();
        if (i < n) values[i] += before;
        grid.sync();
    }
}

// A sum in one launch: each workgroup's part, then the first workgroup's sum of the parts.
__global__ void total(const int* in, int n, int* parts, int* out) {
    __shared__ int mine;
    cg::grid_group grid = cg::this_grid();
    if (threadIdx.x == 0) mine = 0;
    __syncthreads();
    int sum = 0;
    for (int i = int(grid.thread_rank()); i < n; i += int(grid.size())) sum += in[i];
    atomicAdd(&mine, sum);
    __syncthreads();
    if (threadIdx.x == 0) parts[blockIdx.x] = mine;
    grid.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        int all = 0;
        for (unsigned i = 0; i < gridDim.x; i++) all += parts[i];
        *out = all;
    }
}

// Grids of several GPUs meet: each adds up what all wrote, in memory of the host.
__global__ void across(int* values, int* out, int device) {
    cg::multi_grid_group all = cg::this_multi_grid();
    int size = int(gridDim.x * blockDim.x), i = int(blockIdx.x * blockDim.x + threadIdx.x);
    values[device * size + i] = device * 1000 + i;
    all.sync();
    int sum = 0;
    for (unsigned grid = 0; grid < all.num_grids(); grid++) sum += values[int(grid) * size + i];
    out[device * size + i] = sum;
}

static void several(int count) {
    const int size = 8 * 64;
    int *values, *out;
    HIP(hipHostMalloc(&values, count * size * sizeof(int), hipHostMallocPortable | hipHostMallocCoherent));
    HIP(hipHostMalloc(&out, count * size * sizeof(int), hipHostMallocPortable | hipHostMallocCoherent));
    std::vector<int> number(count);
    std::vector<std::vector<void*>> arguments(count);
    std::vector<hipLaunchParams> launches(count);
    for (int device = 0; device < count; device++) {
        number[device] = device;
        arguments[device] = {&values, &out, &number[device]};
        HIP(hipSetDevice(device));
        hipStream_t stream;
        HIP(hipStreamCreate(&stream));
        launches[device] = {reinterpret_cast<void*>(across), dim3(8), dim3(64), arguments[device].data(), 0, stream};
    }
    HIP(hipLaunchCooperativeKernelMultiDevice(launches.data(), count, 0));
    for (int device = 0; device < count; device++) HIP(hipStreamSynchronize(launches[device].stream));
    for (int at = 0; at < count * size; at++) EXPECT(out[at] == count * (at % size) + 1000 * (count * (count - 1) / 2));
}

__global__ void plain(int* out) { out[blockIdx.x] = int(blockIdx.x); }

int main() {
    int can = 0, count = 0, units = 0, per_unit = 0;
    HIP(hipGetDeviceCount(&count));
    for (int device = 0; device < count; device++) {
        HIP(hipSetDevice(device));
        HIP(hipDeviceGetAttribute(&can, hipDeviceAttributeCooperativeLaunch, device));
        EXPECT(can == 1);
        HIP(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, device));
        HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, total, 256, 0));

        int n = 64 * 64 - 5;
        std::vector<int> host(n);
        for (int i = 0; i < n; i++) host[i] = i % 11 - 3;
        int* values;
        HIP(hipMalloc(&values, n * sizeof(int)));
        HIP(hipMemcpy(values, host.data(), n * sizeof(int), hipMemcpyHostToDevice));
        void* scanned[] = {&values, &n};
        HIP(hipLaunchCooperativeKernel(reinterpret_cast<void*>(scan), dim3(64), dim3(64), scanned, 0, 0));
        std::vector<int> got(n);
        HIP(hipMemcpy(got.data(), values, n * sizeof(int), hipMemcpyDeviceToHost));
        int sum = 0;
        for (int i = 0; i < n; i++) EXPECT(got[i] == (sum += host[i]));

        // As many workgroups as fit at once, which is what HIP allows, and one more, which it does not.
        int most = units * per_unit, *in, *parts, *out, m = 100000;
        std::vector<int> ones(m, 1);
        HIP(hipMalloc(&in, m * sizeof(int)));
        HIP(hipMalloc(&parts, most * sizeof(int)));
        HIP(hipMalloc(&out, sizeof(int)));
        HIP(hipMemcpy(in, ones.data(), m * sizeof(int), hipMemcpyHostToDevice));
        hipStream_t stream;
        HIP(hipStreamCreate(&stream));
        void* summed[] = {&in, &m, &parts, &out};
        for (int blocks : {1, 2, units, most}) {
            HIP(hipMemsetAsync(out, 0, sizeof(int), stream));
            HIP(hipLaunchCooperativeKernel(reinterpret_cast<void*>(total), dim3(blocks), dim3(256), summed, 0, stream));
            int all = 0;
            HIP(hipMemcpyAsync(&all, out, sizeof(int), hipMemcpyDeviceToHost, stream));
            HIP(hipStreamSynchronize(stream));
            EXPECT(all == m);
        }
        EXPECT(hipLaunchCooperativeKernel(reinterpret_cast<void*>(total), dim3(most + 1), dim3(256), summed, 0,
                                          stream) == hipErrorCooperativeLaunchTooLarge);
        (void)hipGetLastError();
        // Ordinary launches go on beside them.
        plain<<<64, 1, 0, stream>>>(parts);
        HIP(hipStreamSynchronize(stream));
        HIP(hipMemcpy(got.data(), parts, 64 * sizeof(int), hipMemcpyDeviceToHost));
        for (int i = 0; i < 64; i++) EXPECT(got[i] == i);
    }
    several(count);
    std::printf("good\n");
}
