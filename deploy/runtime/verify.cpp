#include "deploy/runtime/verify.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "compiler_core/runtime/cpu_hardware.h"
#include "db/resolve/resolve.h"
#include "templates/schedule_template.h"

namespace tuner::runtime {
namespace {

using Made = Result<std::shared_ptr<const Function>>;

Made make_function(const Workload& workload, Choice choice, Pools& pools) {
  const int threads = std::max(1, choice.kernel.manifest().threads);
  return Function::make(workload, std::move(choice), pools.of(threads));
}

Tolerance tolerance_by(const Choice& choice, const Workload& workload) {
  const AnyTemplate* const t = find_template(choice.template_name);
  return t == nullptr ? tolerance_of(workload) : t->tolerance(workload);
}

// Each answer may be off by its own.
Tolerance together(const Tolerance& a, const Tolerance& b) {
  return {a.absolute + b.absolute, a.relative + b.relative};
}

// "12.3 us"
std::string microseconds(double ns) {
  constexpr double kTenth = 100, kTens = 10;
  return str(std::round(ns / kTenth) / kTens, " us");
}

// "its kernel takes 12.3 us here, its default config 9.8 us (1.26 times as long)"
std::string times_text(const FirstUse& found) {
  constexpr double kHundred = 100;
  return str("its kernel takes ", microseconds(found.kernel_ns), " here, its default config ",
             microseconds(found.default_ns), " (",
             std::round(kHundred * found.kernel_ns / found.default_ns) / kHundred, " times as long)");
}

struct Told {
  std::string line;  // empty: nothing is to be told
  bool falls_back = false;
};

Told tell(const std::string& task, const Choice& choice, const FirstUse& found, const std::string& kept_in) {
  const bool locked = choice.kind == answer_kind_name(AnswerKind::kLocked);
  const std::string again = kept_in.empty() ? "" : str(". To race it again: delete ", kept_in);
  switch (found.verdict) {
    case Verdict::kSlower:
      if (locked)
        return {str(task, ": ", times_text(found),
                    "; it is locked, so it is used. To choose anew: tuner revalidate --all, then tuner lock"),
                false};
      return {str(task, ": ", times_text(found),
                  ": the default is used. To measure anew: tuner revalidate --all", again),
              true};
    case Verdict::kWrong:
      return {str(task, ": its kernel is not right here: ", found.why,
                  ": the default is used. To check it: tuner verify FILE", again),
              true};
    case Verdict::kUndecided:
      return {str(task, ": its kernel is not verified: ", found.why), false};
    case Verdict::kKept:
      break;
  }
  return {};
}

}  // namespace

Made verified_function(const Workload& workload, Choice choice, const Source& source,
                       const Verdicts& verdicts, Pools& pools, const MessageSink& message) {
  const std::string task = str(workload.key(), " on \"", choice.target, "\"");
  const auto say = [&](const std::string& line) { say_once(task + "\nverified", line, message); };
  const auto unverified = [&](const Status& why) {
    say(str(task, ": its kernel is not verified: ", why.message()));
    choice.verdict = verdict_name(Verdict::kUndecided);
    return make_function(workload, std::move(choice), pools);
  };

  Result<std::optional<Choice>> plain = source.default_for(workload, choice);
  if (!plain) return unverified(plain.status());
  if (!*plain) {
    choice.verdict = "default";
    return make_function(workload, std::move(choice), pools);
  }
  const Made kernel = make_function(workload, choice, pools);
  if (!kernel) return kernel;
  const Made other = make_function(workload, **plain, pools);
  if (!other) return unverified(other.status());

  const Tolerance tolerance = together(tolerance_by(choice, workload), tolerance_by(**plain, workload));
  const std::string subject = verdict_subject(**kernel, **other, hardware_fingerprint());
  const FirstUse found = verdicts.of(subject, [&]() -> FirstUse {
    try {
      return race_at_first_use(workload, **kernel, **other, tolerance);
    } catch (const std::bad_alloc&) {
      return {.verdict = Verdict::kUndecided, .why = "there is no memory for its operands", .passing = true};
    }
  });
  const Told told = tell(task, choice, found, verdicts.file(subject));
  if (!told.line.empty()) say(told.line);
  if (told.falls_back) {
    choice = **std::move(plain);
    choice.note = told.line;
  }
  choice.verdict = verdict_name(found.verdict);
  choice.raced_ns = found.kernel_ns;
  choice.raced_default_ns = found.default_ns;
  return make_function(workload, std::move(choice), pools);
}

}  // namespace tuner::runtime
