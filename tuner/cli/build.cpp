// tuner build FILE... -o DIR: the best known kernels of job files as one library that a program can link.
// bundle.h tells what DIR holds.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "compiler_core/base/c_names.h"
#include "tuner/answers/lock_update.h"
#include "tuner/bundle/bundle.h"
#include "tuner/bundle/bundle_folder.h"
#include "tuner/bundle/bundle_text.h"
#include "tuner/bundle/cpu_variants.h"
#include "tuner/cli/command.h"
#include "tuner/jobs/locked_tasks.h"
#include "tuner/study/present.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"
#include "tuner/text/hint.h"
#include "tuner/text/progress_line.h"

namespace tuner::cli {

namespace {

using nlohmann::ordered_json;

struct BuildOptions {
  std::vector<std::string> files;
  std::string directory, db, target, cpus, name, lock, emit = "so,a,schedule", constants = "warm";
  bool json = false, with_default = false;
};

Result<std::vector<CliTask>> read_all(const BuildOptions& options) {
  std::vector<CliTask> all;
  for (const std::string& file : options.files) {
    ASSIGN_OR_RETURN(std::vector<CliTask> tasks, read_tasks(file, options.target));
    // What a file tunes for is its own affair; what is built is for warm constants unless it is told.
    for (CliTask& task : tasks)
      task.constants = constants_from_name(options.constants).value_or(Constants::kWarm);
    std::move(tasks.begin(), tasks.end(), std::back_inserter(all));
  }
  return all;
}

// On a terminal, a line that is written over while many kernels compile.
class Counter {
 public:
  explicit Counter(size_t total) : total_(total), shown_(total > 4 && ::isatty(2) == 1) {}
  void step() {
    ++done_;
    if (!shown_) return;
    draw_progress(str("compiled ", done_, " of ", total_, " kernels"));
    if (done_ == total_) leave_progress();
  }

