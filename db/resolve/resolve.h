// Resolver: chooses the config for a workload on a target, and says how it is known and how good it probably
// is.
//
// `tuner query`, `tuner build`, the daemon and an application's runtime all ask here:
//
//   exact        this task was tuned: the fastest config of its records, or of its latest race; also where
//                this machine's target had another name then
//   same-family  the same shape was tuned with another epilogue, or the same workload for a near target:
//                other threads, another CPU with the same vectors, another GPU of the generation
//   nearest      other shapes of the operator were tuned on this target: the config of theirs, moved to the
//                nearest valid one of this space, that a predictor learned from the database likes best
//   portable     a config of a cover set (`tuner cover --store`), good for all shapes it was computed from
//   default      nothing of that is there, or nothing of it is predicted to be faster
//   locked       a lock file says so (answer_lock.h): with one, there are no other answers
//
// A tuned task is answered exactly. Otherwise the other kinds compete, and the one predicted to be fastest
// wins. The answer is never predicted slower than the default config.
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

class AnswerLock;

// The first five are on the wire (proto/tuning.proto), too; a lock file is obeyed by who reads it.
enum class AnswerKind : uint8_t { kExact = 1, kSameFamily, kNearest, kPortable, kDefault, kLocked };
std::string_view answer_kind_name(AnswerKind kind);  // "exact", "same-family", "nearest", ...
std::optional<AnswerKind> answer_kind_from_name(std::string_view name);
// True if somebody chose the config for just this task: by tuning it, or in a lock file.
inline bool is_choice(AnswerKind kind) { return kind == AnswerKind::kExact || kind == AnswerKind::kLocked; }

// A tuned config that an answer rests on.
struct Basis {
  std::string trial_id;
  std::string workload_key, target;
  double time_ns = 0;  // for the workload named here, not the one asked for
  int64_t finished_at_us = 0;
  std::string trial_name;  // what people call the trial: "j3.17"; the id where outcomes are not counted
};

struct Answer {
  AnswerKind kind = AnswerKind::kDefault;
  std::string workload_key, target;  // what was asked for, canonical
  std::string template_name;
  int template_version = 1;
  std::string config;
  // What was measured of this config: for the task itself (exact; locked, if the database has it), or for the
  // task it comes from (same-family).
  std::optional<TunedConfig> tuned;
  std::string locked_at;  // "answers.lock:7"; empty unless locked
  // Speed as a fraction of what tuning this task would reach, with the range of 80 % of cases
  // (tests/bench/leave_one_out checks that share). Exact answers: 1, with the interval of the measured time.
  // If `known` is false there was nothing to predict from (an untuned operator or target), and the three are
  // 0.
  bool known = false;
  double predicted = 0, low = 0, high = 0;
  double predicted_default = 0;  // the same for the default config; 0 if not known
  std::vector<Basis> rests_on;   // where the config was measured; empty for a default
  // What the prediction was learned from; 0 if there was none.
  int learned_shapes = 0;
  int64_t learned_records = 0;
  // True if the records were made with another compiler, template version or machine than today's;
  // stale_reason says which.
  bool stale = false;
  std::string stale_reason;
  // One line: what is lost, what is used instead, and the command that fixes it. Empty if the answer is
  // exact, not stale, and measured on this target under this name.
  std::string note;
};

// True if both are the same config of the same version of the same template.
bool is_config_of(const Answer& a, const Answer& b);

// An answer ready to be instantiated.
struct ResolvedKernel {
  const AnyTemplate* schedule_template = nullptr;
  std::unique_ptr<TemplateInstance> instance;
  Config config;
};
// Makes the kernel of an answer. NotFound if this program lacks the template or its version, or if the config
// is no longer valid for the task; the message says which.
Result<ResolvedKernel> kernel_of(const Answer& answer, const Workload& workload, const Target& target);

struct ResolverOptions {
  // The command that a note tells people to run.
  std::string fix = "tuner submit FILE";
  // Returns what a record made today would say about the target, to detect stale records. Null: only template
  // versions are compared.
  std::function<Present(const Target& target)> present;
  // If the database has no predictor for an operator on a target, learns one from the records at the first
  // question, in a second or two. False: there is then no nearest answer.
  bool learn_if_missing = false;
  // Fills fields that need all records of the task: TunedConfig::trials and outcomes of exact answers, and
  // the default's time if the race does not tell it.
  bool count_outcomes = false;
  // Answers come from this file alone, which must outlive the resolver; the store only tells what was
  // measured of them. Null: no file.
  const AnswerLock* lock = nullptr;
  // The command that adds an entry to it, for errors.
  std::string lock_fix = "tuner lock FILE -o answers.lock";
};

class Resolver {
 public:
  // `store` may be null (every answer is then a default) and must outlive this. Later calls see rows that are
  // written later.
  explicit Resolver(const Store* store, ResolverOptions options = {});
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // `algorithms`: what the kernel may use, as in JobRow::Task; empty: any. `constants`: the kind of times to
  // rest on. Only exact answers know cold times; the other kinds, and tasks without constants, use warm
  // times, and the note says so. NotFound if no template serves the task (one line per template with its
  // reason); otherwise there is always an answer. A damaged database is an error, never a default. With a
  // lock file, errors are those of locked_answer() (locked.h).
  Result<Answer> resolve(const Workload& workload, const Target& target, std::string_view algorithms = {},
                         Constants constants = Constants::kWarm) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tuner
