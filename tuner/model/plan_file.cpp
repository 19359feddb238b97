#include "tuner/model/plan_file.h"

#include <filesystem>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/base/c_names.h"
#include "compiler_core/base/input_file.h"
#include "compiler_core/base/json_reader.h"
#include "compiler_core/base/mapped_file.h"
#include "compiler_core/codegen/compile.h"
#include "compiler_core/runtime/model_library.h"
#include "tuner/model/model_run.h"
#include "tuner/text/facts.h"
#include "tuner/text/format.h"

namespace tuner {
namespace {

using json_input::kRequired;
using json_input::Reader;
using nlohmann::ordered_json;

constexpr size_t kMostBytes = 256 << 20;
constexpr std::string_view kPlaces[] = {"arena", "weights", "input", "output"};

ordered_json operand_json(const PlacedOperand& operand) {
  ordered_json out{{"name", operand.name},
                   {"value", operand.value},
                   {"at", kPlaces[operand.place.kind]},
                   {"offset", operand.place.offset},
                   {"bytes", operand.bytes}};
  if (operand.place.kind >= TUNER_INPUT) out["index"] = operand.place.index;
  return out;
}

ordered_json tensors_json(const std::vector<ArgInfo>& tensors) {
  auto out = ordered_json::array();
  for (const ArgInfo& t : tensors)
    out.push_back({{"name", t.name}, {"dtype", dtype_name(t.dtype)}, {"shape", t.shape}, {"bytes", t.bytes}});
  return out;
}

ordered_json step_json(const ModelToPack& model, const PlacedModel& placed, size_t s) {
  const ModelStep& step = model.model.steps[s];
  const BundleKernel& kernel = model.kernels[model.kernel_of_step[s]];
  ordered_json out{{"name", step.name}, {"nodes", ordered_json::array()}};
  for (const size_t n : step.nodes) {
    const graph::Node& node = model.model.graph.nodes[n];
    out["nodes"].push_back(node.name.empty() ? node.op : node.name);
  }
  out["workload"] = kernel.task.key;
  out["kernel"] = model.kernel_of_step[s];
  out["reads"] = ordered_json::array();
  for (const PlacedOperand& operand : placed.steps[s].reads) out["reads"].push_back(operand_json(operand));
  out["writes"] = operand_json(placed.steps[s].writes);
  for (const PlacedGuard& guard : placed.steps[s].guards) {
    out["guards"].push_back(operand_json(guard.condition));
    out["guards"].back()["wanted"] = guard.wanted;
  }
  return out;
}

// The share of the roofline as the records behind the kernel tell it.
double recorded_share(const BundleKernel& kernel) {
  const auto measured = kernel.facts.find("measured");
  if (measured == kernel.facts.end()) return 0;
  TunedConfig tuned;
  tuned.time_ns = measured->value("time_ns", 0.0);
  tuned.peak_gflops = measured->value("peak_gflops", 0.0);
  tuned.read_gbps = measured->value("read_gbps", 0.0);
  return roofline_share(kernel.task.workload, tuned);
}

ordered_json weights_json(const ModelToPack& model, const WeightsFacts& weights) {
  std::ostringstream checksum;
  checksum << std::hex << weights.checksum;
  ordered_json out{{"file", model.name + ".weights"},
                   {"bytes", weights.bytes},
                   {"digest", weights.digest},
                   {"checksum", checksum.str()},
                   {"entries", ordered_json::array()}};
  for (const WeightsEntry& e : weights.entries)
    out["entries"].push_back(
        {{"offset", e.offset}, {"bytes", e.bytes}, {"digest", e.digest}, {"uses", e.uses}});
  return out;
}

// What compiled the kernels; of kernels that are launched, what compiled those.
std::string toolchain_of(const ModelToPack& model) {
  for (const BundleKernel& k : model.kernels)
    if (!k.code.manifest.launches.empty()) return k.code.manifest.toolchain;
  return toolchain_fingerprint();
}

void read_operand(Reader& in, PlanOperand& operand) {
  in.read("name", operand.name, kRequired);
  in.read("at", operand.at, kRequired);
  in.read("value", operand.value, 0, INT64_MAX, kRequired);
  in.read("index", operand.index, 0, INT32_MAX);
  in.read("offset", operand.offset, 0, INT64_MAX, kRequired);
  in.read("bytes", operand.bytes, 1, INT64_MAX, kRequired);
}

void read_step(Reader& in, size_t kernels, PlanStep& step) {
  in.read("name", step.name, kRequired);
  in.read("workload", step.workload, kRequired);
  in.read("kernel", step.kernel, int64_t{0}, static_cast<int64_t>(kernels) - 1, kRequired);
  if (const auto* nodes = in.list("nodes", kRequired))
    for (const auto& node : *nodes) {
      if (node.is_string())
        step.nodes.push_back(node.get<std::string>());
      else
        in.refuse("nodes", "expected names, found ", json_input::found(node));
    }
  in.read_objects(
      "reads", [&](Reader& each) { read_operand(each, step.reads.emplace_back()); }, kRequired);
  in.read_object(
      "writes", [&](Reader& each) { read_operand(each, step.writes); }, kRequired);
  in.read_objects("guards", [&](Reader& each) {
    PlanGuard& guard = step.guards.emplace_back();
    read_operand(each, guard.condition);
    each.read("wanted", guard.wanted, kRequired);
  });
  in.read_at_least("inside_ns", step.inside_ns, 0);
}

void read_kernel(Reader& in, PlanKernel& kernel) {
  in.read("function", kernel.function, kRequired);
  in.read_object(
      "answer", [&](Reader& answer) { answer.read("kind", kernel.answer, kRequired); }, kRequired);
  const auto read_used = [&](Reader& used) {
    used.read("file", kernel.used.from, kRequired);
    used.read("library", kernel.used.library, kRequired);
    used.read("costs", kernel.used.costs);
    used.read("timeline", kernel.used.timeline);
  };
  if (kernel.is_used()) {
    in.read_object("used", read_used, kRequired);
  } else {
    in.read_object("used", read_used);
    in.read("template", kernel.template_name, kRequired);
    if (const auto* config = in.get("config", kRequired)) kernel.config = config->dump();
  }
  in.read_object("measured", [&](Reader& measured) {
    std::string constants;
    measured.read_at_least("time_ns", kernel.time_ns, 0, kRequired);
    measured.read("constants", constants);
    kernel.cold = constants == "cold";
  });
  in.read_at_least("roofline_share", kernel.roofline_share, 0);
}

std::vector<std::string> read_tensors(Reader& in, const std::string& key) {
  std::vector<std::string> out;
  in.read_objects(
      key,
      [&](Reader& tensor) {
        std::string name, dtype;
        tensor.read("name", name, kRequired);
        tensor.read("dtype", dtype, kRequired);
        const auto* shape = tensor.list("shape", kRequired);
        std::string extents;
        for (size_t i = 0; shape != nullptr && i < shape->size(); ++i)
          extents += (i == 0 ? "" : ", ") + (*shape)[i].dump();
        out.push_back(str(name, " ", dtype, "[", extents, "]"));
      },
      kRequired);
  return out;
}

void read_steps(Reader& in, CompiledPlan& plan) {
  in.read_objects(
      "kernels", [&](Reader& each) { read_kernel(each, plan.kernels.emplace_back()); }, kRequired);
  in.read_objects(
      "steps", [&](Reader& each) { read_step(each, plan.kernels.size(), plan.steps.emplace_back()); },
      kRequired);
  in.read_object(
      "memory",
      [&](Reader& memory) {
        memory.read("arena_bytes", plan.arena_bytes, 0, INT64_MAX, kRequired);
        memory.read("largest_live_bytes", plan.largest_live_bytes, 0, INT64_MAX, kRequired);
        memory.read("workspace_bytes", plan.workspace_bytes, 0, INT64_MAX, kRequired);
        memory.read("workspace_bytes_per_thread", plan.workspace_bytes_per_thread, 0, INT64_MAX, kRequired);
      },
      kRequired);
  in.read_object("inside",
                 [&](Reader& inside) { inside.read_at_least("whole_ns", plan.whole_ns, 0, kRequired); });
}

size_t first_here(const std::vector<std::string>& targets) {
  for (size_t t = 0; t < targets.size(); ++t) {
    Result<Target> target = parse_target(targets[t]);
    if (!target) continue;
    target->threads = 1;  // any number is right
    if (runs_here(*target)) return t;
  }
  return 0;
}

// Of one CPU the steps stand at the top. Of several those of the first do, and "cpus" has the others.
void read_cpus(Reader& in, std::optional<size_t> wanted, CompiledPlan& plan) {
  if (in.list("cpus") == nullptr) return read_steps(in, plan);
  plan.cpus = {plan.target};
  in.read_objects("cpus", [&](Reader& each) { each.read("target", plan.cpus.emplace_back(), kRequired); });
  const size_t cpu = wanted.value_or(first_here(plan.cpus));
  if (cpu == 0) return read_steps(in, plan);
  size_t next = 1;
  in.read_objects("cpus", [&](Reader& each) {
    if (next++ == cpu) read_steps(each, plan);
  });
  if (cpu >= plan.cpus.size()) return in.refuse("cpus", "expected more than ", cpu, " CPUs");
  plan.target = plan.cpus[cpu];
}

Status read_all(const nlohmann::json& document, std::optional<size_t> cpu, CompiledPlan& plan) {
  Reader in(document, "");
  int format = 0;
  in.read("format", format, kRequired);
  if (!in.failed() && format != kPlanFormat)
    return invalid_argument("format: expected ", kPlanFormat, ", found ", format,
                            "; compile the model again with this program");
  in.read("model", plan.model, kRequired);
  RETURN_IF_ERROR(in.status());
  RETURN_IF_ERROR(check_c_name(plan.model).with_context("model: "));  // it becomes a part of paths
  in.read_object(
      "source",
      [&](Reader& source) {
        source.read("file", plan.source, kRequired);
        source.read("digest", plan.source_digest, kRequired);
      },
      kRequired);
  in.read("target", plan.target, kRequired);
  plan.on_gpu = in.list("targets") != nullptr;
  in.read("toolchain", plan.toolchain, kRequired);
  in.read("threads", plan.threads, 1, 4096, kRequired);
  plan.inputs = read_tensors(in, "inputs");
  plan.outputs = read_tensors(in, "outputs");
  in.read_objects("states", [&](Reader& each) {
    auto& [input, output] = plan.states.emplace_back();
    each.read("input", input, kRequired);
    each.read("output", output, kRequired);
  });
  read_cpus(in, cpu, plan);
  in.read_object(
      "weights",
      [&](Reader& weights) {
        weights.read("file", plan.weights.file, kRequired);
        weights.read("digest", plan.weights.digest, kRequired);
        weights.read("bytes", plan.weights.bytes, 0, INT64_MAX, kRequired);
        if (const auto* entries = weights.list("entries", kRequired))
          plan.weights.entries = static_cast<int64_t>(entries->size());
      },
      kRequired);
  plan.library = str("lib/lib", plan.model, ".so");
  in.read_object(
      "files",
      [&](Reader& files) {
        files.read(plan.library, plan.library_digest, kRequired);
        for (PlanKernel& kernel : plan.kernels)
          if (kernel.has_library()) files.read(kernel.used.library, kernel.used.digest, kRequired);
      },
      kRequired);
  RETURN_IF_ERROR(in.status());
  if (plan.weights.file != plan.model + ".weights")
    return invalid_argument("weights.file: expected \"", plan.model, ".weights\", found \"",
                            plan.weights.file, "\"");
  return Status::ok();
}

}  // namespace

namespace {

void put_steps(const ModelToPack& model, const PlacedModel& placed, ordered_json& plan) {
  plan["steps"] = ordered_json::array();
  plan["kernels"] = ordered_json::array();
  for (size_t s = 0; s < placed.steps.size(); ++s) plan["steps"].push_back(step_json(model, placed, s));
  for (const BundleKernel& k : model.kernels) {
    plan["kernels"].push_back(k.facts);
    if (const double share = recorded_share(k); share > 0) plan["kernels"].back()["roofline_share"] = share;
  }
}

ordered_json memory_json(const ModelToPack& model, const PlacedModel& placed) {
  return {{"arena_bytes", model.memory.arena_bytes},
          {"largest_live_bytes", model.memory.largest_live_bytes},
          {"workspace_bytes", placed.workspace_bytes},
          {"workspace_bytes_per_thread", placed.workspace_bytes_per_thread}};
}

}  // namespace

ordered_json cpu_plan_json(const ModelToPack& model, const PlacedModel& placed) {
  ordered_json plan{{"target", model.target.name()}, {"instruction_sets", placed.instruction_sets}};
  put_steps(model, placed, plan);
  plan["memory"] = memory_json(model, placed);
  return plan;
}

ordered_json plan_json(const ModelToPack& model, const PlacedModel& placed) {
  ordered_json plan{{"format", kPlanFormat},
                    {"model", model.name},
                    {"source", {{"file", model.source}, {"digest", model.source_digest}}},
                    {"toolchain", toolchain_of(model)},
                    {"target", model.target.name()},
                    {"threads", model.target.threads},
                    {"instruction_sets", placed.instruction_sets},
                    {"inputs", tensors_json(placed.inputs)},
                    {"outputs", tensors_json(placed.outputs)},
                    {"steps", ordered_json::array()},  // before "states"
                    {"kernels", ordered_json::array()}};
  for (const StatePair& state : model.model.states)
    plan["states"].push_back(
        {{"input", placed.inputs[state.input].name}, {"output", placed.outputs[state.output].name}});
  put_steps(model, placed, plan);
  for (const UsedFunction& used : model.used) {
    plan["kernels"][used.kernel]["used"] = {{"file", used.from}, {"library", used_path(model, used)}};
    if (used.step.empty()) continue;
    plan["kernels"][used.kernel]["used"].update({{"costs", used.costs}, {"timeline", used.timeline}});
  }
  plan["memory"] = memory_json(model, placed);
  plan["weights"] = weights_json(model, placed.weights);
  return plan;
}

Result<ordered_json> file_digests(const std::vector<BundleFile>& files) {
  auto digests = ordered_json::object();
  for (const BundleFile& file : files) {
    if (file.made.empty()) {
      digests[file.path] = sha256_hex(file.bytes);
      continue;
    }
    ASSIGN_OR_RETURN(const MappedFile made, map_input(file.made, "a file of ours"));
    digests[file.path] = sha256_hex(made.bytes());
  }
  return digests;
}

std::string plan_with_times(const std::string& plan, const ModelTimes& times, int rounds, size_t cpu) {
  ordered_json out = ordered_json::parse(plan);
  ordered_json& of = cpu == 0 ? out : out["cpus"][cpu - 1];
  CHECK(of["steps"].size() == times.step_ns.size());
  for (size_t s = 0; s < times.step_ns.size(); ++s) of["steps"][s]["inside_ns"] = times.step_ns[s];
  of["inside"] = {{"rounds", rounds}, {"whole_ns", times.whole_ns}};
  return pretty(out) + "\n";
}

bool is_compiled_model(const std::string& folder) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(folder) / "plan.json", error);
}

Result<CompiledPlan> read_plan(const std::string& folder, std::optional<size_t> cpu) {
  const std::string path = (std::filesystem::path(folder) / "plan.json").string();
  ASSIGN_OR_RETURN(const std::string text, read_file(path, "the plan of a compiled model", kMostBytes));
  const Result<nlohmann::json> document = json_input::parse(text);
  if (!document) return document.status().with_context(path + ": ");
  CompiledPlan plan;
  if (const Status read = read_all(*document, cpu, plan); !read)
    return invalid_argument(path, ": ", json_input::one_line(read.message()));
  return plan;
}

}  // namespace tuner