 private:
  size_t total_, done_ = 0;
  bool shown_;
};

// `resolver_of`: for a variant that of its target, for all others that of an empty one.
Result<std::vector<BundleKernel>> build_kernels(
    const std::vector<BundleTask>& tasks, const std::string& name,
    const std::function<std::unique_ptr<Resolver>(const std::string&)>& resolver_of, const Emit& emit) {
  std::vector<BundleKernel> kernels;
  Counter counter(tasks.size());
  std::map<std::string, std::unique_ptr<Resolver>> resolvers;
  for (const BundleTask& task : tasks) {
    const std::string target = task.of.empty() ? "" : task.task.target_name;
    auto found = resolvers.find(target);
    if (found == resolvers.end()) found = resolvers.emplace(target, resolver_of(target)).first;
    ASSIGN_OR_RETURN(BundleKernel kernel, build_kernel(task, name, *found->second, emit));
    counter.step();
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// The command that writes the entries anew; for several CPUs one of each. What is built is for warm constants
// unless it is told, and a file may tune for cold ones.
std::string fix_of(const BuildOptions& options, const std::vector<BundleTask>& tasks) {
  if (options.cpus.empty())
    return lock_command(options.files, options.lock, options.target, options.constants);
  std::set<std::string> commands;
  for (const BundleTask& task : tasks)
    commands.insert(lock_command(options.files, options.lock, task.task.target_name, options.constants));
  std::string all;
  for (const std::string& command : commands) all += (all.empty() ? "" : "; ") + command;
  return all;
}

// With a lock file the database only tells times: one that cannot be read is no reason not to build.
Result<std::unique_ptr<Store>> open_store(const BuildOptions& options) {
  Result<std::unique_ptr<Store>> store = open_if_there(options.db);
  if (store || options.lock.empty()) return store;
  std::fprintf(stderr, "tuner: no times are known: %s\n", store.message().c_str());
  return std::unique_ptr<Store>();
}

Status build(const BuildOptions& options) {
  ASSIGN_OR_RETURN(Emit emit, parse_emit(options.emit));
  emit.defaults = options.with_default;
  if (!options.name.empty()) RETURN_IF_ERROR(check_c_name(options.name).with_context("--name: "));
  ASSIGN_OR_RETURN(const std::vector<CliTask> tasks, read_all(options));
  const std::string name = !options.name.empty()                   ? options.name
                           : tasks.size() > 1                      ? "kernels"
                           : !tasks[0].name.empty()                ? tasks[0].name
                           : !tasks[0].workload.own_name().empty() ? tasks[0].workload.own_name()
                                                                   : kernel_name(tasks[0]);
  ASSIGN_OR_RETURN(std::vector<BundleTask> named, name_functions(tasks, name, options.name));
  if (!options.cpus.empty()) {
    if (!options.target.empty()) return invalid_argument("expected one of --target and --for, found both");
    ASSIGN_OR_RETURN(named, for_each_cpu(named, options.cpus, name));
  }
  ASSIGN_OR_RETURN(const std::optional<AnswerLock> lock, read_lock(options.lock));
  const std::string lock_fix = fix_of(options, named);
  std::vector<CliTask> built;
  for (const BundleTask& task : named) built.push_back(task.task);
  if (lock) RETURN_IF_ERROR(check_locked(*lock, built, lock_fix));
  ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, open_store(options));
  const auto resolver_of = [&](const std::string& target) {
    return std::make_unique<Resolver>(
        store.get(), ResolverOptions{.fix = submit_commands(options.files, /*plain=*/true, target),
                                     .present = [](const Target& of) { return present_here(of); },
                                     .learn_if_missing = true,
                                     .lock = lock ? &*lock : nullptr,
                                     .lock_fix = lock_fix});
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleFolder> folder, BundleFolder::open(options.directory, name));
  ASSIGN_OR_RETURN(const std::vector<BundleKernel> kernels, build_kernels(named, name, resolver_of, emit));
  ASSIGN_OR_RETURN(const std::vector<BundleFile> files, bundle_files(name, kernels, emit));
  RETURN_IF_ERROR(folder->write(files));
  if (options.json)
    std::printf("%s", files.back().bytes.c_str());
  else
    std::fputs(bundle_text(options.directory, kernels, files).c_str(), stdout);
  // Of each that is not as tuned for just its task: what is lost and what mends it.
  for (const BundleKernel& k : kernels)
    if (!k.note.empty())
      std::fprintf(stderr, "tuner: %s: %s\n", k.function.c_str(), with_commands(k.note).c_str());
  const auto defaults = std::ranges::count(kernels, AnswerKind::kDefault, &BundleKernel::kind);
  if (defaults > 0)
    std::fprintf(stderr, "tuner: %td of %zu kernels run default configs. To tune them: %s\n", defaults,
                 kernels.size(), submit_commands(options.files, kernels).c_str());
  return Status::ok();
}

}  // namespace

void add_build_command(Command app, CommandContext& context) {
  auto options = std::make_shared<BuildOptions>();
  const Command command = add_command(
      app, context, "build",
      "Write the best known kernels as a library with a C header, for CMake, pkg-config or a plain compiler. "
      "GPU kernels become cubins with launchers in C",
      [options] { return report(build(*options)); });
  add_job_file(command, options->files, "Job files; - is standard input").required();
  command.add_option("-o,--output", options->directory, "Folder to write into; created if it is missing")
      .type_name("DIR")
      .required();
  command.add_option(
      "--name", options->name,
      "Name of the library, and of the function if there is one kernel and the job file gives it "
      "no \"name\"");
  command
      .add_option("--emit", options->emit,
                  "What to write, joined by commas: so and a (the library, shared and static), obj, asm, "
                  "llvm, schedule (a file a kernel); defines (the macros of a kernel of yours)")
      .type_name("LIST")
      .offers(offer_list(emit_words()))
      .show_default();
  command
      .add_option("--constants", options->constants,
                  "Build what is fastest with constants warm in the caches, or cold in memory")
      .one_of({"warm", "cold"})
      .show_default();
  add_cpus_option(command, options->cpus);
  command.add_flag(
      "--with-default", options->with_default,
      "Add each kernel's default config, for the runtime library to race it against (TUNER_VERIFY)");
  add_db_option(command, options->db);
  add_lock_option(command, options->lock);
  add_target_option(command, options->target);
  add_json_option(command, options->json);
}

}  // namespace tuner::cli
