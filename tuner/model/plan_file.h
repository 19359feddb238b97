// plan.json of a compiled model: what it consists of, step by step. Written beside the library, read by
// `tuner show` and `tuner run`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/model/placed_model.h"

namespace tuner {

struct ModelTimes;

// All but "files", the digests of what lies beside it.
nlohmann::ordered_json plan_json(const ModelToPack& model, const PlacedModel& placed);
// What differs of it where a library is for several CPUs: "cpus" has this of all but the first.
nlohmann::ordered_json cpu_plan_json(const ModelToPack& model, const PlacedModel& placed);
// "files": the SHA-256 of each.
Result<nlohmann::ordered_json> file_digests(const std::vector<BundleFile>& files);
// plan.json once the model has run, in `rounds` rounds: how long each step takes inside it. `cpu`: which of
// a library for several it ran on.
std::string plan_with_times(const std::string& plan, const ModelTimes& times, int rounds, size_t cpu = 0);

// What programs of ours read of it.
struct PlanOperand {
  std::string name, at;  // at: arena, weights, input or output
  int64_t value = 0, index = 0, offset = 0, bytes = 0;
};

// The step runs only if the bool there has this value.
struct PlanGuard {
  PlanOperand condition;
  bool wanted = false;
};

struct PlanStep {
  std::string name, workload;
  std::vector<std::string> nodes;
  int64_t kernel = 0;
  std::vector<PlanOperand> reads;
  PlanOperand writes;
  std::vector<PlanGuard> guards;  // all must hold
  double inside_ns = 0;           // its time inside the model, where compile ran it; 0: not known
};

// A function of somebody else's, which `tuner compile --use` put in a kernel's place.
struct PlanUse {
  std::string from;             // file that it was given as
  std::string library, digest;  // path in the folder; SHA-256
  std::string costs, timeline;  // functions of it that tell what the latest step took and did; empty: none
};

struct PlanKernel {
  std::string function;
  std::string template_name, config;  // empty: of a used function
  std::string answer;                 // "exact", ...: how its config is known; "used": it is none of ours
  PlanUse used;                       // also of a kernel for an accelerator
  double time_ns = 0;                 // measured for just this workload; 0: not
  bool cold = false;                  // that time is with constants cold
  double roofline_share = 0;          // of that time, as records tell peak and bandwidth; 0: not known

  bool is_used() const { return answer == kUsed; }
  bool has_library() const { return !used.library.empty(); }
  // Its library is ours, and simulates the accelerator that the kernel is for.
  bool is_accelerated() const { return has_library() && !is_used(); }
  static constexpr std::string_view kUsed = "used";
};

struct PlanWeights {
  std::string file, digest;
  int64_t bytes = 0, entries = 0;
};

struct CompiledPlan {
  std::string model, source, source_digest, target, toolchain;
  std::vector<std::string> cpus;  // targets of a library for several CPUs, `target` is one; else empty
  int64_t threads = 1;
  bool on_gpu = false;                       // it is for GPUs
  std::vector<std::string> inputs, outputs;  // "x float32[1, 784]"
  // Names of inputs and outputs that a caller gives one memory (--state).
  std::vector<std::pair<std::string, std::string>> states;
  std::vector<PlanStep> steps;
  std::vector<PlanKernel> kernels;
  int64_t arena_bytes = 0, largest_live_bytes = 0, workspace_bytes = 0, workspace_bytes_per_thread = 0;
  PlanWeights weights;
  std::string library, library_digest;  // path in the folder; SHA-256
  double whole_ns = 0;                  // of a run, where compile ran it; 0: not known
};

// True if the folder holds a compiled model, whole or damaged.
bool is_compiled_model(const std::string& folder);
// Reads FOLDER/plan.json. InvalidArgument: there is none, it is damaged, or of another format; the message
// begins with the path. `cpu`: whose steps and kernels, of a library for several CPUs; nothing: the first
// whose target this machine is, else the first.
Result<CompiledPlan> read_plan(const std::string& folder, std::optional<size_t> cpu = {});

}  // namespace tuner
