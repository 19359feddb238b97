#include "tuner/pack/import_results.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "compiler_core/base/base64.h"
#include "compiler_core/base/clock.h"
#include "compiler_core/base/json_reader.h"
#include "compiler_core/target.h"
#include "db/resolve/documents.h"
#include "measure_server/runner/pack_results.h"
#include "templates/space/config_space.h"
#include "templates/workload/key_document.h"
#include "templates/workload/workload.h"

namespace tuner {

using json_input::kRequired;
using json_input::Reader;
using nlohmann::json;

namespace {

// One line of a results file.
struct ImportedResult {
  std::string pack;
  JobRow::Task task;
  std::string template_name, config;
  int template_version = 0, round = 0;
  MeasureRecord record;
};

// What a file says of one pack.
struct ImportedPack {
  std::vector<KernelRow> kernels;  // that keys of its tasks name
  std::vector<ImportedResult> results;
};

// What must be the database's own spelling, or queries would never find it.
Status check_keys(const ImportedResult& r) {
  const Result<Workload> workload = workload_from_key(r.task.workload_key);
  if (!workload) return workload.status();
  const Result<Target> target = parse_target(r.task.target);
  if (!target) return target.status();
  const Result<Config> config = config_from_text(r.config);
  if (!config) return config.status();
  if (workload->key() != r.task.workload_key || target->name() != r.task.target ||
      config->to_text() != r.config)
    return invalid_argument("workload, target or config is not spelled as this tuner spells it");
  return Status::ok();
}

Status check_numbers(const MeasureRecord& r) {
  if (r.outcome == Outcome::kOk && r.run_ns.empty()) return invalid_argument("run_ns: ok without a sample");
  for (const double v : r.run_ns)
    if (!std::isfinite(v) || v <= 0) return invalid_argument("run_ns: found ", v, ", expected numbers > 0");
  for (const double v : r.cpu_ns)
    if (!std::isfinite(v) || v < 0) return invalid_argument("cpu_ns: found ", v, ", expected numbers >= 0");
  return Status::ok();
}

// Times with emptied caches are another quantity than those with warm ones: whoever reads them must see it.
// Format 1 called it "cold", and warm caches "none".
void read_caches(Reader& in, MeasureRecord& r) {
  std::string caches;
  in.read(in.get("caches") != nullptr ? "caches" : "cold", caches, kRequired);
  if (caches != "warm" && caches != "none")
    r.device_state += str(r.device_state.empty() ? "" : ", ", "caches: ", caches);
}

MeasureRecord read_record(Reader& in) {
  MeasureRecord r;
  in.read("message", r.message, kRequired);
  in.read("run_ns", r.run_ns, kRequired);
  in.read("cpu_ns", r.cpu_ns, kRequired);
  in.read("cut", r.cut, kRequired);
  in.read_at_least("sentinel_before_ns", r.sentinel_before_ns, 0, kRequired);
  in.read_at_least("sentinel_after_ns", r.sentinel_after_ns, 0, kRequired);
  in.read_at_least("build_ms", r.build_ms, 0, kRequired);
  in.read_at_least("run_ms", r.run_ms, 0, kRequired);
  in.read("artifact", r.artifact_digest, kRequired);
  in.read_at_least("max_error", r.max_error, 0, kRequired);
  in.read_at_least("peak_gflops", r.peak_gflops, 0, kRequired);
  in.read("hardware", r.environment.hardware, kRequired);
  in.read("toolchain", r.environment.toolchain, kRequired);
  in.read("harness_abi", r.environment.harness_abi, kRequired);
  in.read("host", r.environment.host, kRequired);
  r.environment.worker_id = "run-pack";
  in.read_object(
      "options",
      [&](Reader& o) {
        o.read_at_least("min_repeat_ms", r.options.min_repeat_ms, 0, kRequired);
        o.read("repeats", r.options.repeats, kRequired);
        o.read_at_least("run_timeout_s", r.options.run_timeout_s, 0, kRequired);
        o.read("memory_limit_bytes", r.options.memory_limit_bytes, kRequired);
        o.read_at_least("cut_factor", r.options.cut_factor, 0, kRequired);
        o.read_at_least("precision", r.options.precision, 0);
      },
      kRequired);
  in.read("finished_at_us", r.finished_at_us, kRequired);
  in.read("device_state", r.device_state, kRequired);
  read_caches(in, r);
  return r;
}

constexpr std::string_view kNot = "not a result of run-pack: ";

Status check_pack(const std::string& pack) {
  if (pack.size() == 64 && pack.find_first_not_of("0123456789abcdef") == std::string::npos)
    return Status::ok();
  return invalid_argument("pack: expected 64 hexadecimal digits");
}

// The document that the line brings; keys that name it can be read from now on.
Result<KernelRow> parse_document(Reader& in) {
  std::string text;
  in.read("document", text, kRequired);
  if (in.failed()) return in.status().with_context(kNot);
  std::optional<std::string> bytes = from_base64(text);
  if (!bytes || bytes->size() > kMostKernelBytes)
    return invalid_argument("document: expected base64 of at most ", kMostKernelBytes >> 20, " MiB");
  ASSIGN_OR_RETURN(DocumentFacts facts, read_document(*bytes));
  return KernelRow{
      .digest = std::move(facts.digest), .document = *std::move(bytes), .brought_at_us = wall_time_us()};
}

Result<ImportedResult> parse_result(Reader& in, std::string pack) {
  ImportedResult r{.pack = std::move(pack)};
  std::string outcome;
  in.read("workload", r.task.workload_key, kRequired);
  in.read("target", r.task.target, kRequired);
  in.read("template", r.template_name, kRequired);
  in.read("template_version", r.template_version, kRequired);
  in.read("config", r.config, kRequired);
  in.read("round", r.round, kRequired);
  r.record = read_record(in);
  r.record.environment.worker_incarnation = r.pack.substr(0, 16);
  in.read("outcome", outcome, kRequired);
  if (in.failed()) return in.status().with_context(kNot);
  const std::optional<Outcome> known = outcome_from_name(outcome);
  if (!known) return invalid_argument("outcome: found \"", outcome, "\"");
  r.record.outcome = *known;
  RETURN_IF_ERROR(check_keys(r));
  RETURN_IF_ERROR(check_numbers(r.record));
  return r;
}

// Adds what the line says to the pack that it is of.
Status take_line(const std::string& line, std::map<std::string, ImportedPack>& packs) {
  const Result<json> read = json_input::parse(line);
  if (!read) return read.status().with_context(kNot);
  Reader in(*read, "");
  int format = 0;
  std::string pack;
  in.read("format", format, kRequired);
  in.read("pack", pack, kRequired);
  if (in.failed()) return in.status().with_context(kNot);
  if (format < kOldestPackResultsFormat || format > kPackResultsFormat)
    return invalid_argument("format ", format, ", this tuner reads ", kOldestPackResultsFormat, " to ",
                            kPackResultsFormat, "; use the tuner that wrote the pack");
  RETURN_IF_ERROR(check_pack(pack));
  if (in.get("document") != nullptr) {
    ASSIGN_OR_RETURN(KernelRow kernel, parse_document(in));
    packs[pack].kernels.push_back(std::move(kernel));
    return Status::ok();
  }
  ASSIGN_OR_RETURN(ImportedResult result, parse_result(in, pack));
  packs[pack].results.push_back(std::move(result));
  return Status::ok();
}

using TrialKey = std::tuple<int, std::string, int, std::string>;  // task, template, its version, config

// Stores the results of one pack.
class PackImport {
 public:
  PackImport(Store& store, ImportedPack pack)
      : store_(store), kernels_(std::move(pack.kernels)), results_(std::move(pack.results)) {
    // The last round first: its record closes the trial.
    std::stable_sort(results_.begin(), results_.end(),
                     [](const ImportedResult& a, const ImportedResult& b) { return a.round > b.round; });
  }

