#include "deploy/onnxruntime/part_store.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/runtime/cpu_hardware.h"
#include "compiler_core/runtime/host_cpu.h"

namespace tuner::ort {
namespace {

namespace fs = std::filesystem;

constexpr char kModelFile[] = "part.onnx";
constexpr int kFormat = 1;  // of keys: what another one compiled is not found

// OK if nobody but us and root can change what is there.
Status check_trust(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    return invalid_argument(path, ": cannot be read: ", std::generic_category().message(errno));
  if ((about.st_uid == ::geteuid() || about.st_uid == 0) && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0)
    return Status::ok();
  return invalid_argument(path, ": others can write to it, and libraries are loaded from there; ",
                          "expected a folder of yours: chmod go-w");
}

// Whatever the umask is, what we made is ours.
void close_to_others(const std::string& folder) {
  std::error_code ignored;
  const auto others = fs::perms::group_write | fs::perms::others_write;
  fs::permissions(folder, others, fs::perm_options::remove, ignored);
  for (fs::recursive_directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    std::error_code skipped;
    if (!at->is_symlink(skipped)) fs::permissions(at->path(), others, fs::perm_options::remove, skipped);
  }
}

PartOperands operands_of(const NodeGraph& graph, const Part& part) {
  const auto bytes = [&](const std::vector<size_t>& values) {
    std::vector<int64_t> out;
    for (const size_t v : values) out.push_back(bytes_of(graph.values[v]));
    return out;
  };
  return {bytes(part.inputs), bytes(part.outputs)};
}

// What `tuner` said last, in a line.
std::string complaint(const std::string& log) {
  constexpr size_t kMost = 1 << 20;
  const Result<std::string> text = read_whole(log, kMost);
  std::string last;
  for (size_t from = 0; text && from < text->size();) {
    const size_t end = std::min(text->find('\n', from), text->size());
    const std::string line = text->substr(from, end - from);
    if (line.starts_with("tuner: ")) last = line.substr(sizeof "tuner: " - 1);
    from = end + 1;
  }
  return printable(last);
}

// The CPU that target "cpu" means: its model and its units. The rest of a fingerprint changes with microcode
// and with how many CPUs a process may use.
std::string host() {
  const std::string fingerprint = hardware_fingerprint();
  std::string out = fingerprint.substr(0, std::min(fingerprint.find(" microcode "), fingerprint.find(" | ")));
  for (const std::string& unit : host_cpu_units()) out += " " + unit;
  return out;
}

bool is_program(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path);
}

}  // namespace

std::string PartStore::key_of(const PartModel& model) const {
  const bool is_host = options_.target == "cpu" || options_.target.starts_with("cpu ");
  return sha256_hex(str(kFormat, "\n", options_.target, "\n", is_host ? host() : "", "\n", options_.threads,
                        "\n", digest_of(model)));
}

Result<std::string> PartStore::program() const {
  if (!options_.program.empty()) {
    if (is_program(options_.program)) return options_.program;
    return invalid_argument("option program: found no program ", printable(options_.program));
  }
  std::vector<std::string> folders;
  if (const char* asked = std::getenv("TUNER_BIN_DIR"); asked != nullptr && *asked != 0)
    folders.emplace_back(asked);
  Dl_info here{};
  static const char anchor = 0;  // in this library
  if (::dladdr(&anchor, &here) != 0 && here.dli_fname != nullptr) {
    const std::string folder = fs::absolute(here.dli_fname).parent_path().string();
    // lib/, lib/tuner/, lib/x86_64-linux-gnu/tuner/
    folders.insert(folders.end(), {folder + "/../bin", folder + "/../../bin", folder + "/../../../bin"});
  }
  const char* const path = std::getenv("PATH");
  const std::string all = path == nullptr ? "" : path;
  for (size_t from = 0; from < all.size();) {
    const size_t end = std::min(all.find(':', from), all.size());
    if (end > from) folders.push_back(all.substr(from, end - from));
    from = end + 1;
  }
  for (const std::string& folder : folders)
    if (const std::string file = folder + "/tuner"; is_program(file)) return file;
  return failed("the program tuner is not here; install the package tuner, or give the option program");
}

Status PartStore::run_compiler(const std::string& folder, const std::string& key) const {
  ChildProgram child;
  ASSIGN_OR_RETURN(child.path, program());
  child.log = folder + "/log";
  constexpr size_t kOfKey = 16;
  child.words = {"tuner",
                 "compile",
                 str(folder, "/", kModelFile),
                 "-o",
                 folder + "/out",
                 "--name",
                 str("part_", key.substr(0, kOfKey)),
                 "--threads",
                 str(options_.threads),
                 "--target",
                 options_.target};
  if (options_.tune_seconds > 0)
    child.words.insert(child.words.end(), {"--time-limit", str(options_.tune_seconds)});
  else
    child.words.emplace_back("--no-tune");
  if (!options_.db.empty()) child.words.insert(child.words.end(), {"--db", options_.db});
  ASSIGN_OR_RETURN(const pid_t pid, start_program(child));
  const auto limit = std::chrono::seconds(3600 + static_cast<int64_t>(options_.tune_seconds));
  const std::optional<int> ended = wait_for_end(pid, limit);
  if (!ended) {
    constexpr std::chrono::seconds kGrace{10};
    end_program(pid, kGrace);
    return failed("tuner compile did not end within ", limit.count(), " s");
  }
  if (WIFEXITED(*ended) && WEXITSTATUS(*ended) == 0) return Status::ok();
  const std::string said = complaint(child.log);
  if (said.empty()) return failed("tuner compile: ", ending_text(*ended));
  return invalid_argument("tuner compile: ", said);
}

Status PartStore::compile(const PartModel& model, const std::string& key) const {
  std::string work = str(options_.cache, "/.", key, "-XXXXXX");
  if (::mkdtemp(work.data()) == nullptr)
    return invalid_argument(options_.cache,
                            ": cannot be written to: ", std::generic_category().message(errno));
  Status done = write_model(model, work, kModelFile);
  if (done) done = run_compiler(work, key);
  std::error_code error;
  if (done) {
    close_to_others(work + "/out");
    fs::rename(work + "/out", str(options_.cache, "/", key), error);
    // Another process was faster: its library is as good.
    if (error && !fs::exists(str(options_.cache, "/", key)))
      done = failed(options_.cache, ": ", error.message());
  }
  fs::remove_all(work, error);
  return done;
}

Result<std::shared_ptr<PartLibrary>> PartStore::find_or_compile(const NodeGraph& graph,
                                                                const Part& part) const {
  const PartModel model = model_of(graph, part);
  const std::string key = key_of(model), folder = str(options_.cache, "/", key);
  std::error_code error;
  if (!fs::exists(options_.cache, error) && options_.compile) {
    RETURN_IF_ERROR(make_folders(options_.cache));
    close_to_others(options_.cache);
  }
  const bool is_there = fs::exists(folder, error);
  if (!is_there && !options_.compile)
    return not_found("its library ", folder, " is not there, and option compile is 0");
  RETURN_IF_ERROR(check_trust(options_.cache));
  if (!is_there) {
    say_(str("compiling ", part.nodes.size(), " nodes into ", folder));
    RETURN_IF_ERROR(compile(model, key));
  }
  RETURN_IF_ERROR(check_trust(folder));
  RETURN_IF_ERROR(check_trust(str(folder, "/", kPlanFile)));
  return PartLibrary::open(folder, operands_of(graph, part), options_.threads);
}

}  // namespace tuner::ort
