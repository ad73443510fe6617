// Parameters of every kind, and control that depends on an array in global memory. The kernel writes the words of its
// parameters as it sees them, so that what was caught can be compared with them.
using uint32_t = unsigned int;
using uint64_t = unsigned long long;

struct alignas(64) Map {
    uint64_t words[16];
};

struct Shape {
    int rows;
    short small;
    char flag;
    const float* data;
    float scale;
    uint64_t wide;
};

__device__ inline uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// The words of one parameter, 4 bytes each; the last may have fewer bytes.
template <typename T>
__device__ inline int put(uint32_t* out, int at, const T& value) {
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&value);
    for (unsigned n = 0; n < sizeof(T); n += 4) {
        uint32_t word = 0;
        for (unsigned k = 0; k < 4 && n + k < sizeof(T); ++k) word |= uint32_t(bytes[n + k]) << (8 * k);
        out[at++] = word;
    }
    return at;
}

extern "C" __global__ void __launch_bounds__(64) mixed(
    const __grid_constant__ Map map, const __grid_constant__ Shape shape, const int* trips, int n, float f, double d,
    unsigned char c, uint32_t* out) {
    __shared__ alignas(8) uint64_t full, empty;
    __shared__ float tile[32];
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(shared_address(&full)));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(shared_address(&empty)));
    }
    __syncthreads();
    const bool producer = threadIdx.x < 32;
    const int lane = threadIdx.x & 31;
    const int count = trips[blockIdx.x];
    float sum = 0;
    for (int i = 0; i < count; ++i) {
        const uint32_t wait = shared_address(producer ? &empty : &full);
        const uint32_t parity = producer ? (i & 1) ^ 1 : i & 1;
        asm volatile(
            "{\n.reg .pred done;\nagain:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(wait),
            "r"(parity)
            : "memory");
        if (producer) {
            tile[lane] = f * static_cast<float>(i + lane);
        } else {
            sum += tile[lane];
        }
        const uint32_t arrive = shared_address(producer ? &full : &empty);
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(arrive) : "memory");
    }
    if (threadIdx.x == 32 && blockIdx.x == 0) {
        int at = put(out, 1, map);
        at = put(out, at, shape);
        at = put(out, at, trips);
        at = put(out, at, n);
        at = put(out, at, f);
        at = put(out, at, d);
        at = put(out, at, c);
        put(out, at, out);
        out[0] = __float_as_uint(sum);
    }
}
