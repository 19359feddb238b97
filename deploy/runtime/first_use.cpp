#include "deploy/runtime/first_use.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>

#include "compiler_core/base/elements.h"
#include "compiler_core/base/statistics.h"
#include "measure_server/runner/calm_gate.h"
#include "measure_server/runner/input_data.h"
#include "measure_server/runner/pulse.h"
#include "measure_server/runner/sampling.h"

namespace tuner::runtime {

bool are_alike(double a, double b, const Tolerance& tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::fabs(a - b) <= tolerance.absolute + tolerance.relative * std::max(std::fabs(a), std::fabs(b));
}

namespace {

constexpr std::array<std::pair<Verdict, std::string_view>, 4> kVerdicts = {
    {{Verdict::kKept, "kept"},
     {Verdict::kSlower, "slower"},
     {Verdict::kWrong, "wrong"},
     {Verdict::kUndecided, "undecided"}}};

FirstUse undecided(std::string why) { return {.verdict = Verdict::kUndecided, .why = std::move(why)}; }
FirstUse wrong(std::string why) { return {.verdict = Verdict::kWrong, .why = std::move(why)}; }

// The operands of a workload, drawn at random, and an output for each contestant.
class RaceData {
 public:
  RaceData(const Workload& workload, const Function& f) {
    constexpr uint64_t kSeed = 20'261'127;
    for (size_t i = 0; i < f.operands().size(); ++i) {
      const Function::Operand& o = f.operands()[i];
      AlignedBuffer& buffer = given_.emplace_back(o.role == BufferRole::kOutput ? 0 : o.bytes);
      if (o.role == BufferRole::kOutput) continue;
      const int64_t elements = o.bytes / dtype_bytes(o.dtype);
      std::vector<float> values = random_values(kSeed, static_cast<int>(i), elements, o.dtype);
      const float factor = drawn_factor(workload, o.name);
      for (float& value : values) value *= factor;
      store_elements(values.data(), elements, o.dtype, buffer.data());
    }
    for (const bool of_kernel : {false, true}) {
      std::vector<void*>& pointers = pointers_[of_kernel];
      for (size_t i = 0; i < given_.size(); ++i) {
        const bool written = is_result(f.operands()[i].role);
        pointers.push_back(written ? results_.emplace_back(f.operands()[i].bytes).data() : given_[i].data());
      }
    }
  }

  void* const* pointers(bool of_kernel) const { return pointers_[of_kernel].data(); }

  // Before a run whose answer is compared: NaNs, or what the run adds to.
  void prepare_results(const Function& f) {
    constexpr int kPoison = 0xff;
    for (const bool of_kernel : {false, true})
      for (size_t i = 0; i < given_.size(); ++i) {
        const Function::Operand& o = f.operands()[i];
        const auto bytes = static_cast<size_t>(o.bytes);
        if (o.role == BufferRole::kInOut) std::memcpy(pointers_[of_kernel][i], given_[i].data(), bytes);
        if (o.role == BufferRole::kOutput) std::memset(pointers_[of_kernel][i], kPoison, bytes);
      }
  }

  // What is different in the answers; empty if nothing is.
  std::string difference(const Function& f, const Tolerance& tolerance) const {
    for (size_t i = 0; i < given_.size(); ++i) {
      const Function::Operand& o = f.operands()[i];
      if (!is_result(o.role)) continue;
      if (std::string found = difference(o, pointers_[1][i], pointers_[0][i], tolerance); !found.empty())
        return found;
    }
    return {};
  }

 private:
  static std::string difference(const Function::Operand& o, const void* kernel, const void* plain,
                                const Tolerance& tolerance) {
    constexpr int64_t kPiece = 1 << 16;
    const int64_t each = dtype_bytes(o.dtype), elements = o.bytes / each;
    for (int64_t at = 0; at < elements; at += kPiece) {
      const int64_t count = std::min(kPiece, elements - at);
      const auto part = [&](const void* all) {
        return load_elements(static_cast<const char*>(all) + at * each, count, o.dtype);
      };
      const std::vector<double> found = part(kernel), expected = part(plain);
      for (int64_t k = 0; k < count; ++k) {
        const double a = found[static_cast<size_t>(k)], b = expected[static_cast<size_t>(k)];
        if (!are_alike(a, b, tolerance))
          return str(o.name, "[", at + k, "] is ", a, ", and ", b,
                     " by its default config, which is too far off");
      }
    }
    return {};
  }

