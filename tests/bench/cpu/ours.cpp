#include "tests/bench/cpu/ours.h"

#include <algorithm>
#include <cstring>

#include "compiler_core/base/elements.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/runtime/flush.h"
#include "compiler_core/runtime/kernel.h"
#include "tests/bench/common/statistics.h"
#include "tuner/jobs/tasks.h"

namespace tuner {
namespace {

constexpr int kRaceRounds = 15;
constexpr double kRaceQuantile = 0.25;

Result<ChosenKernel> default_kernel(const CliTask& task, Algorithms algorithms) {
  ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving, templates_for(task.workload, task.target));
  for (const AnyTemplate* t : serving) {
    if (algorithms == Algorithms::kDirect && t->algorithm() != "direct") continue;
    ChosenKernel chosen{.schedule_template = t};
    ASSIGN_OR_RETURN(chosen.instance, t->apply(task.workload, task.target));
    chosen.config = chosen.instance->space().at(chosen.instance->space().default_index());
    return chosen;
  }
  return not_found("no direct template serves ", task.key);
}

// A compiled kernel with the memory of all its calls.
class OurKernel {
 public:
  OurKernel(Kernel kernel, ThreadPool& pool)
      : kernel_(std::move(kernel)),
        workspace_(std::max<int64_t>(kernel_.workspace_bytes(pool.threads()), 64)),
        runtime_(pool.runtime(workspace_.data())) {}

  // Another set of operands: filled, and packed where the kernel wants that.
  Status add_set(const BenchCase& bench_case) {
    Set set;
    const Manifest& manifest = kernel_.manifest();
    for (const std::vector<ArgInfo>* infos : {&manifest.args, &manifest.pack_args})
      for (const ArgInfo& info : *infos) {
        const auto [at, fresh] = set.memory.try_emplace(info.name);
        if (!fresh) continue;
        at->second = AlignedBuffer(info.bytes);
        if (info.role == BufferRole::kInput || info.role == BufferRole::kConstant)
          fill(bench_case, info, at->second);
      }
    set.args = pointers(set, manifest.args);
    if (kernel_.pack_entry() != nullptr)
      RETURN_IF_ERROR(kernel_.pack(pointers(set, manifest.pack_args).data(), runtime_));
    sets_.push_back(std::move(set));
    return Status::ok();
  }

  void call(int set) {
    const Status status = kernel_.call(sets_[static_cast<size_t>(set)].args.data(), runtime_);
    CHECK(status.is_ok()) << status.message();
  }
  // What a call is given; not its workspace.
  void flush() const {
    const Set& set = sets_.front();
    for (const ArgInfo& info : kernel_.manifest().args) {
      const AlignedBuffer& memory = set.memory.at(info.name);
      flush_lines(memory.data(), memory.bytes());
    }
  }
  void poison() { std::memset(output().data(), 0xff, static_cast<size_t>(output().bytes())); }
  std::vector<double> answer(const Workload& workload, const HostTensor& out) {
    const std::vector<double> values = load_elements(output().data(), out.count(), out.dtype);
    const std::string layout = image_layout(workload, "out");
    return layout.empty() ? values : from_layout(values, out.shape, layout);
  }

 private:
  struct Set {
    std::map<std::string, AlignedBuffer> memory;
    std::vector<void*> args;
  };

  static std::vector<void*> pointers(const Set& set, const std::vector<ArgInfo>& infos) {
    std::vector<void*> found;
    for (const ArgInfo& info : infos) found.push_back(set.memory.at(info.name).data());
    return found;
  }
  static void fill(const BenchCase& bench_case, const ArgInfo& info, const AlignedBuffer& memory) {
    const HostTensor& plain = bench_case.operand(info.name);
    const std::string layout = image_layout(bench_case.workload(), info.name);
    const std::vector<float> values =
        layout.empty() ? plain.values : to_layout(plain.values, plain.shape, layout);
    const auto count = static_cast<int64_t>(values.size());
    CHECK(count * dtype_bytes(info.dtype) == memory.bytes() && info.dtype == plain.dtype)
        << info.name << ": " << count << " values of " << plain.dtype << " for " << memory.bytes()
        << " bytes of " << info.dtype;
    store_elements(values.data(), count, info.dtype, memory.data());
  }
  AlignedBuffer& output() { return sets_.front().memory.at("out"); }

