// Cubins that carry their source, for tests: a GPU's kernel runs on the host (compiler_core/host_cuda). The
// NVRTC for tests (fake_nvrtc.cpp) puts source and options behind the cubin; the CUDA driver for tests loads
// the library `fakecuda_sources` when it meets such a cubin.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fake_cuda {

// What stands behind a cubin: this word and a newline, then fields, each "KEY BYTES\n" and its bytes, and
// "end 0\n".
inline constexpr std::string_view kSourceMark = "FAKESOURCE\n";

// Bytes of a cubin, which has its tables at its end.
inline size_t image_bytes(const char* image) {
  const auto at = [image](size_t offset, int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; ++i)
      number |= static_cast<uint64_t>(static_cast<unsigned char>(image[offset + static_cast<size_t>(i)]))
                << (8 * i);
    return number;
  };
  const uint64_t segments = at(32, 8) + at(54, 2) * at(56, 2), sections = at(40, 8) + at(58, 2) * at(60, 2);
  return segments > sections ? segments : sections;
}

struct SourceRun {
  std::string symbol;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared_bytes = 0;
  std::vector<std::string> parameters;  // the bytes of each
};

class SourceModule {
 public:
  virtual ~SourceModule() = default;
  // "80", "90".
  virtual int arch() const = 0;
  // The bytes of each parameter; null: there is no such kernel.
  virtual const std::vector<int>* parameters(const std::string& symbol) const = 0;
  // Runs it. `end_of`: of the allocation that an address lies in; 0: in none. `changed`: whether it wrote
  // other bytes than there were. Returns what waiting for it answers: 0, or a driver's error.
  virtual int run(const SourceRun& run, const std::function<uint64_t(uint64_t)>& end_of, bool& changed) = 0;
};

}  // namespace fake_cuda

extern "C" {
// Of a cubin with its source behind it; null: it has none. The caller owns it.
fake_cuda::SourceModule* fake_source_module(const char* image);
}
