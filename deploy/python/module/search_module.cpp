// tuner._search: the strategies of `tuner submit`, for objectives that a person measures himself.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <set>

#include "compiler_core/analysis/features.h"
#include "templates/source_kernel/source_kernel.h"
#include "tuner/search/recorded_space.h"
#include "tuner/search/search_strategy.h"

namespace tuner::python {
namespace {

namespace py = pybind11;

// Raises a class of tuner.errors.
[[noreturn]] void raise(const char* class_name, const std::string& text) {
  const py::object type = py::module_::import("tuner.errors").attr(class_name);
  PyErr_SetString(type.ptr(), text.c_str());
  throw py::error_already_set();
}
template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise("InvalidRequest", result.message());
  return *std::move(result);
}

// Templates with their spaces, whatever they were made from.
struct Space {
  bool has_program = false;  // it stands for the space of a user's kernel
  std::vector<std::string> templates;
  std::vector<std::shared_ptr<const ConfigSpace>> spaces;

  uint64_t size() const {
    uint64_t all = 0;
    for (const auto& space : spaces) all += space->size();
    return all;
  }
  SearchSpace search_space() const {
    SearchSpace search;
    // A user's kernel has a Program without loops, so its features are the same for each config. Trees cannot
    // split by them, but draw among as many columns as in `tuner submit`.
    std::function<std::vector<float>(const Config&)> features;
    if (has_program)
      features = [](const Config&) { return std::vector<float>(program_feature_names().size(), 0.0F); };
    for (size_t i = 0; i < spaces.size(); ++i)
      search.parts.push_back({templates[i], spaces[i].get(), features});
    return search;
  }

  // Knobs by name with numbers, or words as labels; "template" where there are several.
  py::dict config(const Candidate& c) const {
    const auto part = static_cast<size_t>(c.template_index);
    const Config config = spaces[part]->at(c.config);
    py::dict dict;
    for (const KnobInfo& knob : spaces[part]->knobs()) {
      const int64_t value = config.at(knob.name);
      if (knob.kind == KnobKind::kCategorical)
        dict[knob.name.c_str()] = knob.labels.at(static_cast<size_t>(value));
      else
        dict[knob.name.c_str()] = value;
    }
    if (spaces.size() > 1) dict["template"] = templates[part];
    return dict;
  }

  Candidate candidate(const py::dict& dict) const {
    size_t part = 0;
    if (spaces.size() > 1) {
      if (!dict.contains("template")) raise("InvalidRequest", "config: expected the key \"template\"");
      const auto found = std::ranges::find(templates, py::cast<std::string>(dict["template"]));
      if (found == templates.end())
        raise("InvalidRequest", "config: there is no template " + repr(dict["template"]));
      part = static_cast<size_t>(found - templates.begin());
    }
    std::map<std::string, int64_t> values;
    for (const KnobInfo& knob : spaces[part]->knobs()) {
      if (!dict.contains(knob.name.c_str()))
        raise("InvalidRequest", "config: the knob " + knob.name + " is missing");
      values[knob.name] = value_of(knob, dict[knob.name.c_str()]);
    }
    if (dict.size() != values.size() + (spaces.size() > 1 ? 1 : 0))
      raise("InvalidRequest", "config: found a key that is no knob: " + repr(dict));
    const Result<ConfigIndex> index = spaces[part]->index_of(Config(std::move(values)));
    if (!index) raise("InvalidRequest", "config: " + index.message());
    return {static_cast<int>(part), *index};
  }

