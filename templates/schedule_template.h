// ScheduleTemplate: a hand-written schedule with knobs. Read this page before adding one; templates/README.md
// walks through it.
//
// A template file implements the typed class; all other code sees the untyped one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/schedule/schedule.h"
#include "compiler_core/target.h"
#include "templates/space/config_space.h"
#include "templates/space/knob.h"
#include "templates/workload/tolerance.h"
#include "templates/workload/workload.h"

namespace tuner {

// Says whether a template serves a workload on a target, and if not why: "needs groups = 1, got 32".
struct Support {
  bool yes = false;
  std::string reason;
  bool other_operator = false;  // it declines because it serves another operator
  bool other_target = false;    // or for it is made for another kind of device
  bool as_second =
      false;  // it serves, but one that serves as first is the default, wherever it stands in the list
};
inline Support supported() { return {true, {}}; }
inline Support supported_as_second() { return {.yes = true, .reason = {}, .as_second = true}; }
template <class... Args>
Support declined(const Args&... args) {
  return {false, str(args...)};
}
// `kind`: "a CPU", "a CUDA".
inline Support needs_target(std::string_view kind, const Target& found) {
  Support other = declined("needs ", kind, " target, got ", found.name());
  other.other_target = true;
  return other;
}

// Makes a config of a measured shape the default of the space (fitted_defaults/fitted_defaults.h, which only
// those read who work on that choice).
void fit_default(ConfigSpace& space, std::string_view template_name, const Workload& workload,
                 const Target& target);

// A template applied to a task: its space, and how to turn a config into a scheduled Program. The caller owns
// it; several threads may call instantiate().
class TemplateInstance {
 public:
  virtual ~TemplateInstance() = default;
  virtual const ConfigSpace& space() const = 0;
  // Returns the math before any schedule. replay(math(), schedule_text(config)) equals instantiate(config).
  virtual const Program& math() const = 0;
  // Returns the scheduled Program. InvalidConfig: the schedule refuses (a bug of the template if the space
  // allowed the config).
  virtual Result<Program> instantiate(const Config& config) const = 0;
  // Returns the primitives as text (tuner show --as schedule).
  virtual Result<std::string> schedule_text(const Config& config) const = 0;
};

class AnyTemplate {
 public:
  virtual ~AnyTemplate() = default;
  virtual std::string_view name() const = 0;  // "matmul_cpu"
  virtual int version() const = 0;            // raise it when the meaning of a stored config changes
  // Returns the way results are computed, if it changes how they round: "direct" (the sums as the operator
  // defines them) or "winograd". A job may name the algorithms it allows.
  virtual std::string_view algorithm() const { return "direct"; }
  // Returns how far its right answers may be from the exact ones.
  virtual Tolerance tolerance(const Workload& workload) const { return tolerance_of(workload); }
  virtual Support supports(const Workload& workload, const Target& target) const = 0;
  // Declares and seals the space. Requires supports().
  virtual Result<std::unique_ptr<TemplateInstance>> apply(const Workload& workload,
                                                          const Target& target) const = 0;
};

// Base class of a template file. W: its workload struct; K: its struct of knob handles.
template <class W, class K>
class ScheduleTemplate : public AnyTemplate {
 public:
  virtual Support supports(const W& w, const Target& t) const = 0;
  // True if it knows images whose channels lie innermost (NHWC): else they are declined, whatever supports()
  // says.
  virtual bool serves_channels_last() const { return false; }
  virtual K declare(ConfigSpace& space, const W& w, const Target& t) const = 0;
  // Returns the math as this template needs it (usually workload.compute()). The order of arguments must be
  // that of Workload::compute().
  virtual Program compute(const W& w) const = 0;
  // The same for one target, where the math is laid out by what that target has.
  virtual Program compute_for(const W& w, const Target&) const { return compute(w); }
  virtual void schedule(Schedule& s, const W& w, const Target& t, const K& k, const Config& c) const = 0;

  Support supports(const Workload& workload, const Target& target) const final;
  Result<std::unique_ptr<TemplateInstance>> apply(const Workload& workload, const Target& target) const final;

