#include "tuner/judge/judge_kernel.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "compiler_core/backend.h"
#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/scratch_folder.h"
#include "compiler_core/base/statistics.h"
#include "measure_server/runner/runner_client.h"
#include "tuner/judge/device_duel.h"
#include "tuner/judge/judge_data.h"
#include "tuner/judge/judge_on_host.h"
#include "tuner/judge/judged_code.h"

namespace tuner {
namespace {

// What a run takes at least, and how many calls of the reference it may take beside that.
constexpr double kLeastTimeoutS = 3, kLeastDeviceTimeoutS = 10, kCallsOfTimeout = 1000;

uint64_t drawn_seed() {
  std::random_device device;
  const uint64_t seed = (uint64_t{device()} << 32) | device();
  return seed == 0 ? 1 : seed;
}

Result<Program> program_of_task(const CliTask& task) {
  ASSIGN_OR_RETURN(const ChosenKernel chosen, choose_kernel(task, nullptr));
  return chosen.instance->instantiate(chosen.config);
}

// A judgement under way.
class Judge {
 public:
  Judge(const JudgedKernels& kernels, const KernelJudgeOptions& options) : k_(kernels), o_(options) {
    j_.seed = options.seed != 0 ? options.seed : drawn_seed();
  }

  Result<KernelJudgement> judge() {
    RETURN_IF_ERROR(can_judge());
    RETURN_IF_ERROR(fits_here(k_.truth.workload, k_.measure.memory_limit_bytes, /*this_machine=*/true));
    ASSIGN_OR_RETURN(folder_, ScratchFolder::make("tuner-judge"));
    tell("compiling");
    ASSIGN_OR_RETURN(std::string digest, compile_candidate());
    if (digest.empty()) return j_;
    if (o_.on_host) {
      RETURN_IF_ERROR(answer_on_host());
      return j_;
    }
    candidate_.digest = digest;
    ASSIGN_OR_RETURN(rival_.digest, compile_rival());
    tell("computing the right answers");
    RETURN_IF_ERROR(prepare_data());
    ASSIGN_OR_RETURN(const std::string runner_path, find_runner());
    ASSIGN_OR_RETURN(runner_, RunnerClient::start(runner_path, o_.at_most));
    if (on_device_) RETURN_IF_ERROR(choose_device(*runner_, k_.candidate.target, base_));
    RETURN_IF_ERROR(try_rival());
    tell("comparing answers");
    ASSIGN_OR_RETURN(const bool right, try_candidate());
    if (!right) return j_;
    if (!rival_doubt_.empty()) {
      blame_rival(rival_doubt_);
      return j_;
    }
    tell("racing");
    RETURN_IF_ERROR(race());
    return j_;
  }

 private:
  void tell(const std::string& what) const {
    if (o_.tell) o_.tell(what);
  }
  void say(KernelVerdict verdict, std::string why) {
    j_.verdict = verdict;
    j_.why = std::move(why);
  }

  // One line if it cannot be judged here at all.
  Status can_judge() const {
    const Backend& backend = backend_of(k_.candidate.target);
    if (o_.on_host && !on_device_)
      return invalid_argument("--on-host: is for kernels in CUDA, found one for \"", k_.candidate.target_name,
                              "\"; leave it out");
    if (o_.on_host) return Status::ok();
    if (!on_device_) return measurable_here(k_.candidate.target_name);
    const Status here = backend.runs_here(k_.candidate.target);
    if (here) return here;
    return invalid_argument("no GPU here is \"", k_.candidate.target_name, "\": ", here.message(),
                            ". Judge it on a host with such a GPU, or its answers alone here (--on-host)");
  }

  // The digest of what was made; empty: there is a verdict. What is not a compiler's refusal is no verdict.
  // On the host a kernel of a GPU may be compared although nothing here compiles it for the GPU.
  Result<std::string> compile_candidate() {
    ASSIGN_OR_RETURN(const Program program, program_of_task(k_.candidate));
    const Result<JudgedCode> made = compile_and_read(program, k_.candidate.target);
    if (!made.is_ok() && made.status().code() == StatusCode::kInvalidConfig) {
      say(KernelVerdict::kNotCompiled, made.message());
      return std::string();
    }
    if (o_.on_host && !made.is_ok() && made.status().code() == StatusCode::kUnavailable) {
      j_.unread = made.message();
      return std::string("none");
    }
    RETURN_IF_ERROR(made.status());
    if (!made->refused.empty()) {
      say(KernelVerdict::kRefused, made->refused);
      return std::string();
    }
    return save_artifact(made->artifact, folder_->path(), Durability::kCached);
  }

