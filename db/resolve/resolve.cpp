#include "db/resolve/resolve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "db/device_records.h"
#include "db/learning/cover.h"
#include "db/learning/knowledge.h"
#include "db/resolve/default_time.h"
#include "db/resolve/locked.h"
#include "db/resolve/nearest.h"
#include "db/resolve/same_family.h"
#include "templates/space/project.h"

namespace tuner {
namespace {

constexpr std::array<std::pair<AnswerKind, std::string_view>, 6> kKinds = {{
    {AnswerKind::kExact, "exact"},
    {AnswerKind::kSameFamily, "same-family"},
    {AnswerKind::kNearest, "nearest"},
    {AnswerKind::kPortable, "portable"},
    {AnswerKind::kDefault, "default"},
    {AnswerKind::kLocked, "locked"},
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

Basis basis_of(const TunedConfig& t) {
  return {t.trial_id, t.workload_key, t.target, t.time_ns, t.finished_at_us, t.trial_name};
}

int version_here(std::string_view template_name) {
  const AnyTemplate* t = find_template(template_name);
  return t == nullptr ? 0 : t->version();
}

std::string percent(double fraction) { return str(std::lround(100 * fraction), " %"); }

// "predicted 91 % of the optimum (72 .. 100 %)"
std::string predicted_text(const Answer& a) {
  return str("predicted ", percent(a.predicted), " of the optimum (", std::lround(100 * a.low), " .. ",
             percent(a.high), ")");
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

bool is_config_of(const Answer& a, const Answer& b) {
  return a.template_name == b.template_name && a.template_version == b.template_version &&
         a.config == b.config;
}

Result<ResolvedKernel> kernel_of(const Answer& answer, const Workload& workload, const Target& target) {
  if (answer.kind == AnswerKind::kLocked) return locked_kernel(answer, workload, target);
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

  // What was learned of an operator on a target, parsed once as long as nothing newer is stored.
  struct Learned {
    int64_t row_id = 0;  // of the document; 0: none, or learned here
    std::shared_ptr<const Knowledge> knowledge;
  };
  mutable std::mutex mutex;
  mutable std::map<std::pair<std::string, std::string>, Learned> learned;
  mutable std::map<std::string, Present> presents;                           // by target
  mutable std::map<std::pair<std::string, std::string>, Status> buildables;  // by trial and target

  struct Question {
    const Workload& workload;
    const Target& target;
    std::string_view algorithms;
    Constants constants = Constants::kWarm;
    Answer asked;     // workload_key and target are filled
    std::string why;  // the exact record cannot be used: "trial t3 rests on ..."
  };
  // An answer in the making: `score` is what it competes by.
  struct Offer {
    Answer answer;
    double score = 0;
    std::string how;  // "the config of ... (trial t5) is used"
  };

  const Present& present_of(const Target& target) const {
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = presents.try_emplace(target.name());
    if (fresh) {
      if (options.present) at->second = options.present(target);
      if (!at->second.template_version) at->second.template_version = version_here;
    }
    return at->second;  // of a map: stays where it is, and as it is
  }

  void mark_stale(Answer& answer, const TunedConfig& tuned, const Target& target) const {
    const Staleness s = staleness(tuned, present_of(target));
    answer.stale = s.stale();
    answer.stale_reason = s.reason;
  }

  std::string name_of_trial(const std::string& id) const {
    const Result<TrialWithRecord> trial = store->trial(id);
    return trial ? trial->trial.name() : id;
  }

  // The best of the task's own records. A machine keeps its answers when its target gets another name (a
  // newer LLVM tells its CPU from others, say): then they stand under the former one. None: not tuned.
  Result<std::optional<TunedConfig>> best_of_task(const Question& q) const {
    Result<TunedConfig> best = best_on_device(
        *store, {.workload_key = q.asked.workload_key, .target = q.asked.target, .constants = q.constants},
        templates_of(q.algorithms), options.count_outcomes);
    if (best) return std::optional(*std::move(best));
    if (best.status().code() != StatusCode::kNotFound) return best.status();
    if (!q.target.family->name_depends_on_compiler() || present_of(q.target).hardware.empty())
      return std::optional<TunedConfig>();
    ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks, store->tasks(q.constants));
    for (const std::string& name : names_of_same_vectors(q.asked.workload_key, q.target, tasks)) {
      best = store->best(q.asked.workload_key, name, templates_of(q.algorithms), options.count_outcomes,
                         q.constants);
      if (!best && best.status().code() == StatusCode::kNotFound) continue;
      if (!best) return best.status();
      ASSIGN_OR_RETURN(const bool here, measured_as_this_machine(*best, q.target));
      if (here) return std::optional(*std::move(best));
    }
    return std::optional<TunedConfig>();
  }

  // Code of an older CPU may have been measured here, too; such a record says so.
  Result<bool> measured_as_this_machine(const TunedConfig& tuned, const Target& target) const {
    if (tuned.environment.hardware.empty()) return false;
    const Staleness s = staleness(tuned, present_of(target));
    if (std::find(s.causes.begin(), s.causes.end(), StaleCause::kHardware) != s.causes.end()) return false;
    ASSIGN_OR_RETURN(const TrialWithRecord trial, store->trial(tuned.trial_id));
    return trial.record && trial.record->device_state.empty();
  }

  // Whether this program can build the trial's config for the task: records of another program, or of a hand,
  // may hold one that is in no space of ours. Asked once a trial, because it makes the space.
  Status buildable(const TunedConfig& tuned, const Question& q) const {
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = buildables.try_emplace({tuned.trial_id, q.asked.target}, Status::ok());
    if (!fresh) return at->second;
    Answer answer = q.asked;
    answer.template_name = tuned.template_name;
    answer.template_version = tuned.template_version;
    answer.config = tuned.config;
    return at->second = kernel_of(answer, q.workload, q.target).status();
  }

  // The answer of the task's own records, if this program can still build it.
  Result<std::optional<Answer>> exact(Question& q) const {
    ASSIGN_OR_RETURN(std::optional<TunedConfig> best, best_of_task(q));
    if (!best) return std::optional<Answer>();
    if (const Status ready = buildable(*best, q); !ready) {
      q.why = str("trial ", best->trial_name, " rests on ", ready.message(), "; ");
      return std::optional<Answer>();
    }
    if (options.count_outcomes)
      RETURN_IF_ERROR(add_default_time(*store, q.workload, q.target, q.algorithms, *best));
    Answer answer = q.asked;
    answer.kind = AnswerKind::kExact;
    answer.template_name = best->template_name;
    answer.template_version = best->template_version;
    answer.config = best->config;
    answer.known = true;
    answer.predicted = 1;
    answer.low = best->time_high_ns > 0 ? best->time_ns / best->time_high_ns : 1;
    answer.high = best->time_low_ns > 0 ? best->time_ns / best->time_low_ns : 1;
    answer.rests_on = {basis_of(*best)};
    mark_stale(answer, *best, q.target);
    if (answer.stale)
      answer.note =
          str(q.asked.workload_key, " on \"", q.asked.target, "\" was tuned under other conditions (",
              answer.stale_reason, "): its config is used. To measure it again: tuner revalidate");
    if (options.count_outcomes && q.target.family->explains_device_state())
      if (const Result<TrialWithRecord> trial = store->trial(best->trial_id);
          trial && trial->record && !trial->record->device_state.empty())
        answer.note += str(answer.note.empty() ? "" : "; ", trial->record->device_state);
    if (best->target != q.asked.target)
      answer.note += (answer.note.empty() ? "" : "; ") + why_of_another_name(*best, q.target);
    answer.tuned = *std::move(best);
    return std::optional(std::move(answer));
  }

  // Of records that stand under another name than the target's own.
  static std::string why_of_another_name(const TunedConfig& tuned, const Target& target) {
    const Result<Target> there = parse_target(tuned.target);
    const std::string recorded = str("recorded under \"", tuned.target, "\", ");
    if (!target.family->any_device(target).empty())
      return str(recorded, "on a device of the class ", target.device);
    if (there && target.family->any_device(*there) == target.name())
      return recorded + "one of the devices that the target means";
    return str("tuned on this machine, whose target was called \"", tuned.target, "\" then");
  }

  Result<Answer> locked(const Question& q) const {
    ASSIGN_OR_RETURN(Answer answer, locked_answer(*options.lock, q.workload, q.target, q.algorithms,
                                                  q.constants, options.lock_fix));
    if (store == nullptr) return answer;
    add_measured(*store, q.workload, q.target, q.algorithms, q.constants, options.count_outcomes, answer);
    if (answer.tuned) mark_stale(answer, *answer.tuned, q.target);
    return answer;
  }

  // What was learned for any device serves a class of which nothing was.
  Result<LearnedRow> learned_of(std::string_view kind, std::string_view op, const Target& target) const {
    Result<LearnedRow> row = store->learned(kind, op, target.name());
    const std::string any = target.family->any_device(target);
    if (row || row.status().code() != StatusCode::kNotFound || any.empty()) return row;
    return store->learned(kind, op, any);
  }

  // Null when nothing was learned. The newest document is asked for each time: one may be stored long after
  // the last record.
  Result<std::shared_ptr<const Knowledge>> knowledge_of(std::string_view op, const Target& target) const {
    const Result<LearnedRow> row = learned_of(kPredictorKind, op, target);
    if (!row && row.status().code() != StatusCode::kNotFound) return row.status();
    const std::lock_guard lock(mutex);
    Learned& known = learned[{std::string(op), target.name()}];
    if (row && (known.row_id != row->id || known.knowledge == nullptr)) {
      Result<Knowledge> read = Knowledge::from_text(row->document);
      if (!read) return read.status().with_context(str("learned document ", row->id, ": "));
      known.knowledge = std::make_shared<const Knowledge>(*std::move(read));
      known.row_id = row->id;
    } else if (!row && options.learn_if_missing && known.knowledge == nullptr) {
      ASSIGN_OR_RETURN(Knowledge made, learn(*store, op, target));
      known.knowledge = std::make_shared<const Knowledge>(std::move(made));
    }
    return known.knowledge;
  }

  Answer answer_of(const Question& q, AnswerKind kind, const ServingTemplate& serving, const Config& config,
                   const Prediction& prediction) const {
    Answer answer = q.asked;
    answer.kind = kind;
    answer.template_name = std::string(serving.schedule_template->name());
    answer.template_version = serving.schedule_template->version();
    answer.config = config.to_text();
    answer.known = true;
    answer.predicted = prediction.fraction;
    answer.low = prediction.low;
    answer.high = prediction.high;
    return answer;
  }

  static const ServingTemplate* find(const std::vector<ServingTemplate>& serving, std::string_view name,
                                     int version) {
    for (const ServingTemplate& s : serving)
      if (s.schedule_template->name() == name && s.schedule_template->version() == version) return &s;
    return nullptr;
  }

  // ", measured on h100": the class of a record whose name leaves it open, where one was asked for.
  static std::string measured_on(const TunedConfig& tuned, const Target& asked) {
    const std::string there = asked.family->device_class(tuned.environment.hardware);
    if (asked.device.empty() || there.empty() || tuned.target.ends_with("-device=" + there)) return {};
    return ", measured on " + there;
  }

  Result<std::optional<Offer>> same_family(const Question& q,
                                           const std::vector<ServingTemplate>& serving) const {
    ASSIGN_OR_RETURN(const std::vector<JobRow::Task> tasks, store->tasks());
    for (const Relative& relative : relatives_of(q.workload, q.target, tasks)) {
      Result<TunedConfig> best =
          best_on_device(*store, {.workload_key = relative.workload_key, .target = relative.target},
                         templates_of(q.algorithms), options.count_outcomes);
      if (!best && best.status().code() == StatusCode::kNotFound) continue;
      if (!best) return best.status();
      const ServingTemplate* s = find(serving, best->template_name, best->template_version);
      const Result<Config> config = config_from_text(best->config);
      if (s == nullptr || !config) continue;
      const std::optional<Config> here = project(*config, s->instance->space());
      if (!here) continue;
      Offer offer{answer_of(q, AnswerKind::kSameFamily, *s, *here, relative.prediction),
                  relative.prediction.score};
      offer.answer.rests_on = {basis_of(*best)};
      mark_stale(offer.answer, *best, q.target);
      offer.how = str("the config of ", relative.workload_key, " on \"", best->target, "\" is used (",
                      relative.difference, measured_on(*best, q.target), ", trial ", best->trial_name, ")");
      offer.answer.tuned = *std::move(best);
      return std::optional(std::move(offer));
    }
    return std::optional<Offer>();
  }

  Result<std::optional<Offer>> portable(const Question& q, const std::vector<ServingTemplate>& serving,
                                        const VariantPredictor* predictor) const {
    const Result<LearnedRow> row = learned_of("cover", q.workload.op_name(), q.target);
    if (!row && row.status().code() == StatusCode::kNotFound) return std::optional<Offer>();
    if (!row) return row.status();
    const Result<Cover> cover = cover_from_json(row->document);
    if (!cover) return cover.status().with_context(str("learned document ", row->id, ": "));
    const CoverConfig& chosen = cover->choose(q.asked.workload_key);
    const ServingTemplate* s = find(serving, chosen.template_name, chosen.template_version);
    const Result<Config> config = config_from_text(chosen.config);
    if (s == nullptr || !config) return std::optional<Offer>();
    const std::optional<Config> here = project(*config, s->instance->space());
    if (!here) return std::optional<Offer>();
    Prediction prediction{cover->mean, cover->worst, 1, cover->mean};
    if (cover->left_out.known > 0)
      prediction = {cover->left_out.mean, cover->left_out.worst, 1, cover->left_out.mean};
    if (predictor != nullptr)
      prediction = predictor->predict(
          candidate_facts(shape_of(q.workload), chosen.template_name, s->instance->space(), *here));
    Offer offer{answer_of(q, AnswerKind::kPortable, *s, *here, prediction), prediction.score};
    offer.how = str("a config that serves ", cover->columns, " shapes of ", q.workload.op_name(), " is used");
    return std::optional(std::move(offer));
  }

  Answer default_answer(const Question& q, const std::vector<ServingTemplate>& serving,
                        const std::optional<Prediction>& prediction) const {
    const ConfigSpace& space = serving.front().instance->space();
    Answer answer = answer_of(q, AnswerKind::kDefault, serving.front(), space.at(space.default_index()),
                              prediction.value_or(Prediction{}));
    answer.known = prediction.has_value();
    return answer;
  }

  Result<Answer> fallback(const Question& q) const {
    ASSIGN_OR_RETURN(const std::vector<ServingTemplate> serving,
                     serving_templates(q.workload, q.target, q.algorithms));
    std::vector<Offer> offers;
    std::optional<Prediction> of_default;
    std::shared_ptr<const Knowledge> knowledge;
    const VariantPredictor* predictor = nullptr;
    if (store != nullptr) {
      ASSIGN_OR_RETURN(std::optional<Offer> family, same_family(q, serving));
      if (family) offers.push_back(*std::move(family));
      ASSIGN_OR_RETURN(knowledge, knowledge_of(q.workload.op_name(), q.target));
    }
    if (knowledge != nullptr) {
      const auto variant = knowledge->variants.find(shape_of(q.workload).variant);
      if (variant != knowledge->variants.end()) predictor = &variant->second;
      if (const std::vector<NearestCandidate> candidates = candidates_for(*knowledge, q.workload, serving);
          !candidates.empty()) {
        of_default = candidates[0].prediction;
        const NearestCandidate& best = candidates[fastest_of(candidates)];
        if (best.from != nullptr) {
          Offer offer{answer_of(q, AnswerKind::kNearest, serving[best.serving], best.config, best.prediction),
                      best.prediction.score};
          const std::string trial = name_of_trial(best.top->trial_id);
          offer.answer.rests_on = {{best.top->trial_id, best.from->workload_key, knowledge->target,
                                    best.top->time_ns, best.top->finished_at_us, trial}};
          offer.how = str("the config of ", best.from->workload_key, " is used (trial ", trial, ")");
          offers.push_back(std::move(offer));
        }
      }
    }
    if (store != nullptr) {
      ASSIGN_OR_RETURN(std::optional<Offer> cover, portable(q, serving, predictor));
      if (cover) offers.push_back(*std::move(cover));
    }

    Offer chosen{default_answer(q, serving, of_default), of_default ? of_default->score : 0};
    chosen.how = "its default config is used";
    for (Offer& offer : offers)
      if (offer.score > chosen.score) chosen = std::move(offer);
    Answer& answer = chosen.answer;
    if (of_default) answer.predicted_default = of_default->fraction;
    if (predictor != nullptr && answer.kind != AnswerKind::kSameFamily) {
      answer.learned_shapes = predictor->shapes();
      answer.learned_records = static_cast<int64_t>(predictor->rows());
    }
    answer.note = q.why.empty()
                      ? str("nothing tuned for ", q.asked.workload_key, " on \"", q.asked.target, "\": ")
                      : q.why;
    answer.note += chosen.how;
    // Of any device's records some may be of another one's.
    const bool is_learned = answer.kind == AnswerKind::kNearest || answer.kind == AnswerKind::kPortable;
    if (is_learned && knowledge != nullptr && knowledge->target != q.asked.target)
      answer.note += str(", learned for \"", knowledge->target, "\"");
    answer.note += answer.known ? ", " + predicted_text(answer) : ", how far from the optimum is not known";
    if (answer.known && of_default && answer.kind != AnswerKind::kDefault)
      answer.note += str("; the default config: ", percent(of_default->fraction));
    answer.note += ". To tune: " + options.fix;
    return std::move(answer);
  }
};

Resolver::Resolver(const Store* store, ResolverOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->store = store;
  impl_->options = std::move(options);
}
Resolver::~Resolver() = default;

Result<Answer> Resolver::resolve(const Workload& workload, const Target& target, std::string_view algorithms,
                                 Constants constants) const {
  Impl::Question question{workload, target, algorithms, constants, {}, {}};
  question.asked.workload_key = workload.key();
  question.asked.target = target.name();
  if (impl_->options.lock != nullptr) return impl_->locked(question);
  if (impl_->store != nullptr) {
    ASSIGN_OR_RETURN(std::optional<Answer> exact, impl_->exact(question));
    if (exact) return *std::move(exact);
  }
  if (constants == Constants::kWarm) return impl_->fallback(question);
  ASSIGN_OR_RETURN(Answer warm, resolve(workload, target, algorithms));
  const char* const why = workload.has_constants()
                              ? "nothing was tuned with cold constants, this rests on warm times"
                              : "the workload has no constants, so there are only warm times";
  warm.note = warm.note.empty() ? why : str(why, "; ", warm.note);
  return warm;
}

}  // namespace tuner
