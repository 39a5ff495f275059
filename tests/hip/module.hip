// A code object is loaded from a file and from memory, and its kernel launched by name.
#include "check.h"

#include <fstream>
#include <iterator>

static void run(hipModule_t module) {
    const int n = 1000;
    hipFunction_t kernel;
    HIP(hipModuleGetFunction(&kernel, module, "affine"));
    int *in, *out, count = n, factor = 3;
    HIP(hipMalloc(&in, n * sizeof(int)));
    HIP(hipMalloc(&out, n * sizeof(int)));
    std::vector<int> values(n), got(n);
    for (int i = 0; i < n; i++) values[i] = i * i;
    HIP(hipMemcpy(in, values.data(), n * sizeof(int), hipMemcpyHostToDevice));
    void* arguments[] = {&in, &out, &count, &factor};
    HIP(hipModuleLaunchKernel(kernel, (n + 63) / 64, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    HIP(hipMemcpy(got.data(), out, n * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(got[i] == values[i] * 3 + 100);

    hipDeviceptr_t offset;
    size_t bytes;
    HIP(hipModuleGetGlobal(&offset, &bytes, module, "offset"));
    EXPECT(bytes == sizeof(int));
    int changed = -5;
    HIP(hipMemcpyHtoD(offset, &changed, sizeof changed));
    struct {
        int *in, *out, n, factor;
    } packed = {in, out, n, 2};
    size_t size = sizeof packed;
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size, HIP_LAUNCH_PARAM_END};
    HIP(hipModuleLaunchKernel(kernel, (n + 63) / 64, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra));
    HIP(hipMemcpy(got.data(), out, n * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(got[i] == values[i] * 2 - 5);
    HIP(hipFree(in));
    HIP(hipFree(out));
    HIP(hipModuleUnload(module));
}

int main(int, char** words) {
    hipModule_t module;
    HIP(hipModuleLoad(&module, words[1]));
    run(module);
    std::ifstream file(words[1], std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    HIP(hipModuleLoadData(&module, bytes.data()));
    run(module);
    EXPECT(hipModuleLoad(&module, "no such file") != hipSuccess);
    std::printf("good\n");
}
