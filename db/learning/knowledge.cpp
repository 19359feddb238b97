#include "db/learning/knowledge.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "db/device_records.h"
#include "templates/schedule_template.h"

namespace tuner {

namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr size_t kMostTasks = 400;
constexpr int kMostRows = 6000, kMostRowsOfATask = 240, kLeastRowsOfATask = 15;
constexpr size_t kTopsOfATemplate = 3;

struct TaskRecords {
  struct Place {
    std::string target;
    bool of_one_class = false;  // only those of the class asked for count
  };
  std::string workload_key;
  Workload workload;
  std::vector<Place> places;
  std::vector<TrialWithRecord> records;  // each has one
};

// Of tasks whose records count for the target (db/device_records.h), by workload.
Result<std::vector<TaskRecords>> records_of(const Store& store, std::string_view op, const Target& target,
                                            const std::function<bool(const Workload&)>& use, int64_t until) {
  ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks, store.tasks());
  std::vector<TaskRecords> out;
  const std::string prefix = str("v1 ", op, " ");
  std::map<std::string, CountsFor> targets;  // each parsed once
  std::map<std::string, size_t> places;      // in `out`, by workload
  for (const JobRow::Task& task : tasks) {
    if (!task.workload_key.starts_with(prefix)) continue;
    const auto [at, fresh] = targets.try_emplace(task.target, CountsFor::kNothing);
    if (fresh) at->second = counts_for(target, task.target);
    if (at->second == CountsFor::kNothing) continue;
    const TaskRecords::Place place{task.target, at->second == CountsFor::kClass};
    if (const auto same = places.find(task.workload_key); same != places.end()) {
      out[same->second].places.push_back(place);
      continue;
    }
    Result<Workload> workload = workload_from_key(task.workload_key);
    if (!workload || (use && !use(*workload))) continue;  // a key of a program that knows more
    places.emplace(task.workload_key, out.size());
    out.push_back({task.workload_key, *std::move(workload), {place}, {}});
  }
  if (out.size() > kMostTasks) out.erase(out.begin(), out.end() - kMostTasks);
  const int rows = std::clamp(kMostRows / static_cast<int>(std::max<size_t>(out.size(), 1)),
                              kLeastRowsOfATask, kMostRowsOfATask);
  for (TaskRecords& task : out)
    for (const TaskRecords::Place& place : task.places) {
      // Some of the sample are of other classes.
      const int most = place.of_one_class ? kMostRowsOfATask : rows;
      ASSIGN_OR_RETURN(std::vector<TrialWithRecord> found,
                       store.sample_records({task.workload_key, place.target}, until, most));
      std::erase_if(found, [&](const TrialWithRecord& t) {
        return !t.record || (place.of_one_class &&
                             !is_of_class(*target.family, target.device, t.record->environment.hardware));
      });
      std::ranges::move(found, std::back_inserter(task.records));
    }
  std::erase_if(out, [](const TaskRecords& task) { return task.records.empty(); });
  return out;
}

// Spaces of one task, each made once.
class Spaces {
 public:
  Spaces(const Workload& workload, const Target& target) : workload_(workload), target_(target) {}
  // Null when this program has no such template in that version, or it does not serve the task.
  const ConfigSpace* of(std::string_view template_name, int version) {
    const auto found = instances_.find(template_name);
    if (found != instances_.end()) return found->second ? &found->second->space() : nullptr;
    std::unique_ptr<TemplateInstance>& instance = instances_[std::string(template_name)];
    const AnyTemplate* t = find_template(template_name);
    if (t == nullptr || t->version() != version || !t->supports(workload_, target_).yes) return nullptr;
    Result<std::unique_ptr<TemplateInstance>> applied = t->apply(workload_, target_);
    if (applied) instance = *std::move(applied);
    return instance ? &instance->space() : nullptr;
  }

 private:
  const Workload& workload_;
  const Target& target_;
  std::map<std::string, std::unique_ptr<TemplateInstance>, std::less<>> instances_;
};

void add_rows(const TaskRecords& task, const Target& target, Lessons& lesson) {
  const std::string key = key_without_epilogue(task.workload);
  auto found = std::find(lesson.shapes.begin(), lesson.shapes.end(), key);
  if (found == lesson.shapes.end()) found = lesson.shapes.insert(lesson.shapes.end(), key);
  const int number = static_cast<int>(found - lesson.shapes.begin());
  // Times of one machine and compiler are compared with each other only.
  std::map<std::string, double> fastest;
  const auto where = [](const MeasureRecord& r) {
    return r.environment.hardware + "\n" + r.environment.toolchain;
  };
  for (const TrialWithRecord& t : task.records) {
    if (t.record->outcome != Outcome::kOk || t.record->cut) continue;
    double& best =
        fastest.try_emplace(where(*t.record), std::numeric_limits<double>::infinity()).first->second;
    best = std::min(best, record_time_ns(*t.record));
  }
  const TaskShape shape = shape_of(task.workload);
  Spaces spaces(task.workload, target);
  for (const TrialWithRecord& t : task.records) {
    const auto best = fastest.find(where(*t.record));
    if (best == fastest.end()) continue;
    const ConfigSpace* space = spaces.of(t.trial.template_name, t.trial.template_version);
    const Result<Config> config = config_from_text(t.trial.config);
    if (space == nullptr || !config || !space->index_of(*config)) continue;
    const bool ok = t.record->outcome == Outcome::kOk;
    lesson.rows.push_back({candidate_facts(shape, t.trial.template_name, *space, *config), number,
                           ok ? best->second / record_time_ns(*t.record) : 0});
  }
}