  Status run(ImportReport& report) {
    RETURN_IF_ERROR(open_job());
    report.job_id = job_.id;
    RETURN_IF_ERROR(add_trials(report));
    RETURN_IF_ERROR(add_records(report));
    return store_.set_job_state(job_.id, JobState::kFinished, "");
  }

 private:
  TrialKey key_of(const ImportedResult& r) const {
    for (size_t i = 0; i < job_.tasks.size(); ++i)
      if (job_.tasks[i].workload_key == r.task.workload_key && job_.tasks[i].target == r.task.target)
        return {static_cast<int>(i), r.template_name, r.template_version, r.config};
    return {-1, "", 0, ""};
  }

  int configs_of_largest_task() const {
    std::map<std::pair<std::string, std::string>, std::set<std::string>> configs;
    for (const ImportedResult& r : results_)
      configs[{r.task.workload_key, r.task.target}].insert(
          str(r.template_name, " ", r.template_version, " ", r.config));
    size_t most = 0;
    for (const auto& [task, of_task] : configs) most = std::max(most, of_task.size());
    return static_cast<int>(most);
  }

  // The job of this pack, made when it is new. A job cannot gain tasks, so one that a shorter file made is
  // left and another is opened for tasks that are new.
  Status open_job() {
    std::vector<JobRow::Task> tasks;
    for (const ImportedResult& r : results_)
      if (std::none_of(tasks.begin(), tasks.end(), [&](const JobRow::Task& t) {
            return t.workload_key == r.task.workload_key && t.target == r.task.target;
          }))
        tasks.push_back(r.task);
    std::sort(tasks.begin(), tasks.end(), [](const JobRow::Task& a, const JobRow::Task& b) {
      return std::tie(a.workload_key, a.target) < std::tie(b.workload_key, b.target);
    });
    const std::string& pack = results_.front().pack;
    const std::string request = str("import ", pack, " ", tasks.size());
    if (const Result<JobRow> known = store_.job_by_request(request)) {
      job_ = *known;
      return Status::ok();
    }
    job_.id = str("import-", pack.substr(0, 8), tasks.size() > 1 ? str("-", tasks.size()) : "");
    job_.request_id = request;
    job_.tasks = tasks;
    job_.trials = configs_of_largest_task();
    job_.search = "import";
    job_.options = results_.front().record.options;
    // Finished from the start: a daemon that opens this database has nothing to do for it.
    job_.state = JobState::kFinished;
    for (const ImportedResult& r : results_)
      job_.submitted_at_us = job_.submitted_at_us == 0
                                 ? r.record.finished_at_us
                                 : std::min(job_.submitted_at_us, r.record.finished_at_us);
    job_.finished_at_us = results_.front().record.finished_at_us;
    // Of kernels that no task names, say because their lines were skipped, nothing is stored.
    std::erase_if(kernels_, [&](const KernelRow& kernel) {
      return std::ranges::none_of(tasks, [&](const JobRow::Task& task) {
        return document_of_key(task.workload_key) == kernel.digest;
      });
    });
    return store_.add_job(job_, kernels_);
  }

