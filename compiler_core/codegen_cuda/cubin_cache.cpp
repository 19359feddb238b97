// A file: one line of text "tuner cubin 1 DIGEST CUBIN_BYTES LOG_BYTES\n", the cubin, the log. DIGEST is the
// SHA-256 of both.
#include "compiler_core/codegen_cuda/cubin_cache.h"

#include <sstream>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"

namespace tuner::cuda {
namespace {

constexpr const char* kMagic = "tuner cubin 1";

std::string file_of(const std::string& directory, const std::string& key) {
  return str(directory, "/", key, ".cubincache");
}

std::string header_of(const Compiled& c) {
  return str(kMagic, " ", sha256_hex(c.cubin + c.log), " ", c.cubin.size(), " ", c.log.size(), "\n");
}

}  // namespace

std::string cache_key(const std::string& source, const std::vector<std::string>& options,
                      const NvrtcVersion& version) {
  std::string all = str("nvrtc ", version.major, ".", version.minor, "\n");
  for (const std::string& option : options) all += option + "\n";
  return sha256_hex(all + source);
}

std::optional<Compiled> read_cache(const std::string& directory, const std::string& key) {
  const Result<std::string> text = read_whole(file_of(directory, key));
  const size_t end = text ? text->find('\n') : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  const std::string header = text->substr(0, end), rest = text->substr(end + 1);
  // Only the sizes are taken from the header; what it has to be is then computed and compared.
  std::istringstream words(header);
  std::string word, digest;
  size_t cubin_bytes = 0, log_bytes = 0;
  words >> word >> word >> word >> digest >> cubin_bytes >> log_bytes;
  if (!words || cubin_bytes > rest.size() || rest.size() - cubin_bytes != log_bytes) return std::nullopt;
  Compiled compiled{.cubin = rest.substr(0, cubin_bytes), .log = rest.substr(cubin_bytes)};
  if (header + "\n" != header_of(compiled)) return std::nullopt;
  return compiled;
}

Status write_cache(const std::string& directory, const std::string& key, const Compiled& compiled) {
  const std::string path = file_of(directory, key);
  Status status = make_folders(directory);
  if (status) status = replace_file(path, str(header_of(compiled), compiled.cubin, compiled.log));
  return status ? status : failed(status.message(), "; cubins are compiled again every time");
}

}  // namespace tuner::cuda
