// The host's side: pitched and 3D copies, arrays of symbols, streams that wait for each other, host functions, events,
// captured and built graphs, attributes and occupancy, errors that are told and forgotten.
#include "check.h"

#include <atomic>
#include <cstring>

__global__ void fill_pitched(char* at, size_t pitch, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width && y < height) reinterpret_cast<int*>(at + y * pitch)[x] = 1000 * y + x;
}

static void pitched() {
    const int width = 50, height = 20;
    char* at;
    size_t pitch;
    HIP(hipMallocPitch(reinterpret_cast<void**>(&at), &pitch, width * sizeof(int), height));
    EXPECT(pitch >= width * sizeof(int));
    fill_pitched<<<dim3(1, height), 64>>>(at, pitch, width, height);
    std::vector<int> rows(width * height), some(10 * 5);
    HIP(hipMemcpy2D(rows.data(), width * sizeof(int), at, pitch, width * sizeof(int), height, hipMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) EXPECT(rows[y * width + x] == 1000 * y + x);
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    // A window out of the middle, and back to another place.
    HIP(hipMemcpy2DAsync(some.data(), 10 * sizeof(int), at + 3 * pitch + 7 * sizeof(int), pitch, 10 * sizeof(int), 5,
                         hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 10; x++) EXPECT(some[y * 10 + x] == 1000 * (y + 3) + x + 7);
    HIP(hipMemset2D(at, pitch, 0x11, 8, 3));
    HIP(hipMemcpy2D(rows.data(), width * sizeof(int), at, pitch, width * sizeof(int), height, hipMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            EXPECT(rows[y * width + x] == (y < 3 && x < 2 ? 0x11111111 : 1000 * y + x));
    HIP(hipStreamDestroy(stream));
    HIP(hipFree(at));

    hipExtent extent = make_hipExtent(6 * sizeof(int), 5, 4);
    hipPitchedPtr cube;
    HIP(hipMalloc3D(&cube, extent));
    std::vector<int> in(6 * 5 * 4), out(in.size());
    for (size_t i = 0; i < in.size(); i++) in[i] = int(i * i);
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(in.data(), 6 * sizeof(int), 6, 5);
    copy.dstPtr = cube;
    copy.extent = extent;
    copy.kind = hipMemcpyHostToDevice;
    HIP(hipMemcpy3D(&copy));
    copy.srcPtr = cube;
    copy.dstPtr = make_hipPitchedPtr(out.data(), 6 * sizeof(int), 6, 5);
    copy.kind = hipMemcpyDeviceToHost;
    HIP(hipMemcpy3D(&copy));
    EXPECT(in == out);
    HIP(hipFree(cube.ptr));
}

__global__ void add(int* at, int n, int by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) at[i] = at[i] * 3 + by;
}

static std::atomic<int> called{0};
static void host_function(void* data) { called += *static_cast<int*>(data); }
static void callback(hipStream_t, hipError_t status, void* data) {
    if (status == hipSuccess) called += *static_cast<int*>(data);
}

static void streams() {
    const int n = 5000, blocks = (n + 255) / 256;
    int *at, *pinned;
    HIP(hipMalloc(&at, n * sizeof(int)));
    HIP(hipHostMalloc(&pinned, n * sizeof(int), 0));
    for (int i = 0; i < n; i++) pinned[i] = i;
    int least, greatest;
    HIP(hipDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(greatest <= least);
    hipStream_t first, second;
    HIP(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    HIP(hipStreamCreateWithPriority(&second, hipStreamNonBlocking, greatest));
    hipEvent_t begun, copied, done;
    HIP(hipEventCreate(&begun));
    HIP(hipEventCreateWithFlags(&copied, hipEventDisableTiming));
    HIP(hipEventCreate(&done));
    HIP(hipEventRecord(begun, first));
    HIP(hipMemcpyAsync(at, pinned, n * sizeof(int), hipMemcpyHostToDevice, first));
    HIP(hipEventRecord(copied, first));
    HIP(hipStreamWaitEvent(second, copied, 0));
    add<<<blocks, 256, 0, second>>>(at, n, 1);
    HIP(hipEventRecord(done, second));
    HIP(hipStreamWaitEvent(first, done, 0));
    add<<<blocks, 256, 0, first>>>(at, n, 2);
    int amount = 40;
    HIP(hipStreamAddCallback(first, callback, &amount, 0));
    HIP(hipMemcpyAsync(pinned, at, n * sizeof(int), hipMemcpyDeviceToHost, first));
    HIP(hipStreamSynchronize(first));
    HIP(hipStreamSynchronize(second));
    for (int i = 0; i < n; i++) EXPECT(pinned[i] == (i * 3 + 1) * 3 + 2);
    EXPECT(called == 40);
    EXPECT(hipStreamQuery(first) == hipSuccess && hipEventQuery(done) == hipSuccess);
    float ms = -1;
    HIP(hipEventSynchronize(done));
    HIP(hipEventElapsedTime(&ms, begun, done));
    EXPECT(ms >= 0 && ms < 60000);
    for (hipEvent_t event : {begun, copied, done}) HIP(hipEventDestroy(event));
    HIP(hipStreamDestroy(first));
    HIP(hipStreamDestroy(second));
    HIP(hipHostFree(pinned));
    HIP(hipFree(at));
}

static void graphs() {
    const int n = 1000, blocks = (n + 255) / 256;
    std::vector<int> values(n), want(n);
    int* at;
    HIP(hipMalloc(&at, n * sizeof(int)));
    for (int i = 0; i < n; i++) values[i] = want[i] = i;
    HIP(hipMemcpy(at, values.data(), n * sizeof(int), hipMemcpyHostToDevice));
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    hipGraph_t graph;
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    add<<<blocks, 256, 0, stream>>>(at, n, 7);
    add<<<blocks, 256, 0, stream>>>(at, n, 8);
    HIP(hipStreamEndCapture(stream, &graph));
    hipGraphExec_t executable;
    HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int run = 0; run < 3; run++) {
        HIP(hipGraphLaunch(executable, stream));
        for (int& x : want) x = (x * 3 + 7) * 3 + 8;
    }
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemcpy(values.data(), at, n * sizeof(int), hipMemcpyDeviceToHost));
    EXPECT(values == want);
    HIP(hipGraphExecDestroy(executable));
    HIP(hipGraphDestroy(graph));

    // The same by hand: a kernel, then one that depends on it.
    HIP(hipGraphCreate(&graph, 0));
    hipGraphNode_t one, two;
    int count = n, by = 5;
    void* arguments[] = {&at, &count, &by};
    hipKernelNodeParams node = {};
    node.func = reinterpret_cast<void*>(add);
    node.gridDim = dim3(blocks);
    node.blockDim = dim3(256);
    node.kernelParams = arguments;
    HIP(hipGraphAddKernelNode(&one, graph, nullptr, 0, &node));
    by = 6;
    HIP(hipGraphAddKernelNode(&two, graph, &one, 1, &node));
    size_t nodes = 0;
    HIP(hipGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 2);
    HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    HIP(hipGraphLaunch(executable, stream));
    HIP(hipStreamSynchronize(stream));
    for (int& x : want) x = (x * 3 + 5) * 3 + 6;
    HIP(hipMemcpy(values.data(), at, n * sizeof(int), hipMemcpyDeviceToHost));
    EXPECT(values == want);
    HIP(hipGraphExecDestroy(executable));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(stream));
    HIP(hipFree(at));
}

static void attributes() {
    hipDeviceProp_t properties;
    HIP(hipGetDeviceProperties(&properties, 0));
    EXPECT(properties.multiProcessorCount > 0 && properties.warpSize == 64 && properties.totalGlobalMem > 0);
    EXPECT(std::strncmp(properties.gcnArchName, "gfx90a", 6) == 0);
    int units = 0, cooperative = -1;
    HIP(hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, 0));
    EXPECT(units == properties.multiProcessorCount);
    HIP(hipDeviceGetAttribute(&cooperative, hipDeviceAttributeCooperativeLaunch, 0));
    EXPECT(cooperative == 1 && properties.cooperativeLaunch == 1);
    size_t free_bytes, total_bytes, later_bytes;
    HIP(hipMemGetInfo(&free_bytes, &total_bytes));
    EXPECT(free_bytes <= total_bytes && total_bytes == properties.totalGlobalMem);
    char* at;
    HIP(hipMalloc(&at, 64 << 20));
    HIP(hipMemGetInfo(&later_bytes, &total_bytes));
    EXPECT(later_bytes < free_bytes);
    hipPointerAttribute_t attribute;
    HIP(hipPointerGetAttributes(&attribute, at));
    EXPECT(attribute.device == 0 && attribute.devicePointer == at);
    HIP(hipFree(at));
    hipFuncAttributes function;
    HIP(hipFuncGetAttributes(&function, reinterpret_cast<const void*>(add)));
    EXPECT(function.maxThreadsPerBlock > 0 && function.numRegs > 0);
    int groups = 0, grid = 0, block = 0;
    HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups, add, 256, 0));
    EXPECT(groups > 0);
    HIP(hipOccupancyMaxPotentialBlockSize(&grid, &block, add, 0, 0));
    EXPECT(grid > 0 && block > 0 && block % 64 == 0);
    int version = 0;
    HIP(hipRuntimeGetVersion(&version));
    EXPECT(version > 0);
}

static void errors() {
    int* at = nullptr;
    EXPECT(hipMalloc(&at, size_t(1) << 60) == hipErrorOutOfMemory);
    EXPECT(hipGetLastError() == hipErrorOutOfMemory && hipGetLastError() == hipSuccess);
    EXPECT(hipSetDevice(99) == hipErrorInvalidDevice);
    EXPECT(hipFree(reinterpret_cast<void*>(0x1000)) != hipSuccess);
    add<<<1, 4096>>>(at, 0, 0);
    EXPECT(hipGetLastError() != hipSuccess);
    HIP(hipMalloc(&at, sizeof(int)));
    HIP(hipMemset(at, 0, sizeof(int)));
    add<<<1, 1>>>(at, 1, 9);
    int got = 0;
    HIP(hipMemcpy(&got, at, sizeof(int), hipMemcpyDeviceToHost));
    EXPECT(got == 9);
    HIP(hipFree(at));
}

int main() {
    pitched();
    streams();
    graphs();
    attributes();
    errors();
    std::printf("good\n");
}
