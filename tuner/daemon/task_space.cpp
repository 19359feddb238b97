#include "tuner/daemon/task_space.h"

#include <map>
#include <mutex>
#include <utility>

namespace tuner {
namespace {

struct Owned {
  Workload workload;
  Target target;
  std::vector<std::unique_ptr<TemplateInstance>> instances;
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
  ASSIGN_OR_RETURN(std::vector<const AnyTemplate*> templates, templates_for(workload, target));
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
    space.search.parts.push_back({std::string(t->name()), &owned->instances.back()->space(), {}});
    space.template_versions.push_back(t->version());
  }
  space.owned = owned;
  return space;
}

}  // namespace tuner
