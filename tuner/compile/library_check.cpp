#include "tuner/compile/library_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <thread>

#include "compiler_core/base/cpu_affinity.h"
#include "compiler_core/base/printable.h"
#include "compiler_core/graph/uses.h"
#include "tuner/compile/step_judge.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/layouts.h"
#include "tuner/model/narrow_products.h"

namespace tuner {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::ValueId;

// Elements [n, c / block, pixels, block] as [n, c, pixels].
void unblock(const graph::TensorType& type, int64_t block, const char* from, char* to) {
  const int64_t bytes = dtype_bytes(type.dtype), channels = type.shape[1],
                pixels = type.shape[2] * type.shape[3];
  for (int64_t n = 0; n < type.shape[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t at = ((n * (channels / block) + c / block) * pixels + p) * block + c % block;
        std::memcpy(to + ((n * channels + c) * pixels + p) * bytes, from + at * bytes,
                    static_cast<size_t>(bytes));
      }
}

class LibraryCheck {
 public:
  LibraryCheck(const LibraryToCheck& library, const LibraryCheckOptions& options)
      : library_(library),
        options_(options),
        programs_(static_cast<int>(std::clamp(usable_cpus().size(), size_t{1}, size_t{64}))) {
    const Graph& planned = library.steps.graph;
    for (const ModelStep& step : library.steps.steps) {
      const ValueId origin = planned[step.writes].origin;
      const bool is_there = origin != kNoValue && !library.model[origin].constant &&
                            library.model[origin].type == planned[step.writes].type;
      checked_.push_back(is_there ? origin : kNoValue);
    }
    std::vector<ValueId> all = checked_;
    all.insert(all.end(), library.model.outputs.begin(), library.model.outputs.end());
    cones_ = cones_of(library.model, all);
    for (size_t c = 0; c < cones_.size(); ++c)
      for (const ValueId v : cones_[c].sources) last_use_[v] = c;
    // Outputs are compared once more when the whole run is over.
    for (const ValueId v : library.model.outputs) last_use_[v] = cones_.size();
  }

  Result<LibraryChecked> run() {
    ASSIGN_OR_RETURN(const CompiledModel compiled, CompiledModel::open(library_.folder, library_.cpu));
    std::vector<AlignedBuffer> outputs;
    ASSIGN_OR_RETURN(ModelContext context, compiled.context());
    std::vector<const void*> in;
    for (const AlignedBuffer& input : library_.inputs) in.push_back(input.data());
    const std::vector<void*> out = outputs_in(outputs);
    for (size_t k = 0; k < in.size(); ++k) keep(library_.model.inputs[k], in[k]);
    // One thread compiles what the reference needs while another computes.
    std::atomic<bool> is_over = false;
    std::thread ahead([&] {
      compile_cones_ahead(library_.model, cones_, programs_, [&] { return is_over.load() || interrupted(); });
    });
    context.run_every_step(true);
    context.watch([&](size_t step, bool done) {
      if (!done || !status_ || step >= checked_.size()) return;
      status_ = context.fetch(out);
      if (status_) status_ = check_step(step, context.arena(), out);
    });
    Status ran = context.run(in, out);
    for (size_t o = 0; ran && status_ && o < out.size(); ++o) status_ = check_output(o, out[o]);
    if (ran && status_ && has_guards(compiled)) status_ = check_guards(compiled, in, out);
    if (ran && status_ && !library_.steps.states.empty()) status_ = check_states(compiled, in, out);
    if (ran && status_ && options_.whole) status_ = compare_outputs(out);
    is_over = true;
    ahead.join();
    RETURN_IF_ERROR(status_);
    RETURN_IF_ERROR(ran);
    return checked_so_far_;
  }

 private:
  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  void keep(ValueId v, const void* elements) {
    const int64_t bytes = library_.model[v].type.bytes();
    auto copy = std::make_shared<AlignedBuffer>(bytes, AlignedBuffer::Content::kAny);
    std::memcpy(copy->data(), elements, static_cast<size_t>(bytes));
    known_[v] = std::move(copy);
  }

  static bool has_guards(const CompiledModel& compiled) {
    return std::ranges::any_of(compiled.plan().steps, [](const PlanStep& s) { return !s.guards.empty(); });
  }

  // Runs once more as programs do, without steps that no output needs: every output must be what it was. What
  // is not computed then is NaN, and the largest number of other types.
  Status check_guards(const CompiledModel& compiled, const std::vector<const void*>& in,
                      const std::vector<void*>& before) const {
    std::vector<AlignedBuffer> memory;
    std::vector<void*> out = outputs_in(memory);
    ASSIGN_OR_RETURN(ModelContext context, compiled.context());
    context.fill_arena(static_cast<char>(0xff));
    RETURN_IF_ERROR(context.run(in, out));
    return expect_same(before, out, "steps that it does not need are left out. Report it");
  }

  std::vector<void*> outputs_in(std::vector<AlignedBuffer>& memory) const {
    std::vector<void*> out;
    for (const ValueId v : library_.model.outputs) {
      memory.emplace_back(library_.model[v].type.bytes());
      out.push_back(memory.back().data());
    }
    return out;
  }
  Status expect_same(const std::vector<void*>& before, const std::vector<void*>& now,
                     const std::string& when) const {
    for (size_t o = 0; o < now.size(); ++o) {
      const auto bytes = static_cast<size_t>(library_.model[library_.model.outputs[o]].type.bytes());
      if (std::memcmp(now[o], before[o], bytes) != 0)
        return failed("output \"", printable(library_.model.output_names[o]), "\" is another one when ", when,
                      " with the model: this is a fault of ours. Nothing was written");
    }
    return Status::ok();
  }

  // Runs once more, with states in one memory: every output must be what it was.
  Status check_states(const CompiledModel& compiled, std::vector<const void*> in,
                      const std::vector<void*>& before) const {
    std::vector<AlignedBuffer> memory;
    const std::vector<void*> out = outputs_in(memory);
    for (const StatePair& state : library_.steps.states) {
      const ValueId v = library_.model.inputs[state.input];
      std::memcpy(out[state.output], in[state.input], static_cast<size_t>(library_.model[v].type.bytes()));
      in[state.input] = out[state.output];
    }
    ASSIGN_OR_RETURN(ModelContext context, compiled.context());
    RETURN_IF_ERROR(context.run(in, out));
    return expect_same(before, out, "states share memory. Compile without --state, and report it");
  }

  // Where the step's result lies.
  const char* result_of(const ModelStep& step, const char* arena, const std::vector<void*>& outputs) const {
    const ValuePlace& place = library_.memory.values[step.writes];
    if (place.where == ValuePlace::Where::kArena) return arena + place.offset;
    if (place.where == ValuePlace::Where::kOutput)
      return static_cast<const char*>(outputs[place.index]) + place.offset;
    return nullptr;
  }

  Status check_step(size_t s, const char* arena, const std::vector<void*>& outputs) {
    if (interrupted()) return {StatusCode::kAborted, "interrupted"};
    const ModelStep& step = library_.steps.steps[s];
    if (options_.progress)
      options_.progress(
          str("checking step ", s + 1, " of ", checked_.size(), " (", printable(step.name), ")"));
    const char* result = result_of(step, arena, outputs);
    if (checked_[s] != kNoValue && result != nullptr) {
      const graph::TensorType& type = library_.model[checked_[s]].type;
      keep(checked_[s], result);
      if (const int64_t block = block_of(step); block != 1)
        unblock(type, block == kChannelsLast ? type.shape[1] : block, result,
                known_.at(checked_[s])->as<char>());
      // The value's own cone must not take it for granted.
      const std::shared_ptr<const AlignedBuffer> found = known_.at(checked_[s]);
      RETURN_IF_ERROR(
          judge(s, found->data(), str("step ", printable(step.name)), options_.whole && is_narrowed(step)));
      ++checked_so_far_.steps;
    }
    drop_after(s);
    return Status::ok();
  }

  // What the library gives for output `o` once all steps have run.
  Status check_output(size_t o, const void* elements) {
    if (interrupted()) return {StatusCode::kAborted, "interrupted"};
    const ValueId v = library_.model.outputs[o];
    if (library_.model[v].type.elements() == 0) return Status::ok();
    const std::string& name = library_.model.output_names[o];
    if (std::ranges::find(checked_, v) == checked_.end())
      return judge(checked_.size() + o, elements, str("output \"", printable(name), "\""));
    const auto bytes = static_cast<size_t>(library_.model[v].type.bytes());
    const char *made = known_.at(v)->as<char>(), *given = static_cast<const char*>(elements);
    const auto [differs, at] = std::mismatch(made, made + bytes, given);
    if (differs == made + bytes) return Status::ok();
    const graph::TensorType& type = library_.model[v].type;
    const int64_t element = (differs - made) / dtype_bytes(type.dtype);
    const ReferenceTensor before = ReferenceTensor::of(type, made), after = ReferenceTensor::of(type, given);
    return wrong(v, {element, after.at(element), before.at(element), 0},
                 std::numeric_limits<double>::infinity(),
                 str("output \"", printable(name), "\" is overwritten after its step"));
  }

  // Operands of bfloat16 are off by up to 2^-9 of themselves, and there may be two such products in a cone:
  // 16 times that, of the largest element.
  static constexpr double kErrorOfNarrowed = 0x1p-5;

  Status judge(size_t cone, const void* found, const std::string& where, bool narrowed = false) {
    const bool is_loose = narrowed && options_.accept_error == 0;
    const JudgeOptions options{is_loose ? kErrorOfNarrowed : options_.accept_error,
                               [this] { return interrupted(); }};
    ASSIGN_OR_RETURN(const Verdict verdict,
                     judge_step(library_.model, cones_[cone], known_, found, programs_, options));
    checked_so_far_.error = std::max(checked_so_far_.error, verdict.error);
    if (!verdict.wrong) return Status::ok();
    return wrong(cones_[cone].value, *verdict.wrong, verdict.accepts, where + work_of(cones_[cone]));
  }

  // How far the outputs are off, computed from the inputs alone.
  Status compare_outputs(const std::vector<void*>& out) {
    if (options_.progress) options_.progress("computing the model in double precision");
    KnownValues inputs;
    for (size_t k = 0; k < library_.inputs.size(); ++k) {
      const int64_t bytes = library_.model[library_.model.inputs[k]].type.bytes();
      auto copy = std::make_shared<AlignedBuffer>(bytes, AlignedBuffer::Content::kAny);
      std::memcpy(copy->data(), library_.inputs[k].data(), static_cast<size_t>(bytes));
      inputs[library_.model.inputs[k]] = std::move(copy);
    }
    // Those that are made first help to make the others.
    std::vector<ValueId> values;
    for (const ValueId v : library_.model.outputs)
      if (library_.model[v].type.elements() > 0) values.push_back(v);
    const graph::Uses uses(library_.model);
    std::ranges::stable_sort(values, {}, [&](ValueId v) { return uses.maker(v); });
    const std::vector<ReferenceCone> cones = cones_of(library_.model, values);
    double error = 0;
    for (size_t c = 0; c < cones.size(); ++c) {
      if (interrupted()) return {StatusCode::kAborted, "interrupted"};
      const graph::TensorType& type = library_.model[values[c]].type;
      ASSIGN_OR_RETURN(const ReferenceTensor expected,
                       compute_cone(library_.model, cones[c], inputs, programs_));
      const auto o = std::ranges::find(library_.model.outputs, values[c]) - library_.model.outputs.begin();
      error = std::max(error, distance(expected, ReferenceTensor::of(type, out[static_cast<size_t>(o)])));
      std::vector<double> numbers;
      for (int64_t k = 0; k < type.elements(); ++k) numbers.push_back(expected.at(k));
      auto made = std::make_shared<AlignedBuffer>(type.bytes(), AlignedBuffer::Content::kAny);
      std::memcpy(made->data(), graph::Constant::of(numbers, type.dtype).bytes().data(),
                  static_cast<size_t>(type.bytes()));
      inputs[values[c]] = std::move(made);
    }
    checked_so_far_.output_error = error;
    return Status::ok();
  }
  // The largest difference of an element, relative to the largest element.
  static double distance(const ReferenceTensor& expected, const ReferenceTensor& found) {
    double largest = 0, off = 0;
    for (int64_t k = 0; k < expected.elements(); ++k) {
      const double difference = std::fabs(found.at(k) - expected.at(k));
      largest = std::max(largest, std::fabs(expected.at(k)));
      off = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(off, difference);
    }
    return off > 0 ? off / largest : 0;
  }

  std::string work_of(const ReferenceCone& cone) const {
    constexpr size_t kMostNamed = 4;
    std::string ops;
    for (size_t k = 0; k < cone.nodes.size() && k < kMostNamed; ++k)
      ops += str(ops.empty() ? "" : ", ", printable(library_.model.nodes[cone.nodes[k]].op));
    if (cone.nodes.size() > kMostNamed) ops += ", ...";
    return ops.empty() ? "" : " (" + ops + ")";
  }

  // The first output of the model that is made of the value.
  std::string output_of(ValueId value) const {
    std::set<ValueId> made{value};
    for (const graph::Node& node : library_.model.nodes)
      if (std::ranges::any_of(node.inputs, [&](ValueId v) { return made.contains(v); }))
        made.insert(node.outputs.begin(), node.outputs.end());
    for (size_t o = 0; o < library_.model.outputs.size(); ++o)
      if (made.contains(library_.model.outputs[o])) return library_.model.output_names[o];
    return library_.model.output_names[0];
  }

  // Two digits, not below x.
  static double rounded_up(double x) {
    const double digit = std::pow(10, std::floor(std::log10(x)) - 1);
    return std::ceil(x / digit) * digit;
  }
  // `accepts`: the --accept-error that would let it pass; infinite: none.
  Status wrong(ValueId value, const Verdict::Wrong& element, double accepts, const std::string& where) const {
    const auto number = [](double x) { return std::isnan(x) ? std::string("nan") : str(x); };
    const graph::Value& v = library_.model[value];
    return failed(
        "the library computes something else than the model: output \"", printable(output_of(value)),
        "\", first at ", where, ": element [", index_text(element.element, v.type.shape), "] of \"",
        printable(v.name), "\" is ", number(element.found), ", expected ", number(element.expected),
        " within ", element.allowed, ". Try inputs of yours (--check-input NAME=FILE)",
        std::isfinite(accepts) ? str(", or --accept-error ", rounded_up(accepts), " if that does no harm")
                               : "",
        "; else report it with the model: this is a fault of ours. Nothing was written");
  }
  // Values that no later cone reads.
  void drop_after(size_t s) {
    std::erase_if(known_, [&](const auto& each) {
      const auto last = last_use_.find(each.first);
      return last == last_use_.end() || last->second <= s;
    });
  }

  const LibraryToCheck& library_;
  const LibraryCheckOptions& options_;
  ReferencePrograms programs_;
  std::vector<ValueId> checked_;      // one per step: the value of the model that it makes
  std::vector<ReferenceCone> cones_;  // of steps, then of outputs
  std::map<ValueId, size_t> last_use_;
  KnownValues known_;
  Status status_;
  LibraryChecked checked_so_far_;
};

}  // namespace

Result<LibraryChecked> check_library(const LibraryToCheck& library, const LibraryCheckOptions& options) {
  return LibraryCheck(library, options).run();
}

}  // namespace tuner