  const Kernel kernel_;
  const AlignedBuffer workspace_;
  const tuner_runtime runtime_;
  std::vector<Set> sets_;
};

Result<Contestant> contestant_of(const BenchCase& bench_case, const CliTask& task, const ChosenKernel& chosen,
                                 const std::string& remark, int sets, ThreadPool& pool) {
  ASSIGN_OR_RETURN(Contestant contestant,
                   our_kernel(bench_case, {task.target, *chosen.schedule_template, *chosen.instance},
                              chosen.config, sets, pool));
  contestant.detail = remark + contestant.detail;
  return contestant;
}

// The fastest of them, timed in turn; its samples of the race are dropped.
Contestant winner_of_race(std::vector<Contestant> finalists, TurnOptions how) {
  if (finalists.size() > 1) {
    how.rounds = kRaceRounds;
    take_turns(how, finalists);
    std::stable_sort(finalists.begin(), finalists.end(), [](const Contestant& a, const Contestant& b) {
      return quantile(a.ns, kRaceQuantile) < quantile(b.ns, kRaceQuantile);
    });
  }
  Contestant winner = std::move(finalists.front());
  winner.ns.clear();
  return winner;
}

}  // namespace

Result<Contestant> our_kernel(const BenchCase& bench_case, const OurTemplate& from, const Config& config,
                              int sets, ThreadPool& pool) {
  ASSIGN_OR_RETURN(const Program program, from.instance.instantiate(config));
  ASSIGN_OR_RETURN(const Artifact artifact, compile(program, from.target));
  ASSIGN_OR_RETURN(Kernel loaded, Kernel::load(artifact));
  const auto kernel = std::make_shared<OurKernel>(std::move(loaded), pool);
  for (int i = 0; i < sets; ++i) RETURN_IF_ERROR(kernel->add_set(bench_case));
  const HostTensor out = bench_case.operand("out");
  return Contestant{
      .name = "ours",
      .kind = ContestantKind::kOurs,
      .algorithm = std::string(from.schedule_template.algorithm()),
      .detail = str(from.schedule_template.name(), " ", config.to_text()),
      .call = [kernel](int set) { kernel->call(set); },
      .poison = [kernel] { kernel->poison(); },
      .answer = [kernel, workload = bench_case.workload(), out] { return kernel->answer(workload, out); },
      .tolerance = from.schedule_template.tolerance(bench_case.workload()),
      .flush = [kernel] { kernel->flush(); },
  };
}

Result<Contestant> our_contestant(const BenchCase& bench_case, const OurChoice& choice,
                                  const KnownConfigs& known, const TurnOptions& how, ThreadPool& pool) {
  ASSIGN_OR_RETURN(const CliTask task,
                   task_from_keys(bench_case.workload().key(), host_target(pool.threads()).name()));
  std::vector<Contestant> finalists;
  for (const TimedConfig& c :
       known.fastest(task.key, task.target_name, choice.algorithms, choice.finalists)) {
    const Result<ChosenKernel> chosen = choose_config(task, c.template_name, c.template_version, c.config);
    // A config of a space that has changed since.
    if (!chosen && chosen.status().code() == StatusCode::kNotFound) continue;
    if (!chosen) return chosen.status();
    ASSIGN_OR_RETURN(Contestant finalist, contestant_of(bench_case, task, *chosen, "", how.sets, pool));
    finalists.push_back(std::move(finalist));
  }
  if (finalists.empty()) {
    ASSIGN_OR_RETURN(const ChosenKernel chosen, default_kernel(task, choice.algorithms));
    ASSIGN_OR_RETURN(Contestant untuned,
                     contestant_of(bench_case, task, chosen, "DEFAULT CONFIG, not tuned: ", how.sets, pool));
    finalists.push_back(std::move(untuned));
  }
  return winner_of_race(std::move(finalists), how);
}

}  // namespace tuner
