// Launches that would have run, noted: what the two libraries without a GPU have in common.
//
// PIPESIM_NOTES names the file that gets one JSON object a launch; PIPESIM_SMS and PIPESIM_CC (90, 100) describe the
// device. Memory is the host's. A tensor map is encoded as a mark and a number.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

struct Map {
    std::string kind;
    std::vector<uint64_t> dims, strides, box, steps;
    int element, interleave, swizzle, pixels;
};
struct Size {
    unsigned x, y, z;
};
const char MARK[] = "pipesim-map:";
const size_t SMALL = 1 << 16;

std::map<char *, size_t> &memory() {  // used before the first constructor and after the last destructor
    static auto *found = new std::map<char *, size_t>;
    return *found;
}
std::vector<Map> &maps() {
    static auto *found = new std::vector<Map>;
    return *found;
}

int number(const char *name, int usual) {
    const char *text = getenv(name);
    return text ? atoi(text) : usual;
}

void *allocated(size_t size) {
    auto *at = static_cast<char *>(aligned_alloc(1024, (size + 1023) / 1024 * 1024 + 1024));
    memset(at, 0, size);
    memory()[at] = size;
    return at;
}
void released(void *at) {
    if (memory().erase(static_cast<char *>(at))) free(at);
}

void hex(FILE *out, const void *data, size_t size) {
    fputc('"', out);
    for (size_t i = 0; i < size; ++i) fprintf(out, "%02x", static_cast<const unsigned char *>(data)[i]);
    fputc('"', out);
}

void list(FILE *out, const char *name, const std::vector<uint64_t> &values) {
    fprintf(out, ", \"%s\": [", name);
    for (size_t i = 0; i < values.size(); ++i) fprintf(out, "%s%llu", i ? ", " : "", (unsigned long long)values[i]);
    fputc(']', out);
}

void note(const std::string &entry, const std::string &file, Size grid, Size block, Size cluster, size_t shared,
          const std::vector<size_t> &sizes, void **args) {
    if (!getenv("PIPESIM_NOTES")) return;
    FILE *out = fopen(getenv("PIPESIM_NOTES"), "a");
    fprintf(out, "{\"entry\": \"%s\", \"file\": \"%s\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u]", entry.c_str(),
            file.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z);
    fprintf(out, ", \"cluster\": [%u, %u, %u], \"shared\": %zu, \"parameters\": [", cluster.x, cluster.y, cluster.z,
            shared);
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (i) fputs(", ", out);
        hex(out, args[i], sizes[i]);
    }
    fputs("], \"maps\": [", out);
    bool first = true;
    for (const Map &map : maps()) {
        fprintf(out, "%s{\"kind\": \"%s\", \"element\": %d, \"swizzle\": %d, \"interleave\": %d, \"pixels\": %d",
                first ? "" : ", ", map.kind.c_str(), map.element, map.swizzle, map.interleave, map.pixels);
        list(out, "dims", map.dims);
        list(out, "strides", map.strides);
        list(out, "box", map.box);
        list(out, "steps", map.steps);
        fputc('}', out);
        first = false;
    }
    fputs("], \"memory\": [", out);
    first = true;
    for (auto &[base, size] : memory()) {
        fprintf(out, "%s{\"base\": %llu, \"size\": %zu, \"data\": ", first ? "" : ", ",
                (unsigned long long)(uintptr_t)base, size);
        hex(out, base, size <= SMALL ? size : 0);
        fputc('}', out);
        first = false;
    }
    fputs("]}\n", out);
    fclose(out);
}

CUresult encoded(CUtensorMap *to, Map map) {
    memset(to, 0, sizeof *to);
    memcpy(to, MARK, sizeof MARK - 1);
    uint32_t index = maps().size();
    memcpy(reinterpret_cast<char *>(to) + sizeof MARK - 1, &index, 4);
    maps().push_back(map);
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *, const cuuint64_t *dims,
                                const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
    return encoded(to, {"tiled", {dims, dims + rank}, {strides, strides + rank - 1}, {box, box + rank},
                        {steps, steps + rank}, type, interleave, swizzle, 0});
}
CUresult cuTensorMapEncodeIm2col(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *, const cuuint64_t *dims,
                                 const cuuint64_t *strides, const int *, const int *, cuuint32_t channels,
                                 cuuint32_t pixels, const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    return encoded(to, {"im2col", {dims, dims + rank}, {strides, strides + rank - 1}, {channels}, {steps, steps + rank},
                        type, interleave, swizzle, static_cast<int>(pixels)});
}
CUresult cuTensorMapReplaceAddress(CUtensorMap *, void *) { return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char **text) { return *text = "none", CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult, const char **text) { return *text = "none", CUDA_SUCCESS; }
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream) {
    for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned *>(to)[i] = value;
    return CUDA_SUCCESS;
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream) {
    for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned short *>(to)[i] = value;
    return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream) {
    return memset(reinterpret_cast<void *>(to), value, count), CUDA_SUCCESS;
}
}
