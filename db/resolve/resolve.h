// Resolver: which config a workload gets on a target, how that is known, and how good it probably is.
//
// One place answers for `tuner query`, `tuner build`, the daemon and an application's runtime:
//
//   exact        this task was tuned: the fastest config of its records, or of its latest race; also where
//                this machine's target had another name then
//   same-family  the same shape was tuned with another epilogue, or the same workload for a near target:
//                other threads, another CPU with the same vectors, another GPU of the generation
//   nearest      other shapes of the operator were tuned on this target: the config of theirs, moved to the
//                nearest valid one of this space, that a predictor learned from the database likes best
//   portable     a config of a cover set (`tuner cover --store`), good for all shapes it was computed from
//   default      nothing of that is there, or nothing of it is predicted to be faster
//
// A task that was tuned is answered exactly. Else the others compete: the answer is what is predicted to be
// fastest, and never something that is predicted to be slower than the default config.
//
// Reads the store only; no LLVM, no gRPC, no XGBoost. Every method may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/target.h"
#include "db/staleness.h"
#include "db/store.h"
#include "templates/schedule_template.h"

namespace tuner {

enum class AnswerKind : uint8_t { kExact = 1, kSameFamily, kNearest, kPortable, kDefault };
std::string_view answer_kind_name(AnswerKind kind);  // "exact", "same-family", "nearest", ...
std::optional<AnswerKind> answer_kind_from_name(std::string_view name);

// A tuned config an answer rests on.
struct Basis {
  std::string trial_id;
  std::string workload_key, target;
  double time_ns = 0;  // there, not of the workload asked for
  int64_t finished_at_us = 0;
};

struct Answer {
  AnswerKind kind = AnswerKind::kDefault;
  std::string workload_key, target;  // what was asked for, canonical
  std::string template_name;
  int template_version = 1;
  std::string config;
  // What was measured of this very config: of the task itself (exact), of the task it comes from
  // (same-family).
  std::optional<TunedConfig> tuned;
  // Speed as a fraction of what tuning this task would reach, and where it lies in 80 % of cases (the share
  // that was found is printed by tests/bench/leave_one_out). Exact: 1, and the interval of the time measured.
  // `known` is false where there is nothing to predict from: an untuned operator or target; the three are
  // then 0.
  bool known = false;
  double predicted = 0, low = 0, high = 0;
  double predicted_default = 0;  // of the default config; 0 when not known
  std::vector<Basis> rests_on;   // where the config was measured; none of a default
  // What the prediction was learned from; 0 where none was needed or possible.
  int learned_shapes = 0;
  int64_t learned_records = 0;
  // The records are of another compiler, template or machine than the present one, and which.
  bool stale = false;
  std::string stale_reason;
  // One line: what is lost, what is used instead, the command that fixes it. Empty when exact, not stale, and
  // measured on the target itself, under its own name.
  std::string note;
};

// An answer ready to be instantiated.
struct ResolvedKernel {
  const AnyTemplate* schedule_template = nullptr;
  std::unique_ptr<TemplateInstance> instance;
  Config config;
};
// NotFound when this program cannot build the answer: it lacks the template or that version of it, or the
// config is not valid for the task any more; the message says which.
Result<ResolvedKernel> kernel_of(const Answer& answer, const Workload& workload, const Target& target);

struct ResolverOptions {
  // What a note tells people to run.
  std::string fix = "tuner submit FILE";
  // What a record of the target would say today, to tell what is stale. Null: only template versions are
  // judged.
  std::function<Present(const Target& target)> present;
  // Where the database has no predictor of an operator on a target, it is learned from the records then and
  // there: a second or two at the first question. Off: there is no nearest answer then.
  bool learn_if_missing = false;
  // Fill what takes a look at all records of the task: TunedConfig::trials and outcomes of exact answers, and
  // the default's time where their race does not tell it.
  bool count_outcomes = false;
};

class Resolver {
 public:
  // `store` may be null (no database: every answer is a default) and must outlive this. Rows that are written
  // later are seen by later calls.
  explicit Resolver(const Store* store, ResolverOptions options = {});
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // `algorithms`: that the kernel may use, as JobRow::Task; empty: any. NotFound when no template serves the
  // task (one line a template with its reason); otherwise there is always an answer. A damaged database is an
  // error, never a default.
  // `constants`: what the times it rests on mean. Only exact answers know cold ones; the others, and a task
  // without constants, are answered from warm times, and the note says so.
  Result<Answer> resolve(const Workload& workload, const Target& target, std::string_view algorithms = {},
                         Constants constants = Constants::kWarm) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tuner
