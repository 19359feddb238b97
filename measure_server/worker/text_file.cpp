#include "measure_server/worker/text_file.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace tuner {

Result<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found(path.string(), ": no such file");
  std::ostringstream text;
  text << in.rdbuf();
  if (!in.good() && !in.eof()) return failed(path.string(), ": cannot be read");
  return text.str();
}

Status write_text(const std::filesystem::path& path, std::string_view text) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const std::filesystem::path temporary = path.string() + str(".tmp", ::getpid());
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) {
      std::filesystem::remove(temporary, error);
      return failed(path.string(), ": cannot be written; is the disk full?");
    }
  }
  std::filesystem::rename(temporary, path, error);
  if (error) return failed(path.string(), ": ", error.message());
  return Status::ok();
}

}  // namespace tuner
