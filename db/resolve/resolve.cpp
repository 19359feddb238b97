#include "db/resolve/resolve.h"

#include <array>
#include <utility>

namespace tuner {
namespace {

constexpr std::array<std::pair<AnswerKind, std::string_view>, 5> kKinds = {{
    {AnswerKind::kExact, "exact"},
    {AnswerKind::kSameFamily, "same-family"},
    {AnswerKind::kNearest, "nearest"},
    {AnswerKind::kPortable, "portable"},
    {AnswerKind::kDefault, "default"},
}};

// Whether this program has the template in the version the config was measured with, and it serves the task.
Status usable(std::string_view template_name, int template_version, const Workload& workload,
              const Target& target) {
  const AnyTemplate* t = find_template(template_name);
  if (t == nullptr) return not_found("template ", template_name, ", which this program does not have");
  if (t->version() != template_version)
    return not_found("version ", template_version, " of template ", template_name,
                     "; this program has version ", t->version(),
                     ", where the config may mean something else");
  const Support support = t->supports(workload, target);
  if (!support.yes)
    return not_found("template ", template_name, ", which does not serve this task: ", support.reason);
  return Status::ok();
}

Basis basis_of(const TunedConfig& tuned) {
  return {tuned.trial_id, tuned.workload_key, tuned.target, tuned.time_ns, tuned.finished_at_us};
}

}  // namespace

std::string_view answer_kind_name(AnswerKind kind) {
  for (const auto& [known, name] : kKinds)
    if (known == kind) return name;
  return "unknown";
}

std::optional<AnswerKind> answer_kind_from_name(std::string_view name) {
  for (const auto& [kind, known] : kKinds)
    if (known == name) return kind;
  return std::nullopt;
}

Result<ResolvedKernel> kernel_of(const Answer& answer, const Workload& workload, const Target& target) {
  RETURN_IF_ERROR(usable(answer.template_name, answer.template_version, workload, target));
  ResolvedKernel kernel{.schedule_template = find_template(answer.template_name)};
  ASSIGN_OR_RETURN(kernel.config, config_from_text(answer.config));
  ASSIGN_OR_RETURN(kernel.instance, kernel.schedule_template->apply(workload, target));
  const Result<ConfigIndex> index = kernel.instance->space().index_of(kernel.config);
  if (!index) return not_found("a config that is not valid here: ", index.message());
  return kernel;
}

struct Resolver::Impl {
  const Store* store;
  ResolverOptions options;

  // The answer of the task's own records, if this program can still build it; else why not, in `why`.
  Result<std::optional<Answer>> exact(const Answer& asked, const Workload& workload, const Target& target,
                                      std::string_view algorithms, std::string& why) const {
    Result<TunedConfig> best = store->best(asked.workload_key, asked.target, templates_of(algorithms));
    if (!best && best.status().code() == StatusCode::kNotFound) return std::optional<Answer>();
    if (!best) return best.status();
    if (const Status ready = usable(best->template_name, best->template_version, workload, target); !ready) {
      why = str("trial ", best->trial_id, " rests on ", ready.message(), "; ");
      return std::optional<Answer>();
    }
    Answer answer = asked;
    answer.kind = AnswerKind::kExact;
    answer.template_name = best->template_name;
    answer.template_version = best->template_version;
    answer.config = best->config;
    answer.known = true;
    answer.predicted = 1;
    answer.low = best->time_high_ns > 0 ? best->time_ns / best->time_high_ns : 1;
    answer.high = best->time_low_ns > 0 ? best->time_ns / best->time_low_ns : 1;
    answer.rests_on = {basis_of(*best)};
    answer.tuned = *std::move(best);
    return std::optional(std::move(answer));
  }

  Result<Answer> default_answer(const Answer& asked, const Workload& workload, const Target& target,
                                std::string_view algorithms, const std::string& why) const {
    ASSIGN_OR_RETURN(const std::vector<const AnyTemplate*> serving,
                     templates_for(workload, target, algorithms));
    ASSIGN_OR_RETURN(const std::unique_ptr<TemplateInstance> instance,
                     serving.front()->apply(workload, target));
    const ConfigSpace& space = instance->space();
    Answer answer = asked;
    answer.kind = AnswerKind::kDefault;
    answer.template_name = std::string(serving.front()->name());
    answer.template_version = serving.front()->version();
    answer.config = space.at(space.default_index()).to_text();
    answer.note =
        str(why.empty() ? str("nothing tuned for ", asked.workload_key, " on \"", asked.target, "\": ") : why,
            "its default config is used, how far from the optimum is not known. To tune it: ", options.fix);
    return answer;
  }
};

Resolver::Resolver(const Store* store, ResolverOptions options)
    : impl_(std::make_unique<Impl>(Impl{store, std::move(options)})) {}
Resolver::~Resolver() = default;

Result<Answer> Resolver::resolve(const Workload& workload, const Target& target,
                                 std::string_view algorithms) const {
  Answer asked;
  asked.workload_key = workload.key();
  asked.target = target.name();
  std::string why;
  if (impl_->store != nullptr) {
    ASSIGN_OR_RETURN(std::optional<Answer> exact, impl_->exact(asked, workload, target, algorithms, why));
    if (exact) return *std::move(exact);
  }
  return impl_->default_answer(asked, workload, target, algorithms, why);
}

}  // namespace tuner
