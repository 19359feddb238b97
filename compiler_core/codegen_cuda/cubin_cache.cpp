// A file: one line of text "tuner cubin 1 DIGEST CUBIN_BYTES LOG_BYTES\n", the cubin, the log. DIGEST is the
// SHA-256 of both.
#include "compiler_core/codegen_cuda/cubin_cache.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler_core/artifact/artifact.h"

namespace tuner::cuda {
namespace {

namespace fs = std::filesystem;
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
  std::ifstream in(file_of(directory, key), std::ios::binary);
  std::string header;
  if (!in || !std::getline(in, header)) return std::nullopt;
  std::string rest((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
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
  static std::atomic<uint64_t> counter{0};
  std::error_code error;
  fs::create_directories(directory, error);
  const std::string path = file_of(directory, key);
  const std::string temporary = str(path, ".", getpid(), ".", counter++, ".tmp");
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << header_of(compiled) << compiled.cubin << compiled.log;
  out.close();
  if (out) fs::rename(temporary, path, error);
  if (out && !error) return Status::ok();
  fs::remove(temporary, error);
  return failed(path, ": cannot be written; cubins are compiled again every time");
}

}  // namespace tuner::cuda
