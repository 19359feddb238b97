// The check of a compiled model: right libraries of hard models pass, and libraries with a fault in a kernel
// or in the memory plan do not.
#include "tuner/compile/library_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "compiler_core/backend.h"
#include "compiler_core/ir/visitor.h"
#include "db/resolve/resolve.h"
#include "templates/schedule_template.h"
#include "tests/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/tuner/compile/packed_programs.h"
#include "tests/tuner/compile/random_model.h"
#include "tuner/compile/compile_model.h"
#include "tuner/model/compiled_model.h"
#include "tuner/model/model_package.h"

namespace tuner {
namespace {

const auto kNever = [] { return false; };

CompileRequest request_for(const TemporaryFolder& folder, const std::string& bytes) {
  CompileRequest request;
  request.model = folder.file("net.onnx");
  request.output = folder.file("out");
  request.db = folder.file("none.db");
  request.tune = false;
  request.target = *resolve_target("cpu");
  std::ofstream(request.model, std::ios::binary) << bytes;
  return request;
}

TEST(LibraryCheck, RefusesNoRightLibrary) {
  for (const uint32_t seed : Seeds(500, 25)) {
    const TemporaryFolder folder;
    const CompileRequest request = request_for(folder, testing::RandomModel(seed).bytes());
    auto model = prepare_model(request, kNever);
    ASSERT_TRUE(model.is_ok()) << model.message();
    const std::string text = to_text(model->graph);
    const auto out = open_model_folder(request, *model);
    ASSERT_TRUE(out.is_ok()) << out.message();
    const auto built = build_model(request, *model, **out, kNever);
    EXPECT_TRUE(built.is_ok()) << built.message() << "\n" << text;
  }
}

// --- faults ---
Result<Program> default_program(const CliTask& task) {
  for (const AnyTemplate* t : all_templates()) {
    if (!t->supports(task.workload, task.target).yes) continue;
    ASSIGN_OR_RETURN(const auto instance, t->apply(task.workload, task.target));
    return instance->instantiate(instance->space().at(instance->space().default_index()));
  }
  return failed("no template serves ", task.key);
}

enum class Fault : uint8_t { kTermDropped, kTailNotStored, kIndexOff, kOverlap };

// The next element of the last index that is no number, from the end back to the first.
Expr off_by_one(const Expr& e, bool& done) {
  if (done) return e;
  if (e->kind == ExprKind::kLoad && e->buffer->role != BufferRole::kIntermediate && !e->operands.empty() &&
      e->buffer->shape.back() > 1) {
    done = true;
    std::vector<Expr> indices = e->operands;
    indices.back() = floor_mod(indices.back() + Expr(1), Expr(e->buffer->shape.back()));
    return load(e->buffer, std::move(indices));
  }
  return map_children(e, [&](const Expr& child) { return off_by_one(child, done); });
}

// The Program with a fault at the `place`-th statement that can have it; nothing: there are fewer.
std::optional<Program> damaged(const Program& program, Fault fault, int place) {
  bool done = false;
  const std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
    if (s == nullptr || done) return s;
    // Sums that are not set to 0 hold anything, also what is right: such a fault need not show in a run.
    const bool is_loop =
        s->kind == StmtKind::kFor && s->extent > 1 && s->var->name.find(".init") == std::string::npos;
    const bool reduces = is_loop && s->axis == AxisKind::kReduce;
    if ((fault == Fault::kTermDropped && reduces) ||
        (fault == Fault::kTailNotStored && is_loop && !reduces)) {
      if (place-- == 0) {
        done = true;
        auto node = std::make_shared<StmtNode>(*s);
        --node->extent;
        return node;
      }
    }
    if (fault == Fault::kIndexOff && s->kind == StmtKind::kStore) {
      bool changed = false;
      const Expr value = off_by_one(s->value, changed);
      if (changed && place-- == 0) {
        done = true;
        auto node = std::make_shared<StmtNode>(*s);
        node->value = value;
        return node;
      }
    }
    return map_children(
        s, [](const Expr& e) { return e; }, walk);
  };
  Program out = program;
  out.body = walk(program.body);
  if (!done) return std::nullopt;
  return out;
}

// A model of which libraries are made, right ones and others.
class Libraries {
 public:
  explicit Libraries(uint32_t seed) : request_(request_for(folder_, testing::RandomModel(seed).bytes())) {
    auto prepared = prepare_model(request_, kNever);
    CHECK(prepared.is_ok()) << prepared.message();
    model_ = std::make_unique<PreparedModel>(*std::move(prepared));
    for (const CliTask& task : model_->kernels.tasks) {
      auto program = default_program(task);
      CHECK(program.is_ok()) << program.message();
      programs_.push_back(*std::move(program));
    }
  }
  const std::vector<Program>& programs() const { return programs_; }
  const PreparedModel& model() const { return *model_; }