  Status answer_on_host() {
    tell("computing the right answers");
    RETURN_IF_ERROR(prepare_data());
    tell("comparing answers");
    ASSIGN_OR_RETURN(const Program program, program_of_task(k_.candidate));
    const std::chrono::milliseconds deadline(static_cast<int64_t>(1000 * k_.measure.run_timeout_s));
    ASSIGN_OR_RETURN(KernelJudgement found, judge_on_host(program, data_, deadline));
    found.unread = j_.unread;
    keep(std::move(found));
    return Status::ok();
  }

  Result<std::string> compile_rival() {
    ASSIGN_OR_RETURN(const Program program, program_of_task(k_.rival));
    const Result<Artifact> made = backend_of(k_.rival.target).compile(program, k_.rival.target);
    if (!made.is_ok() && made.status().code() == StatusCode::kInvalidConfig)
      RETURN_IF_ERROR(compiles_here(k_.rival.workload, k_.rival.target_name)
                          .with_context(k_.rival_name + ", which it is to race with: "));
    RETURN_IF_ERROR(made.status());
    return save_artifact(*made, folder_->path(), Durability::kCached);
  }

  Status prepare_data() {
    const int threads = k_.truth.target.threads;
    const OnCpus there(cpus_beside_runs());  // a worker of this host may time something meanwhile
    Result<JudgeData> made = make_judge_data(k_.truth.workload, j_.seed, threads, folder_->path());
    if (!made.is_ok())
      return made.status().code() == StatusCode::kInvalidConfig
                 ? invalid_argument("the reference: ", made.message())
                 : made.status();
    base_.artifact_dir = folder_->path();
    base_.inputs = made->inputs;
    base_.references = made->references;
    base_.others = made->others;
    base_.check = candidate_.check = rival_.check = made->check;
    base_.memory_limit_bytes = k_.measure.memory_limit_bytes;
    base_.wary = true;
    const std::vector<int> cpus = usable_cpus();
    const size_t n = std::min<size_t>(static_cast<size_t>(std::max(threads, 1)), cpus.size());
    base_.cpus.assign(cpus.end() - static_cast<std::ptrdiff_t>(n), cpus.end());
    j_.input_sets = 1 + static_cast<int>(base_.others.size());
    data_ = *std::move(made);
    return Status::ok();
  }

  RunRequest trial_of(const std::string& digest) {
    RunRequest request = base_;
    request.id = ++runs_;
    request.digest = digest;
    request.min_repeat_ms = 0.5;
    request.run_timeout_s = k_.measure.run_timeout_s;
    return request;
  }

  // It has to be right itself, and says how long a call may take.
  Status try_rival() {
    ASSIGN_OR_RETURN(const RunReply reply, run_till_sure(trial_of(rival_.digest)));
    if (reply.doubted) {
      rival_doubt_ = reply.message;
      timeout_s_ = k_.measure.run_timeout_s;
      return Status::ok();
    }
    if (reply.outcome != Outcome::kOk)
      return invalid_argument(k_.rival_name, ", which it is to race with: ", outcome_name(*reply.outcome),
                              ": ", reply.message);
    timeout_s_ = std::min(k_.measure.run_timeout_s, (on_device_ ? kLeastDeviceTimeoutS : kLeastTimeoutS) +
                                                        kCallsOfTimeout * median(reply.run_ns) * 1e-9);
    return Status::ok();
  }
  // Times of the rival that cannot be true say nothing about the kernel.
  void blame_rival(const std::string& why) {
    say(KernelVerdict::kCannotTell,
        str("the machine is too busy, or ", k_.rival_name, ", which it races with, forges its times: ", why));
  }

