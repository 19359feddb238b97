// Puts data out of the caches, so that what reads them next reads memory.
#pragma once

#include <cstdint>

namespace tuner {

// Writes back and drops every cache line that holds any of these bytes, from all caches of all cores, and
// waits until that is done. The bytes keep their values. Memory has to be mapped and readable; it may be
// shared and read-only. No bytes: nothing happens. Makes no system call.
void flush_lines(const void* data, int64_t bytes);

// The addresses flush_lines() goes through: first, first + line_bytes, ... before end.
struct LineRange {
  uintptr_t first = 0, end = 0;
};
LineRange lines_of(uintptr_t data, int64_t bytes, int64_t line_bytes);

}  // namespace tuner
