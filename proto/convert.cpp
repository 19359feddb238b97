#include "proto/convert.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "compiler_core/target.h"
#include "db/options_limits.h"
#include "proto/field_checker.h"
#include "templates/source_kernel/known_kernels.h"
#include "templates/source_kernel/source_document.h"
#include "templates/workload/key_document.h"

namespace tuner {

v1::Outcome to_proto(Outcome outcome) { return static_cast<v1::Outcome>(outcome); }
static_assert(static_cast<int>(v1::OK) == static_cast<int>(Outcome::kOk));
static_assert(static_cast<int>(v1::INVALID_CONFIG) == static_cast<int>(Outcome::kInvalidConfig));
static_assert(static_cast<int>(v1::BUILD_ERROR) == static_cast<int>(Outcome::kBuildError));
static_assert(static_cast<int>(v1::BUILD_TIMEOUT) == static_cast<int>(Outcome::kBuildTimeout));
static_assert(static_cast<int>(v1::RUN_TIMEOUT) == static_cast<int>(Outcome::kRunTimeout));
static_assert(static_cast<int>(v1::CRASHED) == static_cast<int>(Outcome::kCrashed));
static_assert(static_cast<int>(v1::WRONG_ANSWER) == static_cast<int>(Outcome::kWrongAnswer));
static_assert(static_cast<int>(v1::OUT_OF_MEMORY) == static_cast<int>(Outcome::kOutOfMemory));
static_assert(static_cast<int>(v1::DEVICE_LOST) == static_cast<int>(Outcome::kDeviceLost));
static_assert(v1::Outcome_MAX == v1::DEVICE_LOST);

Result<Outcome> from_proto(v1::Outcome outcome, std::string_view field) {
  if (outcome <= v1::OUTCOME_UNSPECIFIED || outcome > v1::Outcome_MAX)
    return invalid_argument(field, ": expected a known outcome, found number ", static_cast<int>(outcome));
  return static_cast<Outcome>(outcome);
}

v1::JobState to_proto(JobState state) { return static_cast<v1::JobState>(state); }
static_assert(static_cast<int>(v1::QUEUED) == static_cast<int>(JobState::kQueued));
static_assert(static_cast<int>(v1::JOB_RUNNING) == static_cast<int>(JobState::kRunning));
static_assert(static_cast<int>(v1::FINISHED) == static_cast<int>(JobState::kFinished));
static_assert(static_cast<int>(v1::CANCELLED) == static_cast<int>(JobState::kCancelled));
static_assert(static_cast<int>(v1::JOB_FAILED) == static_cast<int>(JobState::kFailed));
static_assert(v1::JobState_MAX == v1::JOB_FAILED);

Result<JobState> from_proto(v1::JobState state, std::string_view field) {
  if (state <= v1::JOB_STATE_UNSPECIFIED || state > v1::JobState_MAX)
    return invalid_argument(field, ": expected a known job state, found number ", static_cast<int>(state));
  return static_cast<JobState>(state);
}

namespace {

WonBy won_by_from(FieldChecker& check, const std::string& name) {
  const std::optional<WonBy> found = won_by_from_name(name);
  if (!found && !name.empty())
    check.refuse("won_by", "expected fastest, stored, default, smallest or order, found ",
                 name.substr(0, 40));
  return found.value_or(WonBy::kFastest);
}

}  // namespace

void to_proto(const TunedConfig& t, int64_t flops, v1::TunedConfig* out) {
  out->set_workload_key(t.workload_key);
  out->set_target(t.target);
  out->set_template_name(t.template_name);
  out->set_template_version(t.template_version);
  out->set_config(t.config);
  out->set_time_ns(t.time_ns);
  out->set_time_low_ns(t.time_low_ns);
  out->set_time_high_ns(t.time_high_ns);
  out->set_gflops(t.time_ns > 0 ? static_cast<double>(flops) / t.time_ns : 0);
  out->set_peak_gflops(t.peak_gflops);
  out->set_trial_id(t.trial_id);
  out->set_trial_name(t.trial_name);
  out->set_artifact_digest(t.artifact_digest);
  out->set_trials(t.trials);
  out->clear_outcomes();
  for (const auto& [outcome, count] : t.outcomes) {
    v1::OutcomeCount* item = out->add_outcomes();
    item->set_outcome(to_proto(outcome));
    item->set_count(count);
  }
  to_proto(t.environment, out->mutable_environment());
  *out->mutable_finished_at() = timestamp(t.finished_at_us);
  out->set_race_id(t.race_id);
  out->set_ratio(t.ratio);
  out->set_ratio_low(t.ratio_low);
  out->set_ratio_high(t.ratio_high);
  out->set_regret_bound(t.regret_bound);
  out->set_finalists(t.finalists);
  out->set_tied(t.tied);
  out->set_certified(t.certified);
  out->set_uncertified_why(t.uncertified_why);
  out->set_constants(std::string(constants_name(t.constants)));
  out->set_other_time_ns(t.other_time_ns);
  out->set_default_time_ns(t.default_time_ns);
  out->set_default_trial(t.default_trial_id);
  out->set_turns(t.turns);
  out->set_discarded(t.discarded);
  out->set_read_gbps(t.read_gbps);
  out->set_memory_ns(t.memory_ns);
  if (t.won_by != WonBy::kFastest) out->set_won_by(std::string(won_by_name(t.won_by)));
}

Result<TunedConfig> from_proto(const v1::TunedConfig& t, std::string_view field) {
  FieldChecker check(field);
  TunedConfig out;
  out.workload_key = check.needed("workload_key", t.workload_key());
  out.target = check.needed("target", t.target());
  out.template_name = check.needed("template_name", t.template_name());
  out.template_version = t.template_version();
  out.config = check.text("config", t.config());
  out.time_ns = check.at_least_zero("time_ns", t.time_ns());
  out.time_low_ns = check.at_least_zero("time_low_ns", t.time_low_ns());
  out.time_high_ns = check.at_least_zero("time_high_ns", t.time_high_ns());
  out.peak_gflops = check.at_least_zero("peak_gflops", t.peak_gflops());
  out.trial_id = check.text("trial_id", t.trial_id());
  out.trial_name = t.trial_name().empty() ? out.trial_id : check.text("trial_name", t.trial_name());
  out.artifact_digest = check.text("artifact_digest", t.artifact_digest());
  out.trials = check.in_range<int64_t>("trials", t.trials(), 0, int64_t{1} << 60);
  check.at_most("outcomes", t.outcomes_size(), v1::Outcome_MAX);
  for (int i = 0; i < t.outcomes_size() && !check.failed(); ++i) {
    const std::string at = str("outcomes[", i, "]");
    const Outcome outcome = check.part(from_proto(t.outcomes(i).outcome(), check.path(at + ".outcome")));
    out.outcomes.emplace_back(
        outcome, check.in_range<int64_t>(at + ".count", t.outcomes(i).count(), 0, int64_t{1} << 60));
  }
  out.environment = check.part(from_proto(t.environment(), check.path("environment")));
  out.finished_at_us = microseconds(check, "finished_at", t.finished_at());
  out.race_id = check.in_range<int64_t>("race_id", t.race_id(), 0, int64_t{1} << 60);
  out.ratio = check.at_least_zero("ratio", t.ratio());
  out.ratio_low = check.at_least_zero("ratio_low", t.ratio_low());
  out.ratio_high = check.at_least_zero("ratio_high", t.ratio_high());
  out.regret_bound = check.at_least_zero("regret_bound", t.regret_bound());
  out.finalists = check.in_range("finalists", t.finalists(), 0, kMaxFinalists);
  out.tied = check.in_range("tied", t.tied(), 0, kMaxFinalists);
  out.certified = t.certified();
  out.uncertified_why = check.text("uncertified_why", t.uncertified_why());
  out.constants = check.constants("constants", t.constants());
  out.other_time_ns = check.at_least_zero("other_time_ns", t.other_time_ns());
  out.default_time_ns = check.at_least_zero("default_time_ns", t.default_time_ns());
  out.default_trial_id = check.text("default_trial", t.default_trial());
  out.turns = check.in_range("turns", t.turns(), 0, 1 << 30);
  out.discarded = check.in_range("discarded", t.discarded(), 0, 1 << 30);
  out.read_gbps = check.at_least_zero("read_gbps", t.read_gbps());
  out.memory_ns = check.at_least_zero("memory_ns", t.memory_ns());
  out.won_by = won_by_from(check, t.won_by());
  return check.finish(std::move(out));
}

void to_proto(const Answer& a, int64_t flops, v1::Answer* out) {
  out->set_kind(static_cast<v1::AnswerKind>(a.kind));
  out->set_workload_key(a.workload_key);
  out->set_target(a.target);
  out->set_template_name(a.template_name);
  out->set_template_version(a.template_version);
  out->set_config(a.config);
  out->clear_tuned();
  if (a.tuned) to_proto(*a.tuned, flops, out->mutable_tuned());
  out->set_known(a.known);
  out->set_predicted(a.predicted);
  out->set_low(a.low);
  out->set_high(a.high);
  out->set_predicted_default(a.predicted_default);
  out->clear_rests_on();
  for (const Basis& b : a.rests_on) {
    v1::Basis* item = out->add_rests_on();
    item->set_trial_id(b.trial_id);
    item->set_trial_name(b.trial_name);
    item->set_workload_key(b.workload_key);
    item->set_target(b.target);
    item->set_time_ns(b.time_ns);
    *item->mutable_finished_at() = timestamp(b.finished_at_us);
  }
  out->set_learned_shapes(a.learned_shapes);
  out->set_learned_records(a.learned_records);
  out->set_stale(a.stale);
  out->set_stale_reason(a.stale_reason);
  out->set_note(a.note);
}

Result<Answer> from_proto(const v1::Answer& a, std::string_view field) {
  FieldChecker check(field);
  Answer out;
  if (a.kind() < v1::EXACT || a.kind() > v1::DEFAULT)
    check.refuse("kind", "expected 1 to 5, found ", static_cast<int>(a.kind()));
  out.kind = static_cast<AnswerKind>(a.kind());
  out.workload_key = check.needed("workload_key", a.workload_key());
  out.target = check.needed("target", a.target());
  out.template_name = check.needed("template_name", a.template_name());
  out.template_version = a.template_version();
  out.config = check.text("config", a.config());
  if (a.has_tuned()) out.tuned = check.part(from_proto(a.tuned(), check.path("tuned")));
  out.known = a.known();
  out.predicted = check.at_least_zero("predicted", a.predicted());
  out.low = check.at_least_zero("low", a.low());
  out.high = check.at_least_zero("high", a.high());
  out.predicted_default = check.at_least_zero("predicted_default", a.predicted_default());
  check.at_most("rests_on", a.rests_on_size(), kMaxBases);
  for (int i = 0; i < a.rests_on_size() && !check.failed(); ++i) {
    const v1::Basis& b = a.rests_on(i);
    const std::string at = str("rests_on[", i, "].");
    out.rests_on.push_back(
        {check.text(at + "trial_id", b.trial_id()), check.text(at + "workload_key", b.workload_key()),
         check.text(at + "target", b.target()), check.at_least_zero(at + "time_ns", b.time_ns()),
         microseconds(check, at + "finished_at", b.finished_at()),
         b.trial_name().empty() ? b.trial_id() : check.text(at + "trial_name", b.trial_name())});
  }
  out.learned_shapes = check.in_range("learned_shapes", a.learned_shapes(), 0, 1 << 30);
  out.learned_records = check.in_range<int64_t>("learned_records", a.learned_records(), 0, int64_t{1} << 60);
  out.stale = a.stale();
  out.stale_reason = check.text("stale_reason", a.stale_reason());
  out.note = check.text("note", a.note());
  return check.finish(std::move(out));
}

void to_proto(const JobRow::Task& task, v1::TaskSpec* out) {
  out->set_workload_key(task.workload_key);
  out->set_target(task.target);
  out->set_algorithms(task.algorithms);
  out->set_uses(task.uses);
  out->set_constants(std::string(constants_name(task.constants)));
}

Result<JobRow::Task> from_proto(const v1::TaskSpec& task, std::string_view field) {
  FieldChecker check(field);
  const JobRow::Task out{check.needed("workload_key", task.workload_key()),
                         check.needed("target", task.target()), check.text("algorithms", task.algorithms()),
                         task.uses() == 0 ? 1 : check.in_range<int64_t>("uses", task.uses(), 1, kMaxUses),
                         check.constants("constants", task.constants())};
  if (!check.failed()) {
    const Result<Workload> workload = workload_from_key(out.workload_key);
    const Status valid = workload ? validate(*workload) : workload.status();
    // What the key names, a user's source, is not here: that is no mistake of the message.
    if (valid.code() == StatusCode::kNotFound) return valid.with_context(str(field, ".workload_key: "));
    if (!valid)
      check.refuse("workload_key", valid.message());
    else if (workload->key() != out.workload_key)
      check.refuse("workload_key", "expected the canonical \"", workload->key(), "\", found \"",
                   out.workload_key, "\"");
    const Result<Target> target = parse_target(out.target);
    if (!target)
      check.refuse("target", target.message());
    else if (target->name() != out.target)
      check.refuse("target", "expected the canonical \"", target->name(), "\", found \"", out.target, "\"");
  }
  return check.finish(out);
}

Result<JobRow> job_from_proto(const v1::SubmitRequest& r) {
  FieldChecker check("submit");
  JobRow out;
  out.request_id = check.needed("request_id", r.request_id());
  check.at_most("tasks", r.tasks_size(), kMaxTasksPerJob);
  if (r.tasks().empty()) check.refuse("tasks", "expected at least one, found none");
  for (int i = 0; i < r.tasks_size() && !check.failed(); ++i)
    out.tasks.push_back(check.part(from_proto(r.tasks(i), check.path(str("tasks[", i, "]")))));
  out.trials = check.in_range("trials", r.trials(), 1, kMaxTrialsPerTask);
  out.search = check.needed("search", r.search());
  out.seed = r.seed();
  out.options = check.part(from_proto(r.options(), check.path("options")));
  check.take(within_limits(out.options, check.path("options")));
  out.stop.below = check.finite("stop.below", r.stop().below());
  if (out.stop.below < 0 || out.stop.below > 1)
    check.refuse("stop.below", "expected a chance from 0 to 1, found ", out.stop.below);
  out.stop.time_limit_s = check.at_least_zero("stop.time_limit_s", r.stop().time_limit_s());
  if (!kJobTimeLimitS.holds(out.stop.time_limit_s))
    check.refuse("stop.time_limit_s", kJobTimeLimitS.expected(), ", found ", out.stop.time_limit_s);
  out.priority = check.in_range("priority", r.priority(), kLeastPriority, kMostPriority);
  return check.finish(std::move(out));
}

void to_proto(const JobRow& job, bool fresh, v1::SubmitRequest* out) {
  out->set_request_id(job.request_id);
  for (const JobRow::Task& task : job.tasks) to_proto(task, out->add_tasks());
  out->set_trials(job.trials);
  out->set_search(job.search);
  out->set_seed(job.seed);
  to_proto(job.options, out->mutable_options());
  out->mutable_stop()->set_below(job.stop.below);
  out->mutable_stop()->set_time_limit_s(job.stop.time_limit_s);
  out->set_fresh(fresh);
  out->set_priority(job.priority);
  std::set<std::string> sent;
  for (const JobRow::Task& task : job.tasks) {
    const std::optional<std::string> digest = document_of_key(task.workload_key);
    if (!digest || !sent.insert(*digest).second) continue;
    // Without it the daemon says that it lacks it.
    if (const auto kernel = find_kernel(*digest)) out->add_documents(source_document(**kernel));
  }
}

Status documents_fit(const v1::SubmitRequest& request) {
  size_t total = 0;
  for (const std::string& document : request.documents()) total += document.size();
  if (total <= kMostSubmittedBytes) return Status::ok();
  return invalid_argument("submit.documents: sources and arrays have ", total,
                          " bytes together, a daemon takes at most ", kMostSubmittedBytes,
                          ". Let large arrays be drawn (contents), or tune without a daemon");
}

void to_proto(const JobRow& job, v1::JobSummary* out) {
  out->set_job_id(job.id);
  out->set_state(to_proto(job.state));
  for (const JobRow::Task& task : job.tasks) to_proto(task, out->add_tasks());
  out->set_trials(job.trials);
  out->set_search(job.search);
  out->set_seed(job.seed);
  *out->mutable_submitted_at() = timestamp(job.submitted_at_us);
  if (job.finished_at_us != 0) *out->mutable_finished_at() = timestamp(job.finished_at_us);
  out->set_message(job.message);
  out->set_tenant(job.tenant);
  out->set_priority(job.priority);
  to_proto(job.options, out->mutable_options());
  out->mutable_options()->set_constants(std::string(constants_name(job.options.constants)));
}

Result<JobRow> from_proto(const v1::JobSummary& s, std::string_view field) {
  FieldChecker check(field);
  JobRow out;
  out.id = check.needed("job_id", s.job_id());
  out.state = check.part(from_proto(s.state(), check.path("state")));
  check.at_most("tasks", s.tasks_size(), kMaxTasksPerJob);
  for (int i = 0; i < s.tasks_size() && !check.failed(); ++i)
    out.tasks.push_back(check.part(from_proto(s.tasks(i), check.path(str("tasks[", i, "]")))));
  out.trials = check.in_range("trials", s.trials(), 0, kMaxTrialsPerTask);
  out.search = check.text("search", s.search());
  out.seed = s.seed();
  out.submitted_at_us = microseconds(check, "submitted_at", s.submitted_at());
  out.finished_at_us = microseconds(check, "finished_at", s.finished_at());
  out.message = check.text("message", s.message());
  out.tenant = check.text("tenant", s.tenant());
  out.priority = check.in_range("priority", s.priority(), kLeastPriority, kMostPriority);
  out.options = check.part(from_proto(s.options(), check.path("options")));
  out.options.constants = check.constants("options.constants", s.options().constants());
  return check.finish(std::move(out));
}

void to_proto(const TrialRow& trial, const JobRow::Task& task, const MeasureOptions& options,
              v1::Lease* out) {
  out->set_trial_id(trial.id);
  out->set_attempt(trial.attempt);
  out->set_fencing(trial.fencing);
  out->set_workload_key(task.workload_key);
  out->set_target(task.target);
  out->set_template_name(trial.template_name);
  out->set_template_version(trial.template_version);
  out->set_config(trial.config);
  to_proto(options, out->mutable_options());
  // What its task's times mean, whatever the job's other tasks do: one without constants is always warm.
  out->mutable_options()->set_constants(std::string(constants_name(task.constants)));
}

void to_proto(const RaceOptions& options, v1::RaceOptions* out) {
  out->set_min_repeat_ms(options.min_repeat_ms);
  out->set_processes(options.processes);
  out->set_rounds(options.rounds);
  out->set_limit_s(options.limit_s);
  out->set_constants(std::string(constants_name(options.constants)));
}

Result<RaceRow> from_proto(const v1::RaceResult& r, std::string_view field) {
  FieldChecker check(field);
  RaceRow out;
  if (!r.error().empty()) check.refuse("error", "expected none, found ", r.error());
  check.at_most("finalists", r.finalists_size(), kMaxFinalists);
  for (int i = 0; i < r.finalists_size() && !check.failed(); ++i) {
    const v1::RaceFinalist& f = r.finalists(i);
    const std::string at = str("finalists[", i, "]");
    RaceFinalist& finalist = out.finalists.emplace_back();
    finalist.trial_id = check.needed(at + ".trial_id", f.trial_id());
    finalist.samples_ns = check.times(at + ".samples_ns", f.samples_ns(), /*zero_is_fine=*/false);
    finalist.sentinel_ns = check.times(at + ".sentinel_ns", f.sentinel_ns(), /*zero_is_fine=*/false);
    check.at_most(at + ".process", f.process_size(), kMaxSamples);
    for (int k = 0; k < f.process_size() && !check.failed(); ++k)
      finalist.process.push_back(check.in_range(str(at, ".process[", k, "]"), f.process(k), 0, kMaxSamples));
    if (f.samples_ns_size() == 0 || f.sentinel_ns_size() != f.samples_ns_size() ||
        f.process_size() != f.samples_ns_size())
      check.refuse(at, "expected as many sentinel times and processes as samples, and some, found ",
                   f.samples_ns_size(), " samples, ", f.sentinel_ns_size(), " and ", f.process_size());
    if (f.memory_ns_size() > 0)
      finalist.memory_ns = check.times(at + ".memory_ns", f.memory_ns(), /*zero_is_fine=*/false);
    finalist.other_ns = check.times(at + ".other_ns", f.other_ns(), /*zero_is_fine=*/false);
    finalist.exact_clock = f.exact_clock();
    check.at_most(at + ".other_process", f.other_process_size(), kMaxSamples);
    for (int k = 0; k < f.other_process_size() && !check.failed(); ++k)
      finalist.other_process.push_back(
          check.in_range(str(at, ".other_process[", k, "]"), f.other_process(k), 0, kMaxSamples));
    if ((f.memory_ns_size() != 0 && f.memory_ns_size() != f.samples_ns_size()) ||
        f.other_process_size() != f.other_ns_size())
      check.refuse(at, "expected a memory sentinel beside each sample or none, and a process of each other ",
                   "sample, found ", f.samples_ns_size(), " samples, ", f.memory_ns_size(), ", ",
                   f.other_ns_size(), " and ", f.other_process_size());
  }
  const auto races = [&](const std::string& id) {
    return std::any_of(out.finalists.begin(), out.finalists.end(),
                       [&](const RaceFinalist& f) { return f.trial_id == id; });
  };
  out.winner_trial_id = check.needed("winner", r.winner());
  if (!races(r.winner())) check.refuse("winner", "expected one of the finalists, found ", r.winner());
  check.at_most("tie_set", r.tie_set_size(), kMaxFinalists);
  for (const std::string& id : r.tie_set()) {
    if (!races(id)) check.refuse("tie_set", "expected finalists, found ", id);
    out.tie_set.push_back(id);
  }
  out.time_ns = check.call_or_none("time_ns", r.time_ns());
  out.time_low_ns = check.at_least_zero("time_low_ns", r.time_low_ns());
  out.time_high_ns = check.at_least_zero("time_high_ns", r.time_high_ns());
  out.ratio = check.at_least_zero("ratio", r.ratio());
  out.ratio_low = check.at_least_zero("ratio_low", r.ratio_low());
  out.ratio_high = check.at_least_zero("ratio_high", r.ratio_high());
  out.regret_bound = check.at_least_zero("regret_bound", r.regret_bound());
  out.options = {.min_repeat_ms = check.at_least_zero("options.min_repeat_ms", r.options().min_repeat_ms()),
                 .processes = check.in_range("options.processes", r.options().processes(), 0, kMaxSamples),
                 .rounds = check.in_range("options.rounds", r.options().rounds(), 0, kMaxSamples),
                 .limit_s = check.at_least_zero("options.limit_s", r.options().limit_s()),
                 .constants = check.constants("options.constants", r.options().constants())};
  out.uncertified_why = check.text("uncertified_why", r.uncertified_why());
  // Workers that did not know the word say nothing of it: their interval tells.
  const double half_width = out.time_ns > 0 ? (out.time_high_ns - out.time_low_ns) / 2 / out.time_ns : 0;
  out.certified = r.certified() || (out.uncertified_why.empty() && half_width <= kCertifiedHalfWidth);
  if (!out.certified && out.uncertified_why.empty()) out.uncertified_why = "its interval is too wide";
  out.turns = check.in_range("turns", r.turns(), 0, 1 << 30);
  out.discarded = check.in_range("discarded", r.discarded(), 0, 1 << 30);
  out.disturbed = check.in_range("disturbed", r.disturbed(), 0, 1 << 30);
  out.slices = check.in_range("slices", r.slices(), 0, 1 << 30);
  out.retaken = check.in_range("retaken", r.retaken(), 0, 1 << 30);
  if (!r.default_trial().empty() && !races(r.default_trial()))
    check.refuse("default_trial", "expected one of the finalists or none, found ", r.default_trial());
  out.default_trial_id = check.text("default_trial", r.default_trial());
  out.default_time_ns = check.call_or_none("default_time_ns", r.default_time_ns());
  if (!r.stored_trial().empty() && !races(r.stored_trial()))
    check.refuse("stored_trial", "expected one of the finalists or none, found ", r.stored_trial());
  out.stored_trial_id = check.text("stored_trial", r.stored_trial());
  out.won_by = won_by_from(check, r.won_by());
  out.other_time_ns = check.call_or_none("other_time_ns", r.other_time_ns());
  out.environment = check.part(from_proto(r.environment(), check.path("environment")));
  return check.finish(std::move(out));
}

void to_proto(const RaceRow& race, v1::RaceResult* out) {
  const auto fill = [](const auto& values, auto* field) { field->Assign(values.begin(), values.end()); };
  for (const RaceFinalist& f : race.finalists) {
    v1::RaceFinalist* finalist = out->add_finalists();
    finalist->set_trial_id(f.trial_id);
    fill(f.samples_ns, finalist->mutable_samples_ns());
    fill(f.sentinel_ns, finalist->mutable_sentinel_ns());
    fill(f.process, finalist->mutable_process());
    fill(f.memory_ns, finalist->mutable_memory_ns());
    fill(f.other_ns, finalist->mutable_other_ns());
    fill(f.other_process, finalist->mutable_other_process());
    finalist->set_exact_clock(f.exact_clock);
  }
  out->set_winner(race.winner_trial_id);
  for (const std::string& id : race.tie_set) out->add_tie_set(id);
  out->set_time_ns(race.time_ns);
  out->set_time_low_ns(race.time_low_ns);
  out->set_time_high_ns(race.time_high_ns);
  out->set_ratio(race.ratio);
  out->set_ratio_low(race.ratio_low);
  out->set_ratio_high(race.ratio_high);
  out->set_regret_bound(race.regret_bound);
  to_proto(race.options, out->mutable_options());
  to_proto(race.environment, out->mutable_environment());
  out->set_certified(race.certified);
  out->set_uncertified_why(race.uncertified_why);
  out->set_turns(race.turns);
  out->set_discarded(race.discarded);
  out->set_disturbed(race.disturbed);
  out->set_slices(race.slices);
  out->set_retaken(race.retaken);
  out->set_default_trial(race.default_trial_id);
  out->set_default_time_ns(race.default_time_ns);
  out->set_stored_trial(race.stored_trial_id);
  if (race.won_by != WonBy::kFastest) out->set_won_by(std::string(won_by_name(race.won_by)));
  out->set_other_time_ns(race.other_time_ns);
}

Result<LeasedTrial> from_proto(const v1::Lease& l, std::string_view field) {
  FieldChecker check(field);
  LeasedTrial out;
  out.trial.id = check.needed("trial_id", l.trial_id());
  out.trial.attempt = check.in_range("attempt", l.attempt(), 0, 1 << 30);
  out.trial.fencing = l.fencing();
  out.trial.template_name = check.needed("template_name", l.template_name());
  out.trial.template_version = l.template_version();
  out.trial.config = check.text("config", l.config());
  // Whether the workload and target can be built is an outcome of the trial, not a fault of the message.
  out.task.workload_key = check.needed("workload_key", l.workload_key());
  out.task.target = check.needed("target", l.target());
  out.options = check.part(from_proto(l.options(), check.path("options")));
  out.input_seed = l.input_seed();
  out.best_ns = check.at_least_zero("best_ns", l.best_ns());
  return check.finish(std::move(out));
}

}  // namespace tuner
