#include "compiler_core/foreign/landlock_rules.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "compiler_core/foreign/descriptor.h"

namespace tuner {
namespace {

// Of newer headers than Debian 12's.
constexpr uint64_t kTruncate = uint64_t{1} << 14, kIoctl = uint64_t{1} << 15;
constexpr uint64_t kAnyNetwork = 3;
constexpr uint64_t kScoped = 3;  // no signals to others, no abstract sockets
struct RulesetAttributes {
  uint64_t handled_files = 0, handled_network = 0, scoped = 0;
};

constexpr uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                              LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctl;

// The right to files below `path`; a path that is not there gives none.
Status allow(int ruleset, const std::string& path, uint64_t access, uint64_t handled) {
  const Descriptor place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (place.fd() < 0) return errno == ENOENT ? Status::ok() : failed(path, ": ", std::strerror(errno));
  struct stat info {};
  if (::fstat(place.fd(), &info) != 0) return failed(path, ": ", std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) access &= kOfFiles;
  landlock_path_beneath_attr rule{.allowed_access = access & handled, .parent_fd = place.fd()};
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return failed(path, ": landlock_add_rule: ", std::strerror(errno));
  return Status::ok();
}

}  // namespace

int landlock_version() {
  return static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

Result<int> rules_for(const ConfinedProgram& program) {
  const int version = landlock_version();
  uint64_t handled = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // all of version 1
  if (version >= 2) handled |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) handled |= kTruncate;
  if (version >= 5) handled |= kIoctl;
  RulesetAttributes all{.handled_files = handled,
                        .handled_network = version >= 4 ? kAnyNetwork : 0,
                        .scoped = version >= 6 ? kScoped : 0};
  const size_t size = version >= 6 ? sizeof all : version >= 4 ? 16 : 8;
  const int ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &all, size, 0));
  if (ruleset < 0) return failed("landlock_create_ruleset: ", std::strerror(errno));
  Status allowed =
      allow(ruleset, program.folder,
            handled & ~uint64_t{LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK}, handled);
  for (const char* path :
       {"/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"})
    if (allowed) allowed = allow(ruleset, path, kRead, handled);
  for (const std::string& path : program.readable)
    if (allowed) allowed = allow(ruleset, path, kRead, handled);
  if (allowed)
    allowed =
        allow(ruleset, "/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE, handled);
  if (allowed) return ruleset;
  ::close(ruleset);
  return allowed;
}

}  // namespace tuner
