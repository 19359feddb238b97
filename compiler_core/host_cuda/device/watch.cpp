// Looks at every access of a kernel to memory: bounds and alignment, and by races.cpp races. The compiler
// puts the calls: it compiles the user's text with -fsanitize=thread, and these functions stand where
// libtsan's would.
#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regions.h"
#include "state.h"

alignas(1024) unsigned char host_cuda_dynamic[host_cuda::kMostShared + host_cuda::kRim];
// What the host put around each variable in shared memory (static_shared.cpp).
struct SharedVariable {
  unsigned char* at;
  size_t bytes;
  const char* name;
};
extern "C" SharedVariable __start_host_cuda_table[], __stop_host_cuda_table[];
extern "C" char __executable_start, _end;

namespace host_cuda {

constexpr size_t kSharedRim = 256;              // as static_shared.cpp has it
constexpr size_t kMostCells = size_t{8} << 20;  // of all buffers of global memory together
static std::vector<Region> regions;
static size_t global_cells = 0;

// `kernel()::tile` -> `tile`
static const char* variable_name(const char* mangled) {
  int status = 0;
  const char* const whole = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  if (whole == nullptr) return mangled;
  const char* const last = strstr(whole, "::") == nullptr ? whole : strrchr(whole, ':') + 1;
  return last;
}

static void find_shared() {
  static bool done = false;
  if (done) return;
  done = true;
  size_t statics = 0;
  for (SharedVariable* v = __start_host_cuda_table; v != __stop_host_cuda_table; ++v) {
    if (v->at == nullptr) continue;
    regions.push_back(
        {variable_name(v->name), v->at, v->bytes, kSharedRim, 0, 1, make_cells(v->bytes), true});
    statics += v->bytes;
  }
  regions.push_back(
      {"the dynamic array", host_cuda_dynamic, dynamic_bytes, kRim, 0, 1, make_cells(dynamic_bytes), true});
  if (statics > 49152)
    report("shared", std::to_string(statics) + " bytes of static shared memory; a block may have 49152",
           nullptr, nullptr);
}

void clear_shared() {
  find_shared();
  for (const Region& r : regions)
    if (r.is_shared) memset(r.begin, 0xff, r.bytes);
}

static FILE* open_or_leave(const char* name, const char* mode) {
  FILE* const f = fopen(name, mode);
  if (f == nullptr) _exit(93);
  return f;
}
void* buffer(const char* name, size_t bytes, size_t element_bytes, const char* given, bool is_input) {
  // Whole pages around it: what lies a little outside is found, and harms nobody. What lies far outside is in
  // no other buffer, which a kernel may touch.
  const size_t whole = (bytes + 4095) / 4096 * 4096 + 2 * kRim;
  unsigned char* const p = (unsigned char*)memory_apart(whole);
  if (mprotect(p, whole, PROT_READ | PROT_WRITE) != 0) _exit(92);
  memset(p, 0xff, whole);
  if (given != nullptr) {
    FILE* const f = open_or_leave(given, "rb");
    if (fread(p + kRim, 1, bytes, f) != bytes) _exit(93);
    fclose(f);
  }
  const size_t granule = element_bytes < 4 ? element_bytes : 4, count = (bytes + granule - 1) / granule;
  Region r{name, p + kRim, bytes, whole - kRim - bytes, kRim, granule, nullptr, false, is_input};
  if (is_input) {
    // Only reads are allowed.
  } else if (global_cells + count <= kMostCells) {
    r.cells = make_cells(count);
    global_cells += count;
  } else {
    report("note", std::string("races on ") + name + " are not looked for: it is too large", nullptr,
           nullptr);
  }
  regions.push_back(r);
  return p + kRim;
}
void keep(const void* buffer, const char* file) {
  for (const Region& r : regions)
    if (r.begin == buffer) {
      FILE* const f = open_or_leave(file, "wb");
      if (fwrite(r.begin, 1, r.bytes, f) != r.bytes || fclose(f) != 0) _exit(93);
    }
}

// --- bounds ---

static void report_input(const Region& r, size_t offset, const void* pc) {
  report("input",
         thread_text(running->linear, block_number) + " writes to " + r.name +
             ", which is an input, at byte " + std::to_string(offset) + ", at {1}",
         pc, nullptr);
}

static const char* verb(Access how) { return how == Access::kRead ? " reads " : " writes "; }

static void report_bounds(const Region& r, const unsigned char* at, size_t bytes, Access how,
                          const void* pc) {
  const bool before = at < r.begin;
  report("bounds",
         thread_text(running->linear, block_number) + verb(how) + std::to_string(bytes) +
             " bytes outside of " + r.name + (r.is_shared ? " (shared memory)" : "") + ", which has " +
             std::to_string(r.bytes) + ": " + std::to_string(before ? r.begin - at : at - r.begin) +
             (before ? " bytes before its begin" : " bytes behind its begin") + ", at {1}",
         pc, nullptr);
}

void touch(const void* address, size_t bytes, Access how, const void* pc) {
  if (running == nullptr || bytes == 0) return;
  settle_write();
  const unsigned char* const at = (const unsigned char*)address;
  if (at >= (unsigned char*)running->stack && at < (unsigned char*)running->stack + kStackBytes) return;
  for (const Region& r : regions) {
    if (at + bytes <= r.begin - r.rim_before || at >= r.begin + r.bytes + r.rim) continue;
    if (at < r.begin || at + bytes > r.begin + r.bytes) return report_bounds(r, at, bytes, how, pc);
    if (r.is_input && how != Access::kRead) return report_input(r, (size_t)(at - r.begin), pc);
    if (r.cells != nullptr) look_for_race(r, (size_t)(at - r.begin), bytes, how, pc);
    return;
  }
  // Constants, __device__ variables, and what the runtime itself has.
  if (at >= (unsigned char*)&__executable_start && at < (unsigned char*)&_end) return;
  char text[64];
  snprintf(text, sizeof text, "address 0x%zx", (size_t)address);
  report("bounds",
         thread_text(running->linear, block_number) + verb(how) + text + ", which is in no buffer, at {1}",
         pc, nullptr);
  stop();
}

static void touch_aligned(const void* at, size_t bytes, Access how, const void* pc) {
  if (running != nullptr && (size_t)at % bytes != 0)
    report("aligned",
           thread_text(running->linear, block_number) + verb(how) + std::to_string(bytes) +
               " bytes at once from an address that is not a multiple of " + std::to_string(bytes) +
               ", at {1}",
           pc, nullptr);
  touch(at, bytes, how, pc);
}

}  // namespace host_cuda

