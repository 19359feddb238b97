// What the system tells of a candidate's process: what memory it takes, how long it waited for a core.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>

#include "measure_server/runner/candidate_run.h"

namespace tuner {
namespace {

// What the file holds now; empty: the process is gone.
std::string_view text_of_proc(int fd, std::span<char> room) {
  const ssize_t n = pread(fd, room.data(), room.size(), 0);
  return {room.data(), n > 0 ? static_cast<size_t>(n) : 0};
}

// Of "Name:    123 kB", in bytes; 0 if there is no such line.
int64_t line_of_status(std::string_view status, std::string_view name) {
  const size_t at = status.find(name);
  int64_t kib = 0;
  if (at == std::string_view::npos) return 0;
  const size_t digits = status.find_first_of("0123456789", at + name.size());
  if (digits == std::string_view::npos) return 0;
  std::from_chars(status.data() + digits, status.data() + status.size(), kib);
  return kib * 1024;
}

}  // namespace

// The resident size, which costs little to ask for; and what is in no resident size: page tables, swapped
// pages, huge pages. Those need address space, or many mappings, which takes longer to make than some looks
// last.
int64_t CandidateRun::memory_bytes() {
  constexpr int kLookCloselyEvery = 5;
  char room[4096];
  const std::string statm(text_of_proc(statm_, room));
  long total = 0, resident = 0;
  if (sscanf(statm.c_str(), "%ld %ld", &total, &resident) != 2) return 0;
  const int64_t page = sysconf(_SC_PAGESIZE);
  int64_t bytes = resident * page;
  if (total * page <= r_.memory_limit_bytes && ++looks_ % kLookCloselyEvery != 0) return bytes;
  const std::string_view status = text_of_proc(status_, room);
  for (const char* const beside : {"\nVmPTE:", "\nVmSwap:", "\nHugetlbPages:"})
    bytes += line_of_status(status, beside);
  return bytes;
}

// Of its main thread, since it was forked; 0 where the system does not tell.
std::chrono::nanoseconds CandidateRun::waited_for_core() const {
  char room[128];
  const std::string schedstat(text_of_proc(schedstat_, room));
  long long ran_ns = 0, waited_ns = 0;
  if (sscanf(schedstat.c_str(), "%lld %lld", &ran_ns, &waited_ns) != 2) return {};
  return std::chrono::nanoseconds(waited_ns);
}

}  // namespace tuner
