// TextOutput: writes text to a file, compressed if its name ends in .gz. "-" is standard output.
#pragma once

#include <string>
#include <string_view>

#include "compiler_core/base/output_file.h"

struct gzFile_s;

namespace tuner::exchange {

// OutputFile says which paths are accepted and what happens to an unfinished file.
class TextOutput {
 public:
  static Result<TextOutput> open(const std::string& path);
  TextOutput(TextOutput&& other) noexcept;
  TextOutput& operator=(TextOutput&&) = delete;
  ~TextOutput();

  Status write(std::string_view text);  // part of it may stay in memory until finish()
  Status finish();

 private:
  explicit TextOutput(OutputFile file) : file_(std::move(file)) {}
  Status flush();

  OutputFile file_;
  std::string path_, waiting_;
  gzFile_s* gz_ = nullptr;
};

// Writes a whole file at once.
Status write_text(const std::string& path, std::string_view text);

}  // namespace tuner::exchange