  struct Made {
    std::string outputs;  // bytes
    Result<LibraryChecked> checked = Status(StatusCode::kInternal, "");
  };
  // With another Program for one kernel, or another plan of the memory.
  Result<Made> make(const std::vector<Program>& programs, const MemoryPlan& memory) {
    ASSIGN_OR_RETURN(const ModelToPack pack, testing::packed_programs(request_, *model_, programs, memory));
    const TemporaryFolder place;
    ASSIGN_OR_RETURN(const auto folder, BundleFolder::open(place.file("out"), "net", kModelIndex));
    ASSIGN_OR_RETURN(const std::vector<BundleFile> files, model_files(pack, folder->staging().string()));
    RETURN_IF_ERROR(folder->stage(files));
    Made made;
    ASSIGN_OR_RETURN(made.outputs, run(folder->staging().string()));
    made.checked = check_library(
        {folder->staging().string(), model_->graph, pack.model, pack.memory, model_->check_inputs},
        {0, kNever, nullptr});
    return made;
  }

 private:
  // The bytes of all outputs, for the inputs of the check.
  Result<std::string> run(const std::string& folder) const {
    ASSIGN_OR_RETURN(const CompiledModel compiled, CompiledModel::open(folder));
    ASSIGN_OR_RETURN(ModelContext context, compiled.context());
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<AlignedBuffer> memory;
    for (const AlignedBuffer& input : model_->check_inputs) in.push_back(input.data());
    for (const graph::ValueId v : model_->graph.outputs) {
      memory.emplace_back(model_->graph[v].type.bytes());
      out.push_back(memory.back().data());
    }
    RETURN_IF_ERROR(context.run(in, out));
    std::string bytes;
    for (const AlignedBuffer& each : memory) bytes.append(each.as<char>(), static_cast<size_t>(each.bytes()));
    return bytes;
  }

  TemporaryFolder folder_;
  CompileRequest request_;
  std::unique_ptr<PreparedModel> model_;
  std::vector<Program> programs_;
};

// Of the outputs only what differs by more than roundings do is a fault: the same terms in another order are
// none.
bool differs(const std::string& a, const std::string& b) {
  for (size_t at = 0; at + sizeof(float) <= a.size(); at += sizeof(float)) {
    float x = 0, y = 0;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    if (std::isnan(x) != std::isnan(y)) return true;
    if (std::fabs(x - y) > 1e-3F * std::max(std::fabs(x), std::fabs(y))) return true;
  }
  return false;
}

class PlantedFaults {
 public:
  explicit PlantedFaults(size_t wanted) : wanted_(wanted) {}

  void plant_in(uint32_t seed) {
    Libraries libraries(seed);
    const auto right = libraries.make(libraries.programs(), libraries.model().memory);
    ASSERT_TRUE(right.is_ok()) << right.message();
    ASSERT_TRUE(right->checked.is_ok()) << right->checked.message();
    const auto try_one = [&](const std::vector<Program>& programs, const MemoryPlan& memory,
                             const std::string& what) {
      const auto made = libraries.make(programs, memory);
      if (!made || !differs(made->outputs, right->outputs)) return;  // does not compile, or does nothing
      ++planted;
      if (made->checked.is_ok())
        missed.push_back(str("seed ", seed, ": ", what, "\n", to_text(libraries.model().graph)));
    };
    // At most three of each kind in one model, so that many models have their turn.
    for (const Fault fault : {Fault::kTermDropped, Fault::kTailNotStored, Fault::kIndexOff})
      for (size_t k = 0; k < libraries.programs().size() && k < 3; ++k) {
        std::vector<Program> programs = libraries.programs();
        const auto bad = damaged(programs[k], fault, static_cast<int>(seed % 2));
        if (!bad || planted >= wanted_) continue;
        programs[k] = *bad;
        try_one(programs, libraries.model().memory,
                str("fault ", static_cast<int>(fault), " in kernel ", k, ": ",
                    libraries.model().kernels.tasks[k].key, "\n", to_text(*bad)));
      }
    overlap(libraries, try_one);
  }

  size_t planted = 0;
  std::vector<std::string> missed;

 private:
  // One value of the arena is put where another one lies.
  template <class Try>
  void overlap(const Libraries& libraries, const Try& try_one) {
    const MemoryPlan& plan = libraries.model().memory;
    std::vector<graph::ValueId> placed;
    for (const ModelStep& step : libraries.model().steps.steps)
      if (plan.values[step.writes].where == ValuePlace::Where::kArena) placed.push_back(step.writes);
    for (size_t k = 0; k + 1 < placed.size() && k < 3 && planted < wanted_; ++k) {
      const int64_t bytes = libraries.model().steps.graph[placed[k + 1]].type.bytes();
      if (plan.values[placed[k]].offset + bytes > plan.arena_bytes) continue;
      MemoryPlan bad = plan;
      bad.values[placed[k + 1]].offset = bad.values[placed[k]].offset;
      try_one(libraries.programs(), bad, str("value ", placed[k + 1], " on ", placed[k]));
    }
  }

  size_t wanted_;
};

TEST(LibraryCheck, FindsFaultsInKernelsAndPlans) {
  const size_t wanted = wanted_rounds(20);
  PlantedFaults faults(wanted);
  for (uint32_t seed = first_seed(900); faults.planted < wanted; ++seed) {
    faults.plant_in(seed);
    if (HasFatalFailure()) return;
  }
  std::cout << faults.planted << " faults planted, " << faults.missed.size() << " missed\n";
  EXPECT_LE(100 * faults.missed.size(), faults.planted);
  for (const std::string& each : faults.missed) std::cout << each;
}

}  // namespace
}  // namespace tuner
