#include "tuner/farm/slurm_farm.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "compiler_core/base/child_process.h"
#include "compiler_core/base/output_file.h"

namespace tuner::slurm {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{30};     // for one command of Slurm
constexpr size_t kMostOutput = size_t{32} << 20;  // of one command

std::string on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = folder + "/" + program; !folder.empty() && ::access(file.c_str(), X_OK) == 0)
      return file;
  return "";
}

// A file of this call alone, gone when it ends.
class Scratch {
 public:
  Scratch() {
    const char* folder = std::getenv("TMPDIR");
    name_ = str(folder != nullptr && folder[0] == '/' ? folder : "/tmp", "/tuner-slurm-XXXXXX");
    fd_ = ::mkostemp(name_.data(), O_CLOEXEC);
  }
  ~Scratch() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(name_.c_str());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  bool is_there() const { return fd_ >= 0; }
  const std::string& name() const { return name_; }
  std::string read() const {
    std::ifstream file(name_, std::ios::binary);
    std::string text(kMostOutput, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    return text;
  }

 private:
  std::string name_;
  int fd_ = -1;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Result<std::string> run(const std::string& program, std::vector<std::string> words) {
  const std::string path = on_path(program);
  if (path.empty())
    return failed(program, ": not found in PATH. Slurm's commands are needed here (Debian: slurm-client)");
  const Scratch output;
  if (!output.is_there()) return failed(output.name(), ": cannot be made");
  words.insert(words.begin(), program);
  ASSIGN_OR_RETURN(const pid_t pid,
                   start_program({.path = path, .words = std::move(words), .log = output.name()}));
  const std::optional<int> status = wait_for_end(pid, kPatience);
  if (!status) {
    end_program(pid, std::chrono::milliseconds(0));
    return failed(program, ": no answer within ", kPatience.count(),
                  " s. Is slurmctld up? scontrol ping tells");
  }
  std::string text = output.read();
  if (*status != 0) return failed(program, " (", ending_text(*status), "): ", first_line(text));
  return text;
}

// The last line of numbers: warnings may stand before it. A cluster may follow behind a semicolon.
Result<std::string> job_of(const std::string& text) {
  std::istringstream lines(text);
  std::string job;
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find(';'));
    if (!line.empty() && line.find_first_not_of("0123456789") == std::string::npos) job = line;
  }
  if (job.empty()) return failed("sbatch: found \"", first_line(text), "\", expected the number of a job");
  return job;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The fleet is what the script's `id=` begins with.
std::string fleet_of(const std::string& script) {
  constexpr std::string_view kBegin = "\nid=", kEnd = ".s$SLURM_ARRAY_JOB_ID";
  const size_t begin = script.find(kBegin), end = script.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return script.substr(begin + kBegin.size(), end - begin - kBegin.size());
}

// A scheduler forgets jobs that have ended: that is no failure.
Status cancel(std::vector<std::string> options, const std::vector<std::string>& jobs) {
  constexpr size_t kAtATime = 500;
  for (size_t at = 0; at < jobs.size(); at += kAtATime) {
    std::vector<std::string> words = options;
    words.insert(words.end(), jobs.begin() + static_cast<std::ptrdiff_t>(at),
                 jobs.begin() + static_cast<std::ptrdiff_t>(std::min(jobs.size(), at + kAtATime)));
    const Result<std::string> done = run("scancel", std::move(words));
    if (!done && done.message().find("Invalid job id") == std::string::npos &&
        done.message().find("already completing or completed") == std::string::npos)
      return done.status();
  }
  return Status::ok();
}

}  // namespace

SlurmFarm::SlurmFarm(std::string folder, std::string fleet)
    : folder_(std::move(folder)), name_(fs::path(folder_).filename()), fleet_(std::move(fleet)) {
  std::istringstream lines(read_file(folder_ + "/draining"));
  for (std::string line; std::getline(lines, line);) draining_.insert(line);
}

Result<SlurmFarm> SlurmFarm::open(const std::string& folder) {
  const std::string script = read_file(folder + "/worker.sh");
  if (script.empty())
    return not_found("no farm in ", folder,
                     ". Bring one up: tuner farm slurm up --credentials FILE --workers N");
  const std::string fleet = fleet_of(script);
  if (fleet.empty())
    return invalid_argument(folder,
                            "/worker.sh: expected a line id=FLEET.s$SLURM_ARRAY_JOB_ID..., found none");
  return SlurmFarm(folder, fleet);
}

