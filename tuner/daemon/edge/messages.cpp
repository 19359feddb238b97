#include "tuner/daemon/edge/messages.h"

#include <algorithm>
#include <cmath>

#include "proto/convert.h"
#include "tuner/daemon/edge/log_lines.h"
#include "tuner/daemon/edge/releases.h"
#include "tuner/daemon/tables/belief.h"

namespace tuner {
namespace {

// Names are shown to people and kept for long.
Status check_name(std::string_view field, const std::string& name, size_t most) {
  const bool plain = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
  if (plain && !name.empty() && name.size() <= most) return Status::ok();
  return invalid_argument(field, ": found \"", shown(name), "\", ", name.size(), " bytes; expected 1 to ",
                          most, " printable ASCII characters without spaces");
}

Status check_offer(const v1::RegisterRequest& request) {
  RETURN_IF_ERROR(check_name("worker_id", request.worker_id(), 128));
  RETURN_IF_ERROR(check_name("incarnation", request.incarnation(), 64));
  constexpr int kMostTargets = 64, kMostFeatures = 1024;
  constexpr size_t kLongestTarget = 512, kLongestFeature = 64;
  const auto longer = [](const auto& texts, size_t most) {
    return std::ranges::any_of(texts, [&](const std::string& text) { return text.size() > most; });
  };
  if (request.targets_size() > kMostTargets || request.cpu_features_size() > kMostFeatures ||
      longer(request.targets(), kLongestTarget) || longer(request.cpu_features(), kLongestFeature))
    return invalid_argument("worker ", request.worker_id(), ": found ", request.targets_size(),
                            " targets and ", request.cpu_features_size(), " CPU features, expected at most ",
                            kMostTargets, " of ", kLongestTarget, " bytes and ", kMostFeatures, " of ",
                            kLongestFeature);
  constexpr int kMostTemplates = 4096, kLatestVersion = 1 << 30;
  if (request.templates_size() > kMostTemplates)
    return invalid_argument("worker ", request.worker_id(), ": found ", request.templates_size(),
                            " templates, expected at most ", kMostTemplates);
  for (const v1::TemplateVersion& t : request.templates()) {
    RETURN_IF_ERROR(check_name("templates.name", t.name(), 128));
    if (t.version() < 1 || t.version() > kLatestVersion)
      return invalid_argument("worker ", request.worker_id(), ": template ", t.name(), ": version: found ",
                              t.version(), ", expected 1 to ", kLatestVersion);
  }
  constexpr int kMostSourceCompilers = 64;
  if (request.source_compilers_size() > kMostSourceCompilers)
    return invalid_argument("worker ", request.worker_id(), ": found ", request.source_compilers_size(),
                            " compilers of users' sources, expected at most ", kMostSourceCompilers);
  for (const v1::SourceCompiler& c : request.source_compilers())
    RETURN_IF_ERROR(check_name("source_compilers.name", c.name(), 128));
  const std::pair<const char*, double> figures[] = {{"peak_gflops", request.peak_gflops()},
                                                    {"read_gbps", request.read_gbps()},
                                                    {"sentinel_ns", request.sentinel_ns()},
                                                    {"memory_sentinel_ns", request.memory_sentinel_ns()}};
  for (const auto& [field, value] : figures)
    if (!std::isfinite(value) || value < 0 || (value > 0 && !std::isnormal(value)))
      return invalid_argument("worker ", request.worker_id(), ": ", field,
                              ": expected a finite number >= 0, found ", value);
  return Status::ok();
}

// Full workers and runners have targets, builders compilers and templates.
Status check_kind(const v1::RegisterRequest& request) {
  const std::string who = str("worker ", request.worker_id(), ": ");
  if (!v1::WorkerKind_IsValid(request.kind()))
    return invalid_argument(who, "kind: found ", request.kind(),
                            ", which this daemon does not know; it is older");
  if (request.kind() != v1::BUILDER) {
    if (request.targets_size() > 0) return Status::ok();
    return invalid_argument(who, "targets: found none, expected what it can measure");
  }
  constexpr int kMostCompilers = 16;
  if (request.targets_size() > 0 || request.compilers_size() == 0 ||
      request.compilers_size() > kMostCompilers || request.templates_size() == 0)
    return invalid_argument(who, "a builder: found ", request.targets_size(), " targets, ",
                            request.compilers_size(), " compilers and ", request.templates_size(),
                            " templates, expected none, 1 to ", kMostCompilers, " and all that it has");
  for (const v1::Compiler& c : request.compilers())
    RETURN_IF_ERROR(check_name("compilers.family", c.family(), 64));
  return Status::ok();
}

}  // namespace

Result<Workers::Offer> from_proto(const v1::RegisterRequest& request) {
  if (request.worker_id().empty() || request.incarnation().empty())
    return invalid_argument("worker_id, incarnation: found \"", request.worker_id(), "\" and \"",
                            request.incarnation(), "\", expected a name for each");
  if (request.protocol() != 1)
    return invalid_argument("worker ", request.worker_id(), ": protocol: found ", request.protocol(),
                            ", expected 1. Use the measure_server of the daemon's version");
  RETURN_IF_ERROR(check_kind(request));
  RETURN_IF_ERROR(check_offer(request));
  Workers::Offer offer;
  offer.life = {request.worker_id(), request.incarnation()};
  offer.host = shown(request.environment().host());
  offer.targets.assign(request.targets().begin(), request.targets().end());
  offer.features.assign(request.cpu_features().begin(), request.cpu_features().end());
  offer.max_threads = request.max_threads();
  offer.races = request.races();
  if (request.kind() == v1::BUILDER) offer.kind = WorkerKind::kBuilder;
  if (request.kind() == v1::RUNNER) offer.kind = WorkerKind::kRunner;
  for (const v1::Compiler& c : request.compilers()) offer.compilers[c.family()] = shown(c.toolchain());
  for (const v1::SourceCompiler& c : request.source_compilers())
    offer.source_compilers[c.name()] = shown(c.toolchain());
  offer.cuda_driver = std::max(request.cuda_driver(), 0);
  for (const v1::TemplateVersion& t : request.templates()) offer.templates[t.name()] = t.version();
  constexpr size_t kLongestHardware = 1024;
  offer.hardware = request.environment().hardware().substr(0, kLongestHardware);
  offer.peak_gflops = request.peak_gflops();
  offer.read_gbps = request.read_gbps();
  offer.sentinel_ns = request.sentinel_ns();
  offer.memory_sentinel_ns = request.memory_sentinel_ns();
  if (const auto why = why_impossible(offer.peak_gflops, offer.read_gbps, offer.targets))
    offer.impossible = "it registered with " + *why;
  return offer;
}

std::vector<LeaseTable::Held> held_of(const google::protobuf::RepeatedPtrField<v1::HeldLease>& leases) {
  std::vector<LeaseTable::Held> held;
  for (const v1::HeldLease& h : leases)
    held.push_back({h.trial_id(), h.attempt(), h.fencing(),
                    h.phase() == v1::BUILDING || h.phase() == v1::RUNNING, h.phase() == v1::RUNNING});
  return held;
}

std::string shown(std::string_view text) {
  constexpr size_t kMost = 300;
  return without_controls(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

void add_ack(const std::string& id, int attempt, v1::SyncReply* reply) {
  v1::Ack* const ack = reply->add_acks();
  ack->set_trial_id(id);
  ack->set_attempt(attempt);
}

RaceCourse from_proto(const v1::RaceCourse& course) {
  return {.finalists = course.finalists(),
          .racing = course.racing(),
          .processes = course.processes(),
          .most_processes = course.most_processes(),
          .spoilt = course.spoilt()};
}

RaceOptions from_proto(const v1::RaceOptions& options) {
  return {.min_repeat_ms = options.min_repeat_ms(),
          .processes = options.processes(),
          .rounds = options.rounds(),
          .limit_s = options.limit_s(),
          .constants = options.constants() == "cold" ? Constants::kCold : Constants::kWarm};
}

void to_proto(const LeaseTable::Trial& trial, v1::Lease* out) {
  const Work& work = trial.work;
  to_proto(TrialRow{.id = trial.id,
                    .template_name = work.template_name,
                    .template_version = work.template_version,
                    .config = work.config,
                    .attempt = trial.attempt,
                    .fencing = trial.fencing},
           work.task, work.options, out);
  out->mutable_options()->set_constants(std::string(constants_name(work.options.constants)));
  out->set_input_seed(kInputSeed);
  if (work.kind != WorkKind::kRace) return;
  to_proto(work.race, out->mutable_race());
  out->set_default_trial(work.default_trial_id);
  out->set_stored_trial(work.stored_trial_id);
  for (const TrialRow& finalist : work.finalists) {
    v1::RaceCandidate* c = out->add_finalists();
    c->set_trial_id(finalist.id);
    c->set_template_name(finalist.template_name);
    c->set_template_version(finalist.template_version);
    c->set_config(finalist.config);
  }
}

void to_proto(const JobReport& report, v1::Progress* out) {
  const JobProgress& p = report.search;
  out->set_task_index(p.task_index);
  out->set_trials_done(p.trials_done);
  out->set_trials_total(p.trials_total);
  out->set_best_ns(p.best_ns);
  out->set_best_gflops(report.best_gflops);
  out->set_peak_gflops(p.peak_gflops);
  out->set_default_ns(p.default_ns);
  out->set_search_status(p.search_status);
  if (p.gain_chance) out->set_gain_chance(*p.gain_chance);
  out->set_best_config(p.best_config);
  out->set_best_template(p.best_template);
  for (int i = 0; i < kTrialPhases; ++i) {
    const JobReport::Phase& phase = report.phases.at(static_cast<size_t>(i));
    v1::PhaseTime* time = out->add_phases();
    time->set_phase(std::string(trial_phase_name(static_cast<TrialPhase>(i))));
    time->set_median_ms(phase.median_ms);
    time->set_total_ms(phase.total_ms);
  }
  for (const auto& [outcome, n] : p.outcomes) {
    v1::OutcomeCount* count = out->add_outcomes();
    count->set_outcome(to_proto(outcome));
    count->set_count(n);
  }
  out->set_trials_per_second(report.trials_per_second);
  out->set_eta_s(report.eta_s);
}

void to_proto(const Races::Race& race, v1::RaceProgress* out) {
  out->set_task_index(race.task_index);
  v1::RaceCourse* course = out->mutable_course();
  course->set_finalists(race.course.finalists);
  course->set_racing(race.course.racing);
  course->set_processes(race.course.processes);
  course->set_most_processes(race.course.most_processes);
  course->set_spoilt(race.course.spoilt);
}

void to_proto(const Workers::Entry& worker, size_t leases, v1::WorkerSummary* out) {
  out->set_worker_id(worker.offer.life.worker_id);
  out->set_host(worker.offer.host);
  for (const std::string& target : worker.offer.targets) out->add_targets(target);
  out->set_leases(static_cast<int>(leases));
  out->set_trials_done(worker.trials_done);
  out->set_silent_s(static_cast<double>(worker.silent_ms) / 1000);
  out->set_away(!worker.here);
  out->set_unfit(worker.unfit);
  out->set_paused_s(static_cast<double>(worker.paused_ms) / 1000);
  out->set_paused_why(worker.paused_why);
  out->set_quarantined(worker.quarantined);
  out->set_kind(worker.offer.kind == WorkerKind::kBuilder  ? v1::BUILDER
                : worker.offer.kind == WorkerKind::kRunner ? v1::RUNNER
                                                           : v1::FULL);
  for (const auto& [family, toolchain] : worker.offer.compilers) out->add_compiles_for(family);
  if (!worker.lacks.empty()) out->set_other_release(lacks_text(worker.lacks));
}

}  // namespace tuner