// NOLINTBEGIN: the names are the compiler's.
#define HC_PC __builtin_return_address(0)
#define HC_ACCESS(bytes)                                                                                     \
  void __tsan_read##bytes(void* p) { host_cuda::touch_aligned(p, bytes, host_cuda::Access::kRead, HC_PC); }  \
  void __tsan_write##bytes(void* p) {                                                                        \
    host_cuda::touch_aligned(p, bytes, host_cuda::Access::kWrite, HC_PC);                                    \
  }                                                                                                          \
  void __tsan_unaligned_read##bytes(void* p) {                                                               \
    host_cuda::touch(p, bytes, host_cuda::Access::kRead, HC_PC);                                             \
  }                                                                                                          \
  void __tsan_unaligned_write##bytes(void* p) {                                                              \
    host_cuda::touch(p, bytes, host_cuda::Access::kWrite, HC_PC);                                            \
  }                                                                                                          \
  void __tsan_volatile_read##bytes(void* p) { host_cuda::touch(p, bytes, host_cuda::Access::kRead, HC_PC); } \
  void __tsan_volatile_write##bytes(void* p) { host_cuda::touch(p, bytes, host_cuda::Access::kWrite, HC_PC); }
extern "C" {
HC_ACCESS(1)
HC_ACCESS(2)
HC_ACCESS(4)
HC_ACCESS(8)
HC_ACCESS(16)
void __tsan_read_range(void* p, size_t n) { host_cuda::touch(p, n, host_cuda::Access::kRead, HC_PC); }
void __tsan_write_range(void* p, size_t n) { host_cuda::touch(p, n, host_cuda::Access::kWrite, HC_PC); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
}
// NOLINTEND
