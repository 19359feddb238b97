// What a kernel on the host asks of its runtime. Both are compiled on the machine that checks the kernel:
// this header and device.h with the user's text, runtime.cpp apart from it and from its macros.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned hc_x = 1, unsigned hc_y = 1, unsigned hc_z = 1) : x(hc_x), y(hc_y), z(hc_z) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace host_cuda {

enum class Access { kRead, kWrite, kAtomic };
// Says that the running thread touches these bytes; `pc`: an address in the code that does.
void touch(const void* at, size_t bytes, Access how, const void* pc);

enum class Op { kBarrier, kSyncWarp, kShuffle, kVote, kUnit };
// Returns when all threads of the block, or all lanes of the mask, have come here.
void sync_block(const char* file, int line);
void sync_warp(unsigned mask, Op op, const char* file, int line);
// Every lane of `mask` brings a value of at most 16 bytes; returns where lane `from` of the warp left it.
const void* exchange(unsigned mask, const void* value, size_t bytes, int from, Op op, const char* file,
                     int line);
// Bit l is set if lane l of the mask brought a value other than 0.
unsigned vote(unsigned mask, bool value, const char* file, int line);
// The sum of what all threads of the block brought; and how many they are.
int count_block(bool value, int* of, const char* file, int line);
int lane();
unsigned active();
void fence();

// A buffer of global memory, read from the file `given` unless that is null. An input may not be written.
void* buffer(const char* name, size_t bytes, size_t element_bytes, const char* given, bool is_input);
// False: it ended at a finding after which nothing has a meaning.
bool launch(const unsigned grid[3], const unsigned block[3], size_t shared_bytes, void (*body)());
// Writes a buffer's bytes to a file.
void keep(const void* buffer, const char* file);
// Ends the program, well or after such a finding; findings stand in the file host_cuda_findings.
[[noreturn]] void finish(bool well);

}  // namespace host_cuda