  static std::string repr(const py::handle& object) {
    return py::cast<std::string>(py::repr(object)).substr(0, 200);
  }
  static int64_t value_of(const KnobInfo& knob, const py::handle& value) {
    const bool words = knob.kind == KnobKind::kCategorical;
    if (words && py::isinstance<py::str>(value)) {
      const auto label = std::ranges::find(knob.labels, py::cast<std::string>(value));
      if (label != knob.labels.end()) return label - knob.labels.begin();
    }
    if (!words && PyIndex_Check(value.ptr()) != 0) {
      const int64_t number = PyNumber_AsSsize_t(value.ptr(), nullptr);
      if (std::ranges::find(knob.candidates, number) != knob.candidates.end()) return number;
    }
    raise("InvalidRequest",
          "config: " + knob.name + ": found " + repr(value) + ", which is no value of the knob");
  }
};

// The space that a job file with these knobs has: declared by the same code.
std::shared_ptr<Space> make_space(const py::dict& knobs, const std::vector<std::string>& constraints,
                                  const py::dict& defaults, const std::map<std::string, int64_t>& sizes) {
  std::map<std::string, SourceKnob> sorted;  // as a job file's reader sorts them
  for (const auto& [name, values] : knobs) {
    SourceKnob knob{.name = py::cast<std::string>(name)};
    const auto list = py::cast<py::list>(values);
    if (!list.empty() && py::isinstance<py::str>(list[0])) {
      knob.words = py::cast<std::vector<std::string>>(values);
    } else {
      knob.numbers = py::cast<std::vector<int64_t>>(values);
      // The first value of the list is tried first; the candidates are ascending.
      const int64_t first = knob.numbers.empty() ? 0 : knob.numbers.front();
      std::ranges::sort(knob.numbers);
      knob.first = static_cast<size_t>(std::ranges::find(knob.numbers, first) - knob.numbers.begin());
    }
    if (knob.size() == 0) raise("InvalidRequest", "knobs: " + knob.name + ": expected at least one value");
    sorted[knob.name] = std::move(knob);
  }
  for (const auto& [name, value] : defaults) {
    const auto knob = sorted.find(py::cast<std::string>(name));
    if (knob == sorted.end()) raise("InvalidRequest", "default: there is no knob " + Space::repr(name));
    SourceKnob& k = knob->second;
    bool found = false;
    for (size_t i = 0; i < k.size(); ++i)
      if (k.words.empty() ? value.equal(py::int_(k.numbers[i])) : value.equal(py::str(k.words[i])))
        k.first = i, found = true;
    if (!found)
      raise("InvalidRequest",
            "default: " + k.name + ": found " + Space::repr(value) + ", which is no value of it");
  }
  std::vector<SourceKnob> declared;
  for (auto& [name, knob] : sorted) declared.push_back(std::move(knob));
  std::vector<Formula> formulas;
  for (size_t i = 0; i < constraints.size(); ++i) {
    Result<Formula> formula = Formula::parse(constraints[i]);
    if (!formula)
      raise("InvalidRequest",
            str("constraints[", i, "]: ", formula.message(), "; in \"", constraints[i], "\""));
    formulas.push_back(*std::move(formula));
  }
  auto space = std::make_shared<ConfigSpace>();
  value_or_raise(declare_knobs(declared, formulas, sizes, *space));
  if (const Status sealed = space->seal(); !sealed) raise("InvalidRequest", "knobs: " + sealed.message());
  auto made = std::make_shared<Space>();
  made->has_program = true;
  made->templates.emplace_back("source_kernel_cpu");
  made->spaces.push_back(std::move(space));
  return made;
}

class Search {
 public:
  Search(std::shared_ptr<const Space> space, const std::string& strategy, uint64_t seed)
      : space_(std::move(space)), search_space_(space_->search_space()) {
    strategy_ = value_or_raise(make_strategy(strategy, search_space_, seed));
  }

  py::list ask(size_t count) {
    std::vector<Candidate> proposed;
    {
      const py::gil_scoped_release others;
      const std::lock_guard lock(mutex_);
      proposed = strategy_->propose(count);
    }
    py::list configs;
    for (const Candidate& c : proposed) configs.append(space_->config(c));
    return configs;
  }

  // One call for a batch, as the daemon does: what a model learns may depend on which results came together.
  void tell(const std::vector<std::tuple<py::dict, std::optional<double>, bool>>& results) {
    std::vector<Observation> observations;
    for (const auto& [config, value, cut] : results) {
      const Candidate candidate = space_->candidate(config);
      if (value && !(std::isfinite(*value) && *value > 0))
        raise("InvalidRequest",
              str("tell: expected a finite value above 0, as a time is, or None for a failure; found ",
                  *value, ". Add a constant to an objective that may be 0 or less"));
      observations.push_back({candidate, value.has_value(), value.value_or(0), cut && value.has_value()});
    }
    const std::lock_guard lock(mutex_);
    std::set<Candidate> now;
    for (const Observation& o : observations)
      if (told_.contains(o.candidate) || !now.insert(o.candidate).second)
        raise("InvalidRequest",
              "tell: the result of " + Space::repr(space_->config(o.candidate)) + " was told before");
    told_.merge(now);
    strategy_->observe(observations);
  }