  std::vector<AlignedBuffer> given_, results_;
  std::array<std::vector<void*>, 2> pointers_;  // of the default, of the kernel
};

// Both functions with their constants packed.
class Contest {
 public:
  static Result<std::unique_ptr<Contest>> make(const Workload& workload, const Function& kernel,
                                               const Function& plain) {
    auto contest = std::unique_ptr<Contest>(new Contest(workload, kernel, plain));
    for (const bool of_kernel : {false, true})
      if (const Function& f = contest->function(of_kernel); f.has_constants()) {
        ASSIGN_OR_RETURN(contest->packed_[of_kernel], f.pack(contest->data_.pointers(of_kernel)));
      }
    return contest;
  }

  Status run(bool of_kernel) const {
    return function(of_kernel).run(packed_[of_kernel].get(), data_.pointers(of_kernel));
  }

  // Runs both once, and compares. Nothing: the answers agree.
  std::optional<FirstUse> compare(const Tolerance& tolerance) {
    data_.prepare_results(kernel_);
    if (const Status ran = run(true); !ran) return wrong(ran.message());
    if (const Status ran = run(false); !ran) return undecided("the default config: " + ran.message());
    std::string found = data_.difference(kernel_, tolerance);
    if (found.empty()) return std::nullopt;
    return wrong(std::move(found));
  }

  // A turn: warms up, then samples until `until_ns` at the latest.
  Result<double> turn(bool of_kernel, double until_ns) {
    constexpr double kSampleNs = 1e6, kWarmUp = 5e6, kPatience = 2e7;
    constexpr int kSamples = 4;
    gate_.be_patient(kPatience);
    Status ran;
    const auto take = [&](int64_t calls, Sample& sample) {
      const double begin = monotonic_ns();
      for (int64_t i = 0; i < calls && ran; ++i) ran = run(of_kernel);
      sample.run_ns = sample.cpu_ns = monotonic_ns() - begin;
      return ran.is_ok();
    };
    Samples samples;
    const SamplingOptions options{.fill_ns = kSampleNs,
                                  .warm_up_ns = kWarmUp,
                                  .repeats = kSamples,
                                  .precision = 0,
                                  .stop_at_ns = until_ns,
                                  .gate = &gate_};
    if (!take_samples(options, take, samples)) return ran;
    return lower_quartile(std::move(samples.run_ns));
  }

 private:
  Contest(const Workload& workload, const Function& kernel, const Function& plain)
      : kernel_(kernel),
        plain_(plain),
        data_(workload, kernel),
        // A pulse shows who disturbs the thread that takes it, and none of the others.
        gate_(0, [one = kernel.choice().kernel.manifest().threads == 1] {
          return one ? take_pulse() : Pulse{};
        }) {}
  const Function& function(bool of_kernel) const { return of_kernel ? kernel_ : plain_; }

