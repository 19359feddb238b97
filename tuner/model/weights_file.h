// WeightsFile: writes the constants of a model into the file that its kernels read them from (tuner_model.h
// tells the format). Constants come one after the other and are not kept, so a model may have more of them
// than memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/output_file.h"
#include "compiler_core/base/status.h"
#include "compiler_core/runtime/tuner_model.h"

namespace tuner {

struct WeightsEntry {
  int64_t offset = 0, bytes = 0;
  std::string digest;             // SHA-256
  std::vector<std::string> uses;  // what people call it: "conv1: weight"
};

struct WeightsFacts {
  int64_t bytes = 0;  // of the file
  uint64_t checksum = 0;
  std::string digest;  // of all entries and where they stand; in the header and in the library's table
  std::vector<WeightsEntry> entries;
};

class WeightsFile {
 public:
  // Replaces the file.
  static Result<WeightsFile> create(const std::string& path);

  // Returns the offset of the bytes in the file. The same bytes stand there once.
  Result<int64_t> add(std::string_view bytes, const std::string& use);
  // Writes the header. The file is whole then.
  Result<WeightsFacts> finish();

 private:
  explicit WeightsFile(OutputFile file) : file_(std::move(file)) {}
  Status append(std::string_view bytes);  // and zeros up to a multiple of 64

  OutputFile file_;
  tuner_checksum sum_{};
  std::map<std::string, size_t> known_;  // entries by digest
  WeightsFacts facts_;
};

}  // namespace tuner
