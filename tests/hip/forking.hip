// A process that has the device open forks: the child without the device goes on as it is, may open the device anew, and
// may start a program that uses it; the parent keeps its own.
#include "check.h"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void add(int* at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) at[i] += i;
}

static void compute() {
    const int n = 3000;
    std::vector<int> values(n, 5);
    int* at;
    HIP(hipMalloc(&at, n * sizeof(int)));
    HIP(hipMemcpy(at, values.data(), n * sizeof(int), hipMemcpyHostToDevice));
    add<<<(n + 255) / 256, 256>>>(at, n);
    HIP(hipMemcpy(values.data(), at, n * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(values[i] == 5 + i);
    HIP(hipFree(at));
}

// AMDKFD_IOC_GET_VERSION.
static int version(int fd) {
    struct {
        unsigned major, minor;
    } args = {};
    return ioctl(fd, 0x80084b01ul, &args) == 0 ? int(args.major) : -errno;
}

// The descriptor of /dev/kfd that ROCr holds.
static int inherited() {
    DIR* folder = opendir("/proc/self/fd");
    int found = -1;
    while (dirent* entry = readdir(folder)) {
        char target[256] = {};
        std::string path = std::string("/proc/self/fd/") + entry->d_name;
        if (readlink(path.c_str(), target, sizeof target - 1) > 0 && std::strstr(target, "rocr-kfd"))
            found = std::atoi(entry->d_name);
    }
    closedir(folder);
    return found;
}

static int wait_for(pid_t child) {
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(int count, char** words) {
    if (count > 1) {
        compute();
        return 0;
    }
    compute();
    EXPECT(inherited() >= 0 && version(inherited()) == 1);
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        // The parent's device is not the child's, as with the kernel's driver; files are.
        if (version(inherited()) != -EBADF) _exit(1);
        if (access("/proc/self/status", R_OK) != 0) _exit(2);
        std::string* text = new std::string(100000, 'x');
        if (text->size() != 100000) _exit(3);
        int anew = open("/dev/kfd", O_RDWR | O_CLOEXEC);
        if (anew < 0 || version(anew) != 1) _exit(4);
        _exit(7);
    }
    EXPECT(wait_for(child) == 7);
    child = fork();
    if (child == 0) {
        execl("/proc/self/exe", words[0], "again", nullptr);
        _exit(9);
    }
    compute();
    EXPECT(wait_for(child) == 0);
    compute();
    std::printf("good\n");
}
