#include "compiler_core/foreign/build_command.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "compiler_core/artifact/command_bundle.h"
#include "compiler_core/base/child_process.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/foreign/commands.h"
#include "compiler_core/foreign/confined_program.h"
#include "compiler_core/foreign/source_build.h"
#include "compiler_core/ir/foreign_code.h"

namespace tuner {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 4096, kMostBytes = size_t{256} << 20;
constexpr int kMostFolders = 16;  // inside each other

// Reads a folder by its descriptors: what a stranger's process puts in its place meanwhile, as a link to a
// file of ours, is not followed.
class FolderReader {
 public:
  explicit FolderReader(std::vector<CommandBundle::File>& files) : files_(files) {}

  // Closes the descriptor.
  Status read(int fd, const std::string& prefix, int depth) {
    DIR* const folder = ::fdopendir(fd);
    if (folder == nullptr) return ::close(fd), failed(prefix, ": ", std::strerror(errno));
    Status status;
    while (const dirent* const entry = ::readdir(folder)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") status = one(::dirfd(folder), name, prefix, depth);
      if (!status) break;
    }
    ::closedir(folder);
    return status;
  }

 private:
  Status one(int folder, const std::string& name, const std::string& prefix, int depth) {
    const int fd = ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info {};
    if (fd < 0 || ::fstat(fd, &info) != 0) {
      if (fd >= 0) ::close(fd);
      return Status::ok();  // a link, a socket, or one that its owner may not read
    }
    if (S_ISDIR(info.st_mode)) {
      if (depth < kMostFolders) return read(fd, str(prefix, name, "/"), depth + 1);
      ::close(fd);
      return invalid_config("the build left more than ", kMostFolders, " folders inside each other");
    }
    const Status status = S_ISREG(info.st_mode) ? file(fd, prefix + name, info) : Status::ok();
    ::close(fd);
    return status;
  }
  Status file(int fd, std::string name, const struct stat& info) {
    const auto size = static_cast<size_t>(info.st_size);
    if (files_.size() >= kMostFiles || size > kMostBytes - bytes_)
      return invalid_config("the build left more than ", kMostFiles, " files, or ", kMostBytes >> 20, " MiB");
    bytes_ += size;
    std::string bytes(size, '\0');
    size_t at = 0;
    while (at < size) {
      const ssize_t n = ::read(fd, bytes.data() + at, size - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    bytes.resize(at);
    files_.push_back({std::move(name), (info.st_mode & S_IXUSR) != 0, std::move(bytes)});
    return Status::ok();
  }

  std::vector<CommandBundle::File>& files_;
  size_t bytes_ = 0;
};

Status run_build(const ForeignCommand& command, const std::string& folder) {
  if (command.build.empty()) return Status::ok();
  ASSIGN_OR_RETURN(std::string path, command_path(command.build.front(), folder));
  const ConfinedProgram build{.path = path,
                              .words = command.build,
                              .folder = folder,
                              .readable = {fs::path(path).parent_path()},
                              .environment = command.environment,
                              .untrusted = true};
  ASSIGN_OR_RETURN(const ConfinedEnd end, run_confined(build));
  if (!end.timed_out && end.status == 0) return Status::ok();
  const std::string said = said_by(end.output, folder);
  return invalid_config(command.build.front(),
                        end.timed_out ? str(" did not end within ", build.deadline.count() / 1000, " s")
                                      : " did not end well: " + ending_text(end.status),
                        said.empty() ? "" : "\n", said);
}

}  // namespace

Result<Artifact> build_command(const Program& program, const std::string& target_name, int threads) {
  const ForeignCode& code = *program.foreign;
  const ForeignCommand& command = *code.command;
  Artifact artifact;
  ASSIGN_OR_RETURN(artifact.manifest.toolchain, commands_toolchain(code.compiler));
  ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make("tuner-command"));
  for (const ForeignCode::File& file : *code.files) {
    RETURN_IF_ERROR(make_folders(fs::path(folder->file(file.name)).parent_path()));
    RETURN_IF_ERROR(replace_file(folder->file(file.name), file.text));
    // Which of them are programs, their user says by running them.
    if (::chmod(folder->file(file.name).c_str(), 0755) != 0)
      return failed(file.name, ": ", std::strerror(errno));
  }
  RETURN_IF_ERROR(run_build(command, folder->path()));
  CommandBundle bundle{.run = command.run, .environment = command.environment};
  bundle.result = {command.pattern, command.scale_ns, command.is_rate, command.unit};
  const int fd = ::open(folder->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return failed(folder->path(), ": ", std::strerror(errno));
  RETURN_IF_ERROR(FolderReader(bundle.files).read(fd, "", 0));
  std::ranges::sort(bundle.files, {}, &CommandBundle::File::name);
  artifact.binary = bundle.to_bytes();
  artifact.manifest.kind = binary_kind::kCommand;
  artifact.manifest.entry = program.name;
  artifact.manifest.threads = threads;
  artifact.manifest.target = target_name;
  artifact.manifest.digest = artifact_digest(artifact);
  return artifact;
}

Status no_function(const Program& program) {
  return invalid_argument(program.foreign->command->run.front(),
                          " is a program of a user's, which has no function to show or to link; its knobs: "
                          "tuner show --as defines, tuner build --emit defines");
}

}  // namespace tuner
