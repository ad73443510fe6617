// The device-management library of a machine without a GPU, as far as programs ask: one idle device.
#include <cstring>

struct Memory {
    unsigned long long total, free, used;
};
struct Pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char name[32];
};
extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char *nvmlErrorString(int) { return "none"; }
int nvmlSystemGetDriverVersion(char *to, unsigned size) { return strncpy(to, "580.65.06", size), 0; }
int nvmlDeviceGetCount_v2(unsigned *to) { return *to = 1, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned, void **to) { return *to = to, 0; }
int nvmlDeviceGetHandleByIndex(unsigned, void **to) { return *to = to, 0; }
int nvmlDeviceGetHandleByUUID(const char *, void **to) { return *to = to, 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *, void **to) { return *to = to, 0; }
int nvmlDeviceGetMemoryInfo(void *, Memory *to) { return *to = {1ull << 37, 1ull << 37, 0}, 0; }
int nvmlDeviceGetName(void *, char *to, unsigned size) { return strncpy(to, "none", size), 0; }
int nvmlDeviceGetCudaComputeCapability(void *, int *major, int *minor) { return *major = 9, *minor = 0, 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *, unsigned *to, void *) { return *to = 0, 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *, unsigned long long *to) { return *to = 0, 0; }
int nvmlDeviceGetMigMode(void *, unsigned *now, unsigned *next) { return *now = *next = 0, 0; }
int nvmlDeviceGetTotalEccErrors(void *, int, int, unsigned long long *to) { return *to = 0, 0; }
int nvmlDeviceGetPciInfo_v3(void *, Pci *to) {
    return *to = {"0001:01:01.0", 1, 1, 1, 0, 0, "00000001:01:01.0"}, 0;  // as the driver's attributes say, all 1
}
}