  Status add_trials(ImportReport& report) {
    ASSIGN_OR_RETURN(const std::vector<TrialWithRecord> there, store_.trials(job_.id));
    for (const TrialWithRecord& t : there)
      trials_[{t.trial.task_index, t.trial.template_name, t.trial.template_version, t.trial.config}] =
          t.trial.id;
    std::vector<TrialRow> fresh;
    for (const ImportedResult& r : results_) {
      const TrialKey key = key_of(r);
      if (!trials_.try_emplace(key, "").second) continue;
      TrialRow row;
      row.job_id = job_.id;
      row.task_index = std::get<0>(key);
      row.template_name = r.template_name;
      row.template_version = r.template_version;
      row.config = r.config;
      row.state = TrialState::kQueued;
      fresh.push_back(std::move(row));
    }
    RETURN_IF_ERROR(store_.add_trials(fresh));
    for (const TrialRow& row : fresh)
      trials_[{row.task_index, row.template_name, row.template_version, row.config}] = row.id;
    report.trials = static_cast<int64_t>(fresh.size());
    return Status::ok();
  }

  Status add_records(ImportReport& report) {
    for (ImportedResult& r : results_) {
      r.record.trial_id = trials_.at(key_of(r));
      ASSIGN_OR_RETURN(const std::vector<MeasureRecord> before, store_.records(r.record.trial_id));
      RETURN_IF_ERROR(store_.add_records({r.record}));
      ASSIGN_OR_RETURN(const std::vector<MeasureRecord> after, store_.records(r.record.trial_id));
      ++(after.size() > before.size() ? report.records : report.known);
    }
    return Status::ok();
  }

  Store& store_;
  std::vector<KernelRow> kernels_;
  std::vector<ImportedResult> results_;
  JobRow job_;
  std::map<TrialKey, std::string> trials_;  // to ids
};

}  // namespace

Result<std::vector<ImportReport>> import_results(const std::string& path, Store& store) {
  std::ifstream in(path);
  if (!in) return invalid_argument(path, ": cannot be read: ", std::strerror(errno));
  std::map<std::string, ImportedPack> packs;
  ImportReport unread;
  for (std::string line; std::getline(in, line);) {
    ++unread.lines;
    if (line.empty()) continue;
    if (const Status taken = take_line(line, packs); !taken)
      unread.skipped.push_back(str("line ", unread.lines, ": ", taken.message()));
  }
  std::erase_if(packs, [](const auto& pack) { return pack.second.results.empty(); });
  if (packs.empty())
    return invalid_argument(path, ": holds no result of run-pack",
                            unread.skipped.empty() ? "" : "; " + unread.skipped.front());
  std::vector<ImportReport> reports;
  for (auto& [id, pack] : packs) {
    ImportReport report;
    report.lines = static_cast<int64_t>(pack.results.size());
    PackImport import(store, std::move(pack));
    RETURN_IF_ERROR(import.run(report));
    reports.push_back(std::move(report));
  }
  reports.front().skipped = std::move(unread.skipped);
  return reports;
}

}  // namespace tuner
