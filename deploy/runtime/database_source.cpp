// Kernels for what a database says is best: compiled, or found in the cache.
#include <algorithm>

#include "db/resolve/resolve.h"
#include "deploy/runtime/builder.h"
#include "deploy/runtime/kernel_cache.h"
#include "deploy/runtime/source.h"

namespace tuner::runtime {

namespace {

// What this library would write into a record. It does not look at the machine's caches, so a record of
// another CPU of the same target is not told apart here.
Present present(const Target&) {
  return {.toolchains = {toolchain()}, .template_version = [](std::string_view name) {
            const AnyTemplate* t = find_template(name);
            return t == nullptr ? 0 : t->version();
          }};
}

class DatabaseSource final : public Source {
 public:
  DatabaseSource(std::unique_ptr<Store> store, Target target, const SourceOptions& options)
      : store_(std::move(store)),
        target_(std::move(target)),
        cache_(options.cache_dir),
        artifact_dir_(options.artifact_dir),
        algorithms_(options.algorithms),
        constants_(options.constants),
        lock_(options.lock),
        resolver_(
            store_.get(),
            {.fix = options.fix, .present = present, .lock = lock_.get(), .lock_fix = options.lock_fix}),
        defaults_(nullptr, {}) {}

  std::string target() const override { return target_.name(); }

  Result<Choice> choose(const Workload& workload) const override {
    ASSIGN_OR_RETURN(const Answer answer, resolver_.resolve(workload, target_, algorithms_, constants_));
    return choice_of(answer, workload);
  }

  Result<std::optional<Choice>> default_for(const Workload& workload, const Choice& chosen) const override {
    ASSIGN_OR_RETURN(Answer answer, defaults_.resolve(workload, target_, algorithms_));
    if (answer.template_name == chosen.template_name && answer.config == chosen.config)
      return std::optional<Choice>();
    answer.note.clear();  // that nothing is tuned
    ASSIGN_OR_RETURN(Choice plain, choice_of(answer, workload));
    return std::optional(std::move(plain));
  }

 private:
  Result<Choice> choice_of(const Answer& answer, const Workload& workload) const {
    Choice choice{.target = target_.name(),
                  .kind = std::string(answer_kind_name(answer.kind)),
                  .template_name = answer.template_name,
                  .config = answer.config,
                  .note = answer.note};
    if (const AnyTemplate* t = find_template(answer.template_name)) choice.algorithm = t->algorithm();
    ASSIGN_OR_RETURN(const Artifact artifact, artifact_of(answer, workload, choice));
    ASSIGN_OR_RETURN(choice.kernel, Kernel::load(artifact));
    return choice;
  }

  // The very code that was measured where it lies at hand; else what was compiled before, by whoever shares
  // the cache; else compiled now.
  Result<Artifact> artifact_of(const Answer& answer, const Workload& workload, Choice& choice) const {
    const std::string measured_by = answer.tuned ? answer.tuned->environment.toolchain : std::string();
    const std::string compiler = can_compile() ? toolchain() : measured_by;
    const std::string source =
        str(answer.workload_key, "\n", answer.target, "\n", answer.template_name, " version ",
            answer.template_version, "\n", answer.config, "\n", compiler, "\n");
    if (!artifact_dir_.empty() && is_choice(answer.kind) && answer.tuned)
      if (Result<Artifact> measured = load_artifact(artifact_dir_, answer.tuned->artifact_digest))
        return measured;
    if (std::optional<Artifact> kept = cache_.load(source)) return *std::move(kept);
    if (!can_compile())
      return not_found("no compiled kernel for ", answer.workload_key, " on \"", answer.target,
                       "\", and this library has no code generator. Expected artifact ",
                       answer.tuned ? answer.tuned->artifact_digest : str("of ", answer.template_name),
                       artifact_dir_.empty()
                           ? str(" (tuner_options.artifact_dir names a folder of artifacts)")
                           : str(" in ", artifact_dir_),
                       "; or open a bundle: tuner build FILE -o DIR");
    ASSIGN_OR_RETURN(const ResolvedKernel kernel, kernel_of(answer, workload, target_));
    ASSIGN_OR_RETURN(const Program program, kernel.instance->instantiate(kernel.config));
    ASSIGN_OR_RETURN(const Artifact built, build(program, target_));
    choice.compiled = true;
    // A cache that cannot be written costs time at the next start and nothing else.
    static_cast<void>(cache_.save(source, built));
    return built;
  }

  std::unique_ptr<Store> store_;  // null: no database yet
  const Target target_;
  const KernelCache cache_;
  const std::string artifact_dir_, algorithms_;
  const Constants constants_;
  const std::shared_ptr<const AnswerLock> lock_;
  const Resolver resolver_;
  const Resolver defaults_;  // without a database: gives the default config of each task
};

// The targets that tasks of the database have, for a message.
std::string targets_of(const Store& store) {
  const Result<std::vector<JobRow::Task>> tasks = store.tasks();
  std::vector<std::string> names;
  if (tasks)
    for (const JobRow::Task& task : *tasks)
      if (std::find(names.begin(), names.end(), task.target) == names.end()) names.push_back(task.target);
  std::string text;
  for (size_t i = 0; i < names.size() && i < 8; ++i) text += str(i == 0 ? "\"" : ", \"", names[i], "\"");
  return text.empty() ? "nothing yet" : text;
}

}  // namespace

Result<std::unique_ptr<Source>> open_database(const std::string& path, const SourceOptions& options) {
  set_how_a_database_is_given("to tuner_open()");  // whoever calls has no options of a command
  const std::string file = path.empty() ? default_db_path() : path;
  Result<std::unique_ptr<Store>> store = Store::open(file, Store::Mode::kRead);
  const bool missing = !store && store.status().code() == StatusCode::kNotFound;
  if (!store && !(missing && path.empty())) return store.status();
  std::unique_ptr<Store> opened = store ? *std::move(store) : nullptr;
  Result<Target> target = resolve(options.target.empty() ? "cpu" : options.target);
  if (!target)
    return invalid_argument(target.message(),
                            opened ? str("; ", file, " has ", targets_of(*opened)) : std::string());
  if (!target->family->in_process())
    return invalid_argument(
        "target \"", target->name(),
        "\": kernels for GPUs are launched by the C file that `tuner build` writes; this library "
        "runs those of CPUs");
  return std::unique_ptr<Source>(
      std::make_unique<DatabaseSource>(std::move(opened), *std::move(target), options));
}

}  // namespace tuner::runtime
