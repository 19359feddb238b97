#include "tuner/jobs/job_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler_core/base/c_names.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/measure_limits.h"
#include "compiler_core/host_spelling.h"
#include "compiler_core/target.h"
#include "templates/schedule_template.h"
#include "templates/source_kernel/source_kernel_json.h"
#include "templates/workload/workload_json.h"
#include "tuner/search/search_strategy.h"

namespace tuner {

namespace {

using json_input::found;
using json_input::ObjectReader;
using nlohmann::json;

constexpr size_t kMaxFileBytes = 16 << 20;
constexpr size_t kMaxEntries = 4096;

// Reads a number of the table of limits.
void read_limited(ObjectReader& in, const MeasureLimit& limit, double& value) {
  if (limit.above)
    in.read(std::string(limit.name), value, limit.least, limit.most);
  else
    in.read_within(std::string(limit.name), value, limit.least, limit.most);
}
template <std::integral Int>
void read_limited(ObjectReader& in, const MeasureLimit& limit, Int& value) {
  in.read(std::string(limit.name), value, static_cast<int64_t>(limit.least),
          static_cast<int64_t>(limit.most));
}

void read_measure(ObjectReader& in, const std::string& prefix, JobEntry& entry) {
  const json* measure = in.get("measure");
  if (measure == nullptr) return;
  MeasureOptions& o = entry.measure;
  entry.states_run_timeout = measure->contains("run_timeout_s");
  ObjectReader m(*measure, prefix + "measure.");
  read_limited(m, kMinRepeatMs, o.min_repeat_ms);
  read_limited(m, kRepeats, o.repeats);
  read_limited(m, kPrecision, o.precision);
  read_limited(m, kBuildTimeoutS, o.build_timeout_s);
  read_limited(m, kRunTimeoutS, o.run_timeout_s);
  constexpr double kGib = 1 << 30;
  double memory_limit_gib = static_cast<double>(o.memory_limit_bytes) / kGib;
  m.read_within("memory_limit_gib", memory_limit_gib, kMemoryLimitBytes.least / kGib,
                kMemoryLimitBytes.most / kGib);
  o.memory_limit_bytes = static_cast<int64_t>(memory_limit_gib * kGib);
  std::string constants(constants_name(o.constants));
  m.read("constants", constants);
  if (const std::optional<Constants> found_constants = constants_from_name(constants))
    o.constants = *found_constants;
  else
    m.refuse("constants", "expected \"warm\" or \"cold\", found ", found(json(constants)), ".");
  in.adopt(m.finish());
}

void read_target(ObjectReader& in, std::string& target) {
  in.read("target", target);
  // What "cpu" is on this host, or its GPU, is found out where it is used; any other target can be checked
  // here.
  if (in.failed() || means_host(target)) return;
  if (const Result<Target> parsed = parse_target(target); !parsed)
    in.refuse("target", parsed.message(), "; found ", found(json(target)), ".");
}

void read_algorithms(ObjectReader& in, std::string& algorithms) {
  const json* value = in.get("algorithms");
  if (value == nullptr) return;
  std::vector<std::string> names;
  if (value->is_array())
    for (const json& name : *value)
      if (name.is_string()) names.push_back(name.get<std::string>());
  if (!value->is_array() || names.size() != value->size())
    return in.refuse("algorithms", "expected a list of names, found ", found(*value), ".");
  const Result<std::string> canonical = canonical_algorithms(names);
  if (!canonical) return in.refuse("algorithms", canonical.message(), "; found ", found(*value), ".");
  algorithms = *canonical;
}

// A kernel of the user's: its files are beside the job file. One that this program knows may be named by its
// key instead. `target` becomes that of a GPU where the kernel is one.
Workload read_any_workload(ObjectReader& in, const json& object, const JobFolder* folder,
                           std::string& target) {
  if (!object.is_object() || object.value("op", json()) != "kernel" || object.contains("key"))
    return read_workload(in);
  in.get("op");
  if (folder == nullptr) {
    in.refuse("source", "the files of a kernel are not here; hand the job file over by its path.");
    return {};
  }
  std::shared_ptr<const SourceKernel> kernel = read_source_kernel(in, *folder);
  if (kernel == nullptr) return Workload();
  if (kernel->on_device()) target = kGpuOfHost;
  return Workload(kernel_workload(std::move(kernel)));
}

Result<JobEntry> read_entry(const json& object, const std::string& prefix, const JobFolder* folder) {
  ObjectReader in(object, prefix);
  JobEntry entry;
  entry.workload = read_any_workload(in, object, folder, entry.target);
  read_target(in, entry.target);
  read_limited(in, kJobTrials, entry.trials);
  read_limited(in, kJobUses, entry.uses);
  in.read("name", entry.name);
  if (const Status ok = check_c_name(entry.name); !entry.name.empty() && !ok)
    in.refuse("name", ok.message(), ", found ", found(json(entry.name)), ".");
  in.read("search", entry.search);
  if (!is_search_name(entry.search)) {
    std::string known;
    for (const std::string& name : strategy_names()) known += (known.empty() ? "" : ", ") + name;
    in.refuse("search", "expected one of ", known, ", found ", found(json(entry.search)), ".");
  }
  read_algorithms(in, entry.algorithms);
  in.read("seed", entry.seed, 0, ~uint64_t{0});
  double stop_below_percent = 100 * entry.stop.below;
  in.read_within("stop_below", stop_below_percent, 0, 100);
  entry.stop.below = stop_below_percent / 100;
  read_limited(in, kJobTimeLimitS, entry.stop.time_limit_s);
  read_measure(in, prefix, entry);
  RETURN_IF_ERROR(in.finish());
  RETURN_IF_ERROR(validate(entry.workload).with_context(prefix));
  return entry;
}

Result<std::vector<JobEntry>> read_document(std::string_view text, const JobFolder* folder) {
  if (text.starts_with("tuner-lock "))
    return invalid_argument(
        "is a lock file, expected a job file. To use its configs: --lock, beside a job file");
  ASSIGN_OR_RETURN(const json document, json_input::parse(text));
  std::vector<JobEntry> entries;
  if (!document.is_array()) {
    ASSIGN_OR_RETURN(JobEntry entry, read_entry(document, "", folder));
    entries.push_back(std::move(entry));
    return entries;
  }
  if (document.empty()) return invalid_argument("expected at least one entry, found [].");
  if (document.size() > kMaxEntries)
    return invalid_argument("expected at most ", kMaxEntries, " entries, found ", document.size(), ".");
  for (size_t i = 0; i < document.size(); ++i) {
    ASSIGN_OR_RETURN(JobEntry entry, read_entry(document[i], str("[", i, "]."), folder));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Constants constants_of(const JobEntry& entry) {
  return entry.workload.has_constants() ? entry.measure.constants : Constants::kWarm;
}

bool is_search_name(std::string_view name) {
  return std::ranges::find(strategy_names(), name) != strategy_names().end();
}

Result<std::vector<JobEntry>> parse_job_text(std::string_view text, std::string_view name,
                                             const JobFolder* folder) {
  Result<std::vector<JobEntry>> entries = read_document(text, folder);
  if (!entries)
    return Status(StatusCode::kInvalidArgument, json_input::one_line(str(name, ": ", entries.message())));
  return entries;
}

Result<std::vector<JobEntry>> read_job_file(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text,
                   read_file(path, "a job file such as examples/conv2d.json", kMaxFileBytes));
  const std::unique_ptr<JobFolder> folder =
      job_folder(path == "-" ? "." : std::filesystem::path(path).parent_path().string());
  return parse_job_text(text, path == "-" ? "standard input" : path, folder.get());
}

}  // namespace tuner