  const Function &kernel_, &plain_;
  RaceData data_;
  CalmGate gate_;
  std::array<std::unique_ptr<Packed>, 2> packed_;
};

int64_t operand_bytes(const Function& f) {
  int64_t bytes = 0;
  for (const Function::Operand& o : f.operands()) bytes += o.bytes;
  return bytes;
}

std::timed_mutex& one_at_a_time() {
  static std::timed_mutex* const mutex = new std::timed_mutex;  // never destroyed: a race may outlive main()
  return *mutex;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  for (const auto& [known, name] : kVerdicts)
    if (known == verdict) return name;
  return "unknown";
}

std::optional<Verdict> verdict_from_name(std::string_view name) {
  for (const auto& [verdict, known] : kVerdicts)
    if (known == name) return verdict;
  return std::nullopt;
}

FirstUse judge_rounds(std::span<const Round> rounds, bool finished) {
  constexpr double kConfidence = 0.995;
  FirstUse out;
  std::vector<double> logs, kernel, plain;
  for (const Round& r : rounds) {
    logs.push_back(std::log(r.kernel_ns / r.default_ns));
    kernel.push_back(r.kernel_ns);
    plain.push_back(r.default_ns);
  }
  out.kernel_ns = median(kernel);
  out.default_ns = median(plain);
  if (rounds.size() < static_cast<size_t>(kFewestRounds)) {
    out.why = str("only ", rounds.size(), " of at least ", kFewestRounds, " rounds fit the time for it");
    return out;
  }
  const Mean behind = trimmed_mean_of(std::move(logs));
  const double error =
      student_quantile(kConfidence, static_cast<double>(std::max<size_t>(behind.degrees, 1))) *
      behind.deviation / std::sqrt(static_cast<double>(behind.n));
  const double much = std::log(kMuchSlower);
  if (behind.mean > much && behind.mean - error > 0)
    out.verdict = Verdict::kSlower;
  else if (finished || behind.mean + error < much)
    out.verdict = Verdict::kKept;
  return out;
}

FirstUse race_rounds(const std::function<Result<double>(bool of_kernel)>& turn,
                     const std::function<bool()>& in_time) {
  std::vector<Round> rounds;
  while (static_cast<int>(rounds.size()) < kMostRounds && in_time()) {
    Round round;
    const bool kernel_first = rounds.size() % 2 == 0;
    for (const bool of_kernel : {kernel_first, !kernel_first}) {
      const Result<double> ns = turn(of_kernel);
      if (!ns) return of_kernel ? wrong(ns.message()) : undecided("the default config: " + ns.message());
      (of_kernel ? round.kernel_ns : round.default_ns) = std::max(*ns, 1.0);
    }
    rounds.push_back(round);
    if (const FirstUse now = judge_rounds(rounds, false); now.verdict != Verdict::kUndecided) return now;
  }
  return judge_rounds(rounds, true);
}

FirstUse race_at_first_use(const Workload& workload, const Function& kernel, const Function& plain,
                           const Tolerance& tolerance, const FirstUseLimits& limits) {
  if (const int64_t bytes = operand_bytes(kernel); bytes > limits.operand_bytes)
    return undecided(str("its operands take ", bytes >> 20, " MiB, and random ones are made up to ",
                         limits.operand_bytes >> 20, " MiB"));
  const std::unique_lock lock(one_at_a_time(),
                              std::chrono::nanoseconds(static_cast<int64_t>(2 * limits.race_ns)));
  if (!lock.owns_lock())
    return {.verdict = Verdict::kUndecided,
            .why = "other kernels of this process are being raced",
            .passing = true};
  Result<std::unique_ptr<Contest>> made = Contest::make(workload, kernel, plain);
  if (!made) return undecided(made.message());
  Contest& contest = **made;
  const double begin = monotonic_ns();
  if (std::optional<FirstUse> differ = contest.compare(tolerance)) return *std::move(differ);
  // Both have run once: a call so long that no turn fits would take minutes.
  const double until = monotonic_ns() + limits.race_ns;
  if (monotonic_ns() - begin > limits.race_ns / 2)
    return undecided(str("a call of both takes ", std::lround((monotonic_ns() - begin) / 1e6),
                         " ms, and a race may take ", std::lround(limits.race_ns / 1e6), " ms"));
  FirstUse out = race_rounds([&](bool of_kernel) { return contest.turn(of_kernel, until); },
                             [&] { return monotonic_ns() < until; });
  if (out.verdict == Verdict::kWrong) return out;
  // Once more: what a kernel leaves behind may spoil a later call.
  if (std::optional<FirstUse> differ = contest.compare(tolerance)) return *std::move(differ);
  return out;
}

}  // namespace tuner::runtime
