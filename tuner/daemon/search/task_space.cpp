#include "tuner/daemon/search/task_space.h"

#include <map>
#include <utility>

#include "compiler_core/analysis/features.h"
#include "compiler_core/backend.h"

namespace tuner {
namespace {

struct Owned {
  Workload workload;
  Target target;
  std::vector<std::unique_ptr<TemplateInstance>> instances;
};

// Features of scheduled Programs, each computed once. A config whose schedule is refused has the features of
// nothing: zeros. Called by one search at a time.
class FeatureCache {
 public:
  FeatureCache(const TemplateInstance& instance, const Target& target)
      : instance_(instance), target_(target), backend_(find_backend(*target.family)) {}
  std::vector<float> operator()(const Config& config) {
    if (const auto known = known_.find(config); known != known_.end()) return known->second;
    if (known_.size() >= kMostEntries) known_.clear();
    const Result<Program> program = instance_.instantiate(config);
    std::vector<float> features =
        program ? program_features(*program) : std::vector<float>(program_feature_names().size(), 0.0f);
    if (backend_ != nullptr) {
      const std::vector<float> more = backend_->features(program ? *program : Program{}, target_);
      features.insert(features.end(), more.begin(), more.end());
    }
    return known_[config] = std::move(features);
  }

 private:
  static constexpr size_t kMostEntries = 50'000;  // about 10 MB
  const TemplateInstance& instance_;
  const Target& target_;
  const Backend* backend_;  // null: none of the target is linked in
  std::map<Config, std::vector<float>> known_;
};

struct Parsed {
  Workload workload;
  Target target;
  std::vector<const AnyTemplate*> templates;
};

Result<Parsed> parse(const JobRow::Task& task) {
  ASSIGN_OR_RETURN(Workload workload, workload_from_key(task.workload_key));
  RETURN_IF_ERROR(validate(workload));
  ASSIGN_OR_RETURN(Target target, parse_target(task.target));
  ASSIGN_OR_RETURN(std::vector<const AnyTemplate*> templates,
                   templates_for(workload, target, task.algorithms));
  return Parsed{std::move(workload), std::move(target), std::move(templates)};
}

}  // namespace

Status check_task(const JobRow::Task& task) {
  const Result<Parsed> parsed = parse(task);
  return parsed ? Status::ok() : parsed.status();
}

Result<TaskSpace> make_task_space(const JobRow::Task& task) {
  ASSIGN_OR_RETURN(Parsed parsed, parse(task));
  auto owned = std::make_shared<Owned>();
  owned->workload = std::move(parsed.workload);
  owned->target = std::move(parsed.target);
  TaskSpace space;
  space.flops = owned->workload.flops();
  for (const AnyTemplate* t : parsed.templates) {
    Result<std::unique_ptr<TemplateInstance>> applied = t->apply(owned->workload, owned->target);
    if (!applied) return applied.status().with_context(str("template ", t->name(), ": "));
    owned->instances.push_back(std::move(*applied));
    const TemplateInstance& instance = *owned->instances.back();
    const auto cache = std::make_shared<FeatureCache>(instance, owned->target);
    space.search.parts.push_back({std::string(t->name()), &instance.space(),
                                  [cache](const Config& config) { return (*cache)(config); }});
    space.template_versions.push_back(t->version());
  }
  space.owned = owned;
  return space;
}

}  // namespace tuner