  std::string status() const { return strategy_->status_line(); }
  std::string model_digest() const { return strategy_->model_digest(); }
  uint64_t rng_counter() const { return strategy_->rng_counter(); }

 private:
  const std::shared_ptr<const Space> space_;
  const SearchSpace search_space_;
  std::unique_ptr<SearchStrategy> strategy_;
  std::mutex mutex_;  // a strategy is for one thread at a time
  std::set<Candidate> told_;
};

// A space whose every time is known, from a file of `tuner records export --space`.
struct Recorded {
  std::string name;
  std::shared_ptr<Space> space = std::make_shared<Space>();
  std::vector<std::vector<double>> time_ns;
  double best_ns = 0, median_ns = 0;

  std::optional<double> measure(const py::dict& config) const {
    const Candidate c = space->candidate(config);
    const double time = time_ns[static_cast<size_t>(c.template_index)][c.config];
    return std::isfinite(time) ? std::optional(time) : std::nullopt;
  }
};

std::shared_ptr<Recorded> read_recorded(const std::string& path) {
  RecordedSpace read = value_or_raise(read_recorded_space(path));
  auto made = std::make_shared<Recorded>();
  made->name = read.name;
  made->best_ns = read.best_ns(), made->median_ns = read.median_ns();
  for (RecordedSpace::Part& part : read.parts) {
    made->space->templates.push_back(part.template_name);
    made->space->spaces.push_back(std::make_shared<const ConfigSpace>(std::move(part.space)));
    made->time_ns.push_back(std::move(part.time_ns));
  }
  return made;
}

std::vector<py::dict> all_configs(const Space& space, uint64_t most) {
  if (space.size() > most)
    raise("InvalidRequest",
          str("configs: the space has ", space.size(), " of them, at most ", most, " are listed"));
  std::vector<py::dict> all;
  for (size_t part = 0; part < space.spaces.size(); ++part)
    for (ConfigIndex i = 0; i < space.spaces[part]->size(); ++i)
      all.push_back(space.config({static_cast<int>(part), i}));
  return all;
}

}  // namespace

PYBIND11_MODULE(_search, module) {
  py::class_<Space, std::shared_ptr<Space>>(module, "Space")
      .def(py::init(&make_space), py::arg("knobs"), py::arg("constraints"), py::arg("default"),
           py::arg("sizes"))
      .def("size", &Space::size)
      .def("configs", &all_configs, py::arg("most"))
      .def("default",
           [](const Space& s) {
             return s.config({0, s.spaces[0]->default_index()});
           })
      .def("check", [](const Space& s, const py::dict& config) { static_cast<void>(s.candidate(config)); });
  py::class_<Search>(module, "Search")
      .def(py::init<std::shared_ptr<const Space>, const std::string&, uint64_t>(), py::arg("space"),
           py::arg("strategy"), py::arg("seed"))
      .def("ask", &Search::ask, py::arg("count"))
      .def("tell", &Search::tell, py::arg("results"))
      .def("status", &Search::status)
      .def("model_digest", &Search::model_digest)
      .def("rng_counter", &Search::rng_counter);
  py::class_<Recorded, std::shared_ptr<Recorded>>(module, "RecordedSpace")
      .def_readonly("name", &Recorded::name)
      .def_readonly("space", &Recorded::space)
      .def_readonly("best_ns", &Recorded::best_ns)
      .def_readonly("median_ns", &Recorded::median_ns)
      .def("measure", &Recorded::measure, py::arg("config"));
  module.def("read_recorded_space", &read_recorded, py::arg("path"));
  module.def("strategies", [] { return strategy_names(); });
  module.def("default_strategy", [] { return std::string(kDefaultStrategy); });
}

}  // namespace tuner::python