 private:
  // One task of this template. The math is built once, and each config rewrites it. Templates live as long as
  // the process.
  class Instance final : public TemplateInstance {
   public:
    Instance(const ScheduleTemplate& owner, const W& w, const Target& t)
        : owner_(owner),
          workload_(w),
          target_(t),
          knobs_(owner.declare(space_, w, t)),
          math_(owner.compute_for(w, t)) {}
    Status seal() { return space_.seal(); }
    void fit_default(const Workload& workload) {
      tuner::fit_default(space_, owner_.name(), workload, target_);
    }
    const ConfigSpace& space() const override { return space_; }
    const Program& math() const override { return math_; }
    Result<Program> instantiate(const Config& config) const override {
      ASSIGN_OR_RETURN(const Schedule s, scheduled(config));
      return s.finish();
    }
    Result<std::string> schedule_text(const Config& config) const override {
      ASSIGN_OR_RETURN(const Schedule s, scheduled(config));
      const Result<Program> program = s.finish();
      if (!program) return program.status();
      return s.trace();
    }

   private:
    Result<Schedule> scheduled(const Config& config) const {
      const Result<ConfigIndex> index = space_.index_of(config);
      if (!index) return invalid_config(owner_.name(), ": ", index.message());
      Schedule s(math_);
      owner_.schedule(s, workload_, target_, knobs_, config);
      return s;
    }

    const ScheduleTemplate& owner_;
    const W workload_;
    const Target target_;
    ConfigSpace space_;
    const K knobs_;
    const Program math_;
  };
};

template <class W, class K>
Support ScheduleTemplate<W, K>::supports(const Workload& workload, const Target& target) const {
  const W* w = workload.get_if<W>();
  if (w == nullptr) {
    Support other = declined("serves ", Workload(W{}).op_name(), ", got ", workload.op_name());
    other.other_operator = true;
    return other;
  }
  Support support = supports(*w, target);
  if (support.other_target || serves_channels_last()) return support;
  if constexpr (requires { w->layout; })
    if (is_channels_last(w->layout)) return declined("does not serve layout ", w->layout, " yet");
  if constexpr (requires { w->out_layout; })
    if (is_channels_last(w->out_layout)) return declined("does not serve out_layout ", w->out_layout, " yet");
  return support;
}

template <class W, class K>
Result<std::unique_ptr<TemplateInstance>> ScheduleTemplate<W, K>::apply(const Workload& workload,
                                                                        const Target& target) const {
  const Support support = supports(workload, target);
  CHECK(support.yes) << name() << " is applied to " << workload.key()
                     << ", which it declines: " << support.reason;
  auto instance = std::make_unique<Instance>(*this, *workload.get_if<W>(), target);
  RETURN_IF_ERROR(instance->seal().with_context(str(name(), ": ")));
  instance->fit_default(workload);
  return std::unique_ptr<TemplateInstance>(std::move(instance));
}

// Registers a template from outside this repository, in programs that link its libraries
// (examples/my_template). Use a variable of namespace scope in the template's file:
//
//   const tuner::RegisterTemplate registered(my_template());
//
// It comes after those of this repository, so theirs stay the default if both serve a task. A name that is
// taken ends the program with a message.
class RegisterTemplate {
 public:
  explicit RegisterTemplate(const AnyTemplate& schedule_template);
};

// Returns every template: those of registry/registry.h in order, then registered ones.
const std::vector<const AnyTemplate*>& all_templates();
// Returns the templates that serve the task by an allowed algorithm (comma-separated names; empty: any),
// those that serve it as second (Support) last, but first the one that was fastest for the nearest measured
// shape (fitted_defaults.h). The first one's default config answers before any tuning.
// NotFound if there is none: the reasons of the templates of this operator for this kind of device (where
// there are none, of all), each reason a line with those who give it; one reason of all in the same line.
Result<std::vector<const AnyTemplate*>> templates_for(const Workload& workload, const Target& target,
                                                      std::string_view algorithms = {});
// Returns the names of templates with an allowed algorithm, for all operators; empty if any is allowed.
std::vector<std::string> templates_of(std::string_view algorithms);
// Returns every algorithm of a template once, in the order of registry/registry.h: "direct", "winograd".
std::vector<std::string_view> algorithm_names();
// Returns the names, comma-separated, each once, in the order of algorithm_names(); empty if they are all of
// them. InvalidArgument: an unknown name, or no name.
Result<std::string> canonical_algorithms(const std::vector<std::string>& names);
const AnyTemplate* find_template(std::string_view name);  // null if unknown

}  // namespace tuner
