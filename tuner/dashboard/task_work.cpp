#include "tuner/dashboard/task_work.h"

#include <sys/wait.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/output_file.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/base/scratch_folder.h"
#include "tuner/jobs/job_text.h"
#include "tuner/text/facts.h"

namespace tuner::dashboard {
namespace {

constexpr std::chrono::seconds kLongest{300};
constexpr size_t kMostOutput = 1 << 20, kMostArchive = 64 << 20;

struct Ended {
  int code = 0;
  std::string out;  // and what it said
};

// Runs it to its end. Both outputs go to one file, as nobody waits for lines.
Result<Ended> run_program(const ScratchFolder& folder, const std::string& path,
                          std::vector<std::string> words) {
  const std::string log = folder.file("log");
  ASSIGN_OR_RETURN(const pid_t pid, start_program({.path = path, .words = std::move(words), .log = log}));
  const std::optional<int> status = wait_for_end(pid, kLongest);
  if (!status) {
    constexpr std::chrono::seconds kGrace{5};
    end_program(pid, kGrace);
    return unavailable("it took longer than ", kLongest.count(), " s and was ended. Run it yourself: tuner");
  }
  ASSIGN_OR_RETURN(std::string out, read_whole(log, kMostOutput));
  return Ended{WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status), std::move(out)};
}

// The last line that begins with "tuner: ", or the last one. `file`, which is ours and gone when it is read,
// is called FILE.
std::string complaint(const std::string& out, const std::string& file) {
  constexpr std::string_view kOurs = "tuner: ", kFile = "FILE";
  std::string last, ours;
  for (size_t from = 0; from < out.size();) {
    const size_t end = std::min(out.find('\n', from), out.size());
    if (end > from) last = out.substr(from, end - from);
    if (last.starts_with(kOurs)) ours = last.substr(kOurs.size());
    from = end + 1;
  }
  std::string text = ours.empty() ? last : ours;
  for (size_t at = 0; (at = text.find(file, at)) != std::string::npos; at += kFile.size())
    text.replace(at, file.size(), kFile);
  return printable(text);
}

// A job file of the one task, in `folder`.
Result<std::string> job_file(const ScratchFolder& folder, const JobRow::Task& task) {
  ASSIGN_OR_RETURN(Workload workload, workload_from_key(task.workload_key));
  const std::string path = folder.file("task.json");
  RETURN_IF_ERROR(write_file(
      path,
      job_text({{.workload = std::move(workload), .target = task.target, .constants = task.constants}})));
  return path;
}

}  // namespace

Result<Download> TaskWork::library(const JobRow::Task& task) const {
  const std::unique_lock lock(one_, std::try_to_lock);
  if (!lock) return unavailable("another library or check is being made: ask again when it has ended");
  ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make("tuner_library"));
  ASSIGN_OR_RETURN(const std::string file, job_file(*folder, task));
  const std::string out = folder->file("kernel"), archive = folder->file("kernel.tar.gz");
  ASSIGN_OR_RETURN(const Ended built,
                   run_program(*folder, program_,
                               {"tuner", "build", file, "-o", out, "--name", "kernel", "--db", db_,
                                "--constants", std::string(constants_name(task.constants))}));
  if (built.code != 0) return invalid_argument("tuner build: ", complaint(built.out, file));
  ASSIGN_OR_RETURN(const Ended packed, run_program(*folder, "/bin/tar",
                                                   {"tar", "-czf", archive, "-C", folder->path(), "kernel"}));
  if (packed.code != 0) return failed("tar: ", complaint(packed.out, archive));
  Download made{.name = "kernel.tar.gz", .type = "application/gzip"};
  ASSIGN_OR_RETURN(made.bytes, read_whole(archive, kMostArchive));
  return made;
}

Result<std::string> TaskWork::verify(const JobRow::Task& task) const {
  const std::unique_lock lock(one_, std::try_to_lock);
  if (!lock) return unavailable("another library or check is being made: ask again when it has ended");
  ASSIGN_OR_RETURN(const auto folder, ScratchFolder::make("tuner_verify"));
  ASSIGN_OR_RETURN(const std::string file, job_file(*folder, task));
  ASSIGN_OR_RETURN(
      const Ended ended,
      run_program(*folder, program_, {"tuner", "verify", "--times", "--json", file, "--db", db_}));
  // 1 says that the time is outside of its interval: an answer, too.
  const size_t begin = ended.out.starts_with("[\n") ? 0 : ended.out.find("\n[\n"), end = ended.out.rfind(']');
  if (ended.code > 1 || begin == std::string::npos || end == std::string::npos || end < begin)
    return invalid_argument("tuner verify: ", complaint(ended.out, file));
  auto found = nlohmann::ordered_json::parse(ended.out.substr(begin, end - begin + 1), nullptr,
                                             /*allow_exceptions=*/false);
  if (!found.is_array() || found.empty())
    return invalid_argument("tuner verify: ", complaint(ended.out, file));
  return one_line({{"inside", ended.code == 0}, {"verified", std::move(found[0])}});
}

}  // namespace tuner::dashboard
