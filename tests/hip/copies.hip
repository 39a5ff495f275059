// Every kind of copy and fill: pageable, pinned and registered host memory, device to device, asynchronous, of rectangles, of
// sizes from a byte to megabytes; HIP's own copy and fill kernels run for some of them.
#include "check.h"

#include <cstring>

static unsigned char pattern(size_t i) { return static_cast<unsigned char>(i * 7 + (i >> 8)); }

int main() {
    for (size_t size : {size_t(1), size_t(4097), size_t(1) << 20, size_t(5000001)}) {
        std::vector<unsigned char> in(size), out(size, 0);
        for (size_t i = 0; i < size; i++) in[i] = pattern(i);
        unsigned char *a, *b;
        HIP(hipMalloc(&a, size));
        HIP(hipMalloc(&b, size));
        HIP(hipMemcpy(a, in.data(), size, hipMemcpyHostToDevice));
        HIP(hipMemcpy(b, a, size, hipMemcpyDeviceToDevice));
        HIP(hipMemcpy(out.data(), b, size, hipMemcpyDeviceToHost));
        EXPECT(in == out);

        HIP(hipMemset(b, 0xa5, size));
        HIP(hipMemcpy(out.data(), b, size, hipMemcpyDeviceToHost));
        for (size_t i = 0; i < size; i++) EXPECT(out[i] == 0xa5);

        unsigned char* pinned;
        HIP(hipHostMalloc(&pinned, size));
        std::memcpy(pinned, in.data(), size);
        HIP(hipMemcpyAsync(b, pinned, size, hipMemcpyHostToDevice, 0));
        std::memset(out.data(), 0, size);
        HIP(hipHostRegister(out.data(), size, hipHostRegisterDefault));
        HIP(hipMemcpyAsync(out.data(), b, size, hipMemcpyDeviceToHost, 0));
        HIP(hipStreamSynchronize(0));
        EXPECT(in == out);
        HIP(hipHostUnregister(out.data()));
        HIP(hipHostFree(pinned));
        HIP(hipFree(a));
        HIP(hipFree(b));
    }

    const size_t width = 100, height = 37;
    std::vector<unsigned char> in(width * height), out(width * height);
    for (size_t i = 0; i < in.size(); i++) in[i] = pattern(i);
    unsigned char* rows;
    size_t pitch = 0;
    HIP(hipMallocPitch(reinterpret_cast<void**>(&rows), &pitch, width, height));
    EXPECT(pitch >= width);
    HIP(hipMemcpy2D(rows, pitch, in.data(), width, width, height, hipMemcpyHostToDevice));
    HIP(hipMemset2D(rows, pitch, 0, 10, 2));
    HIP(hipMemcpy2D(out.data(), width, rows, pitch, width, height, hipMemcpyDeviceToHost));
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            EXPECT(out[y * width + x] == (x < 10 && y < 2 ? 0 : in[y * width + x]));
    int* words;
    HIP(hipMalloc(&words, 4096));
    HIP(hipMemsetD32(words, 0x12345678, 1024));
    int word = 0;
    HIP(hipMemcpy(&word, words + 1023, 4, hipMemcpyDeviceToHost));
    EXPECT(word == 0x12345678);
    std::printf("good\n");
}
