// Linking in process with LLD, through memory files.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "compiler_core/codegen/machine.h"
#include "lld/Common/Driver.h"

LLD_HAS_DRIVER(elf)

namespace tuner::codegen {
namespace {

namespace fs = std::filesystem;

// A folder of this process in memory (/dev/shm, else the temporary folder), removed with everything in it.
class Scratch {
 public:
  static Result<std::unique_ptr<Scratch>> make() {
    for (const char* parent : {"/dev/shm", "/tmp"}) {
      std::string path = str(parent, "/tuner-link-XXXXXX");
      if (mkdtemp(path.data()) != nullptr) return std::unique_ptr<Scratch>(new Scratch(path));
    }
    return failed("cannot make a folder in /dev/shm or /tmp to link in: ", std::strerror(errno));
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Status write_whole(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return failed(path, ": cannot create: ", std::strerror(errno));
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close(fd);
      return failed(path, ": cannot write: ", std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  close(fd);
  return Status::ok();
}

Result<std::string> read_whole(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed(path, ": cannot open: ", std::strerror(errno));
  std::string bytes;
  char chunk[1 << 16];
  ssize_t n = 0;
  while ((n = read(fd, chunk, sizeof chunk)) > 0) bytes.append(chunk, static_cast<size_t>(n));
  close(fd);
  if (n < 0) return failed(path, ": cannot read: ", std::strerror(errno));
  return bytes;
}

}  // namespace

Result<std::string> link_shared(const std::vector<std::string>& objects, const Target& target,
                                std::string_view soname) {
  static std::mutex mutex;  // LLD keeps its state in globals
  const std::lock_guard lock(mutex);
  ASSIGN_OR_RETURN(const std::unique_ptr<Scratch> scratch, Scratch::make());
  std::vector<std::string> inputs;
  for (size_t i = 0; i < objects.size(); ++i) {
    inputs.push_back(scratch->file(str("kernel", i, ".o")));
    RETURN_IF_ERROR(write_whole(inputs.back(), objects[i]));
  }
  const std::string out = scratch->file("kernel.so"), soname_option = str("--soname=", soname);
  const char* emulation = target.is_x86() ? "elf_x86_64" : "aarch64linux";
  // Nothing in the output may depend on where it was linked: no build id, no paths.
  std::vector<const char*> args = {"ld.lld",      "-m",          emulation, "--shared", "--hash-style=gnu",
                                   "-z",          "noexecstack", "-z",      "now",      "--build-id=none",
                                   "--strip-all", "--threads=1", "-o",      out.c_str()};
  if (!soname.empty()) args.push_back(soname_option.c_str());
  for (const std::string& input : inputs) args.push_back(input.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  static bool broken = false;
  if (broken)
    return Status(StatusCode::kInternal,
                  "the linker failed earlier in this process and cannot run again; restart it");
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  broken = !result.canRunAgain;
  if (messages.find("duplicate symbol") != std::string::npos)
    return invalid_argument("kernels that cannot be in one library: ", messages);
  if (result.retCode != 0) return Status(StatusCode::kInternal, str("linking a kernel failed: ", messages));
  return read_whole(out);
}

}  // namespace tuner::codegen