  // Whoever stops a process between two readings of its clocks makes its times doubtful. So a doubt has to
  // come again in one of two more runs.
  Result<RunReply> run_till_sure(RunRequest request) {
    ASSIGN_OR_RETURN(RunReply reply, runner_->run(request));
    for (int again = 0; again < 2 && reply.doubted; ++again) {
      request.id = ++runs_;
      ASSIGN_OR_RETURN(RunReply next, runner_->run(request));
      if (next.outcome != Outcome::kOk) return next;
      if (again == 1) return next;
    }
    return reply;
  }

  // Some times for each set of inputs that is kept back: who cheats in some calls only is met sooner or
  // later. Times that cannot be true are one way of finding a cheat; a wrong answer to another set says more.
  // False: there is a verdict.
  Result<bool> try_candidate() {
    // On a device one run asks for many answers, and nothing stays from call to call but what it can reach.
    const int rounds = on_device_ ? 1 : 3;
    const int sets = static_cast<int>(base_.others.size()), round = std::max(sets, 1);
    std::optional<KernelJudgement> doubted;
    for (int run = 0; run < (doubted ? round : rounds * round); ++run) {
      RunRequest request = trial_of(candidate_.digest);
      request.prove_with = sets == 0 ? 0 : 1 + run % sets;
      request.run_timeout_s = timeout_s_;
      ASSIGN_OR_RETURN(const RunReply reply, run_till_sure(request));
      j_.isolation = reply.isolation;
      if (reply.outcome == Outcome::kOk) continue;
      KernelJudgement found = judgement_of(*reply.outcome, reply.message, reply.difference, reply.doubted);
      if (!reply.doubted) {
        keep(std::move(found));
        return false;
      }
      if (!doubted) doubted = std::move(found);
    }
    if (!doubted) return true;
    keep(*std::move(doubted));
    return false;
  }
  // What was found out before stays.
  void keep(KernelJudgement verdict) {
    verdict.isolation = j_.isolation;
    verdict.input_sets = j_.input_sets;
    verdict.seed = j_.seed;
    j_ = std::move(verdict);
  }

  Status race() {
    RunRequest base = base_;
    base.min_repeat_ms = k_.measure.min_repeat_ms;
    base.run_timeout_s = 2 * k_.measure.run_timeout_s;
    const auto heat = [&](RaceRequest request) {
      request.base.id = ++runs_;
      return on_device_ ? device_heat(*runner_, request, runs_) : runner_->race(request);
    };
    const Result<DuelResult> duel = run_duel(base, candidate_, rival_, o_.duel, heat);
    if (!duel.is_ok()) {
      if (duel.status().code() != StatusCode::kUnavailable) return duel.status();
      say(KernelVerdict::kCannotTell, duel.message());
      return Status::ok();
    }
    if (duel->failed.outcome != Outcome::kOk) {
      const RaceReply::Candidate& who = duel->failed;
      if (duel->rival_failed && who.doubted) {
        blame_rival(who.message);
        return Status::ok();
      }
      if (duel->rival_failed) return failed(k_.rival_name, ", which it raced with: ", who.message);
      keep(
          judgement_of(who.outcome.value_or(Outcome::kDeviceLost), who.message, who.difference, who.doubted));
      return Status::ok();
    }
    j_.ratio = duel->ratio;
    j_.time_ns = duel->time_ns;
    j_.rival_time_ns = duel->rival_time_ns;
    j_.processes = duel->processes;
    j_.turns = duel->turns;
    j_.disturbed = duel->disturbed;
    say(duel->missing.empty() ? KernelVerdict::kRight : KernelVerdict::kCannotTell, duel->missing);
    return Status::ok();
  }

  const JudgedKernels& k_;
  const KernelJudgeOptions& o_;
  KernelJudgement j_;
  const bool on_device_ = backend_of(k_.candidate.target).emulates();
  JudgeData data_;
  std::unique_ptr<ScratchFolder> folder_;
  std::unique_ptr<RunnerClient> runner_;
  RaceRequest::Candidate candidate_, rival_;
  RunRequest base_;
  double timeout_s_ = 10;
  std::string rival_doubt_;  // why the rival's times cannot be true; empty: they may be
  uint64_t runs_ = 0;
};

}  // namespace

Result<KernelJudgement> judge_kernel(const JudgedKernels& kernels, const KernelJudgeOptions& options) {
  return Judge(kernels, options).judge();
}

}  // namespace tuner
