// Launches that would have run, noted: what the two libraries without a GPU have in common.
//
// PIPESIM_NOTES names the file that gets one JSON object a launch; PIPESIM_LAUNCHES_SPOOL the folder that gets records as
// an observed process writes them (pipesim/launches/records/read.py). PIPESIM_SMS and PIPESIM_CC (90, 100) describe the
// device. Memory is the host's. A tensor map is encoded as a mark and a number.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <unistd.h>
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

const size_t COPIED = 4096, MOST_RECORDS = 4096;
const char *const ELEMENTS[] = {"u8",  "u16",  "u32",     "s32",  "u64",      "s64",       "f16",        "f32",
                                "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz", "u4_align8", "u4_align16", "u6_align16"};
const char *const SWIZZLES[] = {"none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"};
const char *const INTERLEAVES[] = {"none", "16B", "32B"};

std::string hexed(const char *data, size_t size) {
    std::string found;
    char two[3];
    for (size_t i = 0; i < size; ++i) snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(data[i])), found += two;
    return found;
}
std::string listed(const std::vector<uint64_t> &values) {
    std::string found;
    for (uint64_t value : values) found += (found.empty() ? "" : ", ") + std::to_string(value);
    return "[" + found + "]";
}
std::string quoted(const std::string &text) {
    std::string found;
    for (char c : text) found += c == '"' || c == '\\' || c < 32 ? '?' : c;
    return '"' + found + '"';
}

// A parameter's bytes, and which of them are tensor maps and pointers into the memory here.
std::string parameter(const char *data, size_t size) {
    std::string pointers, found;
    for (size_t at = 0; at + 8 <= size; at += 8) {
        uint64_t word;
        if (at + 128 <= size && !memcmp(data + at, MARK, sizeof MARK - 1)) {
            uint32_t index;
            memcpy(&index, data + at + sizeof MARK - 1, 4);
            const Map &map = maps()[index];
            std::vector<uint64_t> dims = map.dims;
            for (uint64_t &each : dims) each = each ? each : 1;
            found += (found.empty() ? "" : ", ") + ("{\"at\": " + std::to_string(at)) + ", \"element\": \"" +
                     ELEMENTS[map.element & 15] + "\", \"dims\": " + listed(dims) + ", \"box\": " + listed(map.box) +
                     ", \"strides\": " + listed(map.strides) + ", \"element_strides\": " + listed(map.steps) +
                     ", \"swizzle\": \"" + SWIZZLES[map.swizzle % 7] + "\", \"interleave\": \"" +
                     INTERLEAVES[map.interleave % 3] + "\", \"pixels\": " + std::to_string(map.pixels) + "}";
            at += 120;
            continue;
        }
        memcpy(&word, data + at, 8);
        auto after = memory().upper_bound(reinterpret_cast<char *>(word));
        if (after == memory().begin()) continue;
        auto [base, bytes] = *--after;
        if (reinterpret_cast<char *>(word) >= base + bytes) continue;
        uint64_t align = word & -word;
        size_t left = base + bytes - reinterpret_cast<char *>(word), copied = bytes <= SMALL ? left : 0;
        pointers += (pointers.empty() ? "" : ", ") + ("{\"at\": " + std::to_string(at)) + ", \"align\": " +
                    std::to_string(align < 4096 ? align : 4096) + ", \"contents\": \"" +
                    hexed(reinterpret_cast<char *>(word), copied < COPIED ? copied : COPIED) + "\"}";
    }
    return "{\"bytes\": \"" + hexed(data, size) + "\", \"pointers\": [" + pointers + "], \"maps\": [" + found + "]}";
}

void record(const std::string &entry, const std::string &file, Size grid, Size block, Size cluster, size_t shared,
            const std::vector<size_t> &sizes, void **args) {
    static auto *seen = new std::set<std::string>;
    std::string parameters;
    for (size_t i = 0; i < sizes.size(); ++i)
        parameters += (i ? ", " : "") + parameter(static_cast<const char *>(args[i]), sizes[i]);
    const std::string kernel = "\"kernel\": " + quoted(entry) + ", \"image\": \"\"";
    std::string line = "{\"kind\": \"launch\", " + kernel + ", \"code\": " + quoted(file) + ", \"origin\": \"\", " +
                       "\"grid\": " + listed({grid.x, grid.y, grid.z}) + ", \"block\": " +
                       listed({block.x, block.y, block.z}) + ", \"cluster\": " +
                       listed({cluster.x, cluster.y, cluster.z}) + ", \"dynamic_shared\": " + std::to_string(shared) +
                       ", \"parameters\": [" + parameters + "]}\n";
    const std::string name = std::string(getenv("PIPESIM_LAUNCHES_SPOOL")) + "/" + std::to_string(getpid()) + ".jsonl";
    FILE *out = seen->size() < MOST_RECORDS ? fopen(name.c_str(), "a") : nullptr;
    if (!out) return;
    if (seen->empty())
        fprintf(out, "{\"kind\": \"process\", \"version\": 1, \"pid\": %d, \"argv\": [], \"device\": \"none\"}\n", getpid());
    const bool is_new = seen->insert(line).second;
    if (is_new) fputs(line.c_str(), out);
    fprintf(out, "{\"kind\": \"count\", %s, \"launches\": 1, \"distinct\": %d, \"left_out\": 0}\n", kernel.c_str(), is_new);
    fclose(out);
}

void note(const std::string &entry, const std::string &file, Size grid, Size block, Size cluster, size_t shared,
          const std::vector<size_t> &sizes, void **args) {
    if (getenv("PIPESIM_LAUNCHES_SPOOL")) record(entry, file, grid, block, cluster, shared, sizes, args);
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