Result<SlurmFarm> SlurmFarm::create(const std::string& folder, WorkerWish wish) {
  wish.logs = folder + "/logs";
  RETURN_IF_ERROR(check_wish(wish));
  SlurmFarm farm(folder, wish.fleet);
  ASSIGN_OR_RETURN(const std::vector<Task> tasks, farm.tasks());
  if (!tasks.empty())
    return Status(
        StatusCode::kAborted,
        str(tasks.size(), " workers of ", wish.name,
            " are in Slurm's queue already. To change how many: tuner farm slurm scale N; to end them: "
            "tuner farm slurm down"));
  RETURN_IF_ERROR(make_folders(wish.logs));
  RETURN_IF_ERROR(replace_file(folder + "/worker.sh", worker_script(wish), Durability::kSynced));
  RETURN_IF_ERROR(farm.forget_drained({}));
  return farm;
}

Result<std::vector<Task>> SlurmFarm::tasks() const {
  std::vector<std::string> words = task_words();
  words.insert(words.end(), {"--me", "--name=" + job_name(name_)});
  ASSIGN_OR_RETURN(const std::string text, run("squeue", std::move(words)));
  int strange = 0;
  std::vector<Task> tasks = tasks_from(text, strange);
  if (strange > 0)
    return failed("squeue: ", strange,
                  " lines are not as expected; the first output line: ", first_line(text));
  return tasks;
}

Result<std::vector<Node>> SlurmFarm::nodes() const {
  ASSIGN_OR_RETURN(const std::string text, run("sinfo", node_words()));
  int strange = 0;
  return nodes_from(text, strange);
}

int SlurmFarm::staying(const std::vector<Task>& tasks) const {
  return static_cast<int>(
      std::ranges::count_if(tasks, [&](const Task& t) { return !t.ends() && !draining_.contains(t.job); }));
}

// Written before they are told: a second TERM would end a worker at once.
Status SlurmFarm::note_draining(const std::vector<std::string>& jobs) {
  draining_.insert(jobs.begin(), jobs.end());
  std::string text;
  for (const std::string& job : draining_) text += job + "\n";
  return replace_file(folder_ + "/draining", text, Durability::kSynced);
}

Status SlurmFarm::forget_drained(const std::vector<Task>& tasks) {
  const size_t before = draining_.size();
  std::erase_if(draining_, [&](const std::string& job) {
    return std::ranges::none_of(tasks, [&](const Task& t) { return t.job == job; });
  });
  return draining_.size() == before ? Status::ok() : note_draining({});
}

std::string SlurmFarm::Scaled::text() const {
  std::string lines;
  if (plan.submit > 0) lines += str(plan.submit, " workers submitted as array ", array, "\n");
  if (!plan.cancel.empty()) lines += str(plan.cancel.size(), " waiting tasks cancelled\n");
  if (!plan.drain.empty())
    lines += str(plan.drain.size(), " workers told to finish what they hold, and to end\n");
  return plan.empty() ? "nothing to change\n" : lines;
}

Result<SlurmFarm::Scaled> SlurmFarm::scale(int wanted) {
  ASSIGN_OR_RETURN(const std::vector<Task> there, tasks());
  RETURN_IF_ERROR(forget_drained(there));
  Scaled out{.plan = scale_plan(there, draining_, wanted), .array = {}};
  if (out.plan.submit > 0) {
    ASSIGN_OR_RETURN(const std::string text, run("sbatch", {"--parsable", str("--array=1-", out.plan.submit),
                                                            folder_ + "/worker.sh"}));
    ASSIGN_OR_RETURN(out.array, job_of(text));
  }
  RETURN_IF_ERROR(cancel({}, out.plan.cancel));
  if (out.plan.drain.empty()) return out;
  RETURN_IF_ERROR(note_draining(out.plan.drain));
  RETURN_IF_ERROR(cancel({"--batch", "--signal=TERM"}, out.plan.drain));
  return out;
}

Result<int> SlurmFarm::down(bool now) {
  if (!now) {
    ASSIGN_OR_RETURN(const Scaled scaled, scale(0));
    return static_cast<int>(scaled.plan.cancel.size() + scaled.plan.drain.size());
  }
  ASSIGN_OR_RETURN(const std::vector<Task> there, tasks());
  std::vector<std::string> jobs;
  jobs.reserve(there.size());
  for (const Task& task : there) jobs.push_back(task.job);
  RETURN_IF_ERROR(cancel({}, jobs));
  return static_cast<int>(jobs.size());
}

std::string default_folder(const std::string& name) {
  const auto from = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? std::string(value) : std::string();
  };
  const std::string state = from("XDG_STATE_HOME"), home = from("HOME");
  return str(!state.empty() ? state : home.empty() ? "/tmp" : home + "/.local/state", "/tuner/slurm/", name);
}

}  // namespace tuner::slurm