std::vector<TopConfig> tops_of(std::vector<TrialWithRecord> records) {
  std::erase_if(records,
                [](const TrialWithRecord& t) { return t.record->outcome != Outcome::kOk || t.record->cut; });
  std::stable_sort(records.begin(), records.end(), [](const TrialWithRecord& a, const TrialWithRecord& b) {
    return record_time_ns(*a.record) < record_time_ns(*b.record);
  });
  std::vector<TopConfig> tops;
  std::map<std::string, size_t> taken;
  for (const TrialWithRecord& t : records) {
    const bool again = std::ranges::any_of(tops, [&](const TopConfig& c) {
      return c.template_name == t.trial.template_name && c.config == t.trial.config;
    });
    if (again || ++taken[t.trial.template_name] > kTopsOfATemplate) continue;
    tops.push_back({t.trial.id, t.trial.template_name, t.trial.config, t.trial.template_version,
                    record_time_ns(*t.record), t.record->finished_at_us});
  }
  return tops;
}

}  // namespace

Result<std::map<std::string, Lessons>> lesson_rows(const Store& store, std::string_view op,
                                                   const Target& target,
                                                   const std::function<bool(const Workload&)>& use) {
  ASSIGN_OR_RETURN(const std::vector<TaskRecords> tasks,
                   records_of(store, op, target, use, std::numeric_limits<int64_t>::max()));
  std::map<std::string, Lessons> out;
  for (const TaskRecords& task : tasks) add_rows(task, target, out[shape_of(task.workload).variant]);
  return out;
}

Result<Knowledge> learn(const Store& store, std::string_view op, const Target& target,
                        const std::function<bool(const Workload&)>& use) {
  Knowledge out{.op = std::string(op), .target = target.name()};
  ASSIGN_OR_RETURN(out.until_record_id, store.last_record_id());
  ASSIGN_OR_RETURN(const std::vector<TaskRecords> tasks,
                   records_of(store, op, target, use, out.until_record_id));
  std::map<std::string, Lessons> lessons;
  for (const TaskRecords& task : tasks) {
    TunedShape shape{task.workload_key, shape_of(task.workload), tops_of(task.records)};
    add_rows(task, target, lessons[shape.shape.variant]);
    if (!shape.tops.empty()) out.shapes.push_back(std::move(shape));
  }
  for (const auto& [variant, lesson] : lessons) {
    Result<VariantPredictor> predictor = VariantPredictor::learn(lesson.rows);
    if (predictor) out.variants.emplace(variant, *std::move(predictor));
  }
  return out;
}

Result<bool> learn_and_store(Store& store, std::string_view op, std::string_view target_name) {
  ASSIGN_OR_RETURN(const Target target, parse_target(target_name));
  const Result<LearnedRow> before = store.learned(kPredictorKind, op, target_name);
  if (!before && before.status().code() != StatusCode::kNotFound) return before.status();
  ASSIGN_OR_RETURN(const int64_t last, store.last_record_id());
  if (before && before->until_record_id == last) return false;
  ASSIGN_OR_RETURN(const Knowledge knowledge, learn(store, op, target));
  if (knowledge.variants.empty()) return false;
  LearnedRow row{.kind = kPredictorKind,
                 .op = std::string(op),
                 .target = std::string(target_name),
                 .until_record_id = knowledge.until_record_id,
                 .document = knowledge.to_text()};
  RETURN_IF_ERROR(store.add_learned(row));
  return true;
}

std::string Knowledge::to_text() const {
  json list = json::array();
  for (const TunedShape& s : shapes) {
    json tops = json::array();
    for (const TopConfig& t : s.tops)
      tops.push_back(
          {t.trial_id, t.template_name, t.template_version, t.config, t.time_ns, t.finished_at_us});
    list.push_back({{"workload", s.workload_key}, {"tops", std::move(tops)}});
  }
  json predictors = json::object();
  for (const auto& [variant, predictor] : variants) predictors[variant] = predictor.to_json();
  return json{{"format", kFormat},         {"op", op},
              {"target", target},          {"until_record_id", until_record_id},
              {"shapes", std::move(list)}, {"variants", std::move(predictors)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Knowledge> Knowledge::from_text(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return invalid_argument("predictor: is no JSON");
  Knowledge out;
  try {
    if (const int format = document.at("format").get<int>(); format != kFormat)
      return invalid_argument("predictor: format ", format, ", this program reads ", kFormat,
                              "; make it anew: tuner learn");
    out.op = document.at("op").get<std::string>();
    out.target = document.at("target").get<std::string>();
    out.until_record_id = document.at("until_record_id").get<int64_t>();
    for (const json& s : document.at("shapes")) {
      TunedShape shape{.workload_key = s.at("workload").get<std::string>()};
      const Result<Workload> workload = workload_from_key(shape.workload_key);
      if (!workload) return workload.status().with_context("predictor: ");
      shape.shape = shape_of(*workload);
      for (const json& t : s.at("tops"))
        shape.tops.push_back({t.at(0).get<std::string>(), t.at(1).get<std::string>(),
                              t.at(3).get<std::string>(), t.at(2).get<int>(), t.at(4).get<double>(),
                              t.at(5).get<int64_t>()});
      out.shapes.push_back(std::move(shape));
    }
    for (const auto& [variant, predictor] : document.at("variants").items()) {
      ASSIGN_OR_RETURN(VariantPredictor read, VariantPredictor::from_json(predictor));
      out.variants.emplace(variant, std::move(read));
    }
  } catch (const json::exception& e) {
    return invalid_argument("predictor: ", e.what());
  }
  return out;
}

}  // namespace tuner
