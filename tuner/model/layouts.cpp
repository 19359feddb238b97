#include "tuner/model/layouts.h"

#include <algorithm>
#include <map>

#include "templates/schedule_template.h"
#include "templates/workload/parts/image.h"

namespace tuner {
namespace {

using graph::ValueId;

std::string layout_name(int64_t block) {
  return block == kChannelsLast ? "NHWC" : block == 1 ? "NCHW" : str("NCHW", block, "c");
}
int64_t block_of_layout(const std::string& layout) {
  return is_channels_last(layout) ? kChannelsLast : channel_block(layout);
}

bool has_pixels(const graph::Value& value) {
  const std::vector<int64_t>& shape = value.type.shape;
  return shape.size() == 4 && shape[2] * shape[3] > 1;
}

// The step's workload where values lie in these blocks; a pool reads what it writes, so that its input may
// have to be moved.
Workload placed(const ModelStep& step, const Layouts& layouts) {
  const auto name_of = [&](ValueId v) { return layout_name(step.accelerated ? kChannelsLast : layouts[v]); };
  if (const auto* conv = step.workload.get_if<Conv2dWorkload>()) {
    Conv2dWorkload w = *conv;
    w.layout = name_of(step.reads[0]);
    w.out_layout = name_of(step.writes);
    return w;
  }
  if (const auto* pool = step.workload.get_if<Pool2dWorkload>()) {
    Pool2dWorkload w = *pool;
    w.layout = name_of(step.writes);
    return w;
  }
  return step.workload;
}

bool has_layouts(const ModelStep& step) {
  return step.workload.get_if<Conv2dWorkload>() != nullptr ||
         step.workload.get_if<Pool2dWorkload>() != nullptr;
}

// The block that the step needs its operand `i` in.
int64_t needed(const graph::Graph& graph, const ModelStep& step, size_t i, const Layouts& layouts) {
  if (step.flat) return layouts[step.writes];
  if (step.accelerated)
    return i == 0 && has_layouts(step) && has_pixels(graph[step.reads[0]]) ? kChannelsLast : 1;
  if (step.workload.get_if<Pool2dWorkload>() != nullptr) return layouts[step.writes];
  const auto* conv = step.workload.get_if<Conv2dWorkload>();
  if (conv == nullptr) return 1;
  if (i == 0) return layouts[step.reads[0]];
  const size_t residual = conv->bias ? 3 : 2;
  return conv->residual && i == residual ? layouts[step.writes] : 1;
}

bool is_served(const Workload& workload, const Target& target) {
  return validate(workload).is_ok() && std::ranges::any_of(all_templates(), [&](const AnyTemplate* t) {
           return t->supports(workload, target).yes;
         });
}

// One step that moves the elements of an image between plain and blocks: two neighbouring axes change places.
Result<ModelStep> mover(const graph::Value& image, ValueId from, int64_t from_block, ValueId made,
                        int64_t to_block) {
  const std::vector<int64_t>& shape = image.type.shape;
  const int64_t pixels = shape[2] * shape[3];
  // NHWC is one block of all channels.
  if (from_block == kChannelsLast) from_block = shape[1];
  const int64_t to = to_block == kChannelsLast ? shape[1] : to_block, block = std::max(from_block, to),
                blocks = shape[0] * shape[1] / block;
  const std::string extents =
      from_block == 1 ? str(blocks, ",", block, ",", pixels) : str(blocks, ",", pixels, ",", block);
  ModelStep step{.name = str(image.name, " as ", layout_name(to_block)), .reads = {from}, .writes = made};
  ASSIGN_OR_RETURN(step.workload, program_from_text(str("in=", dtype_name(image.type.dtype), "[", extents,
                                                        "] Transpose(0){perm=[0;2;1]}")));
  return step;
}

}  // namespace

int64_t block_of(const ModelStep& step) {
  if (step.flat) return step.flat_block;
  if (const auto* conv = step.workload.get_if<Conv2dWorkload>()) return block_of_layout(conv->out_layout);
  if (const auto* pool = step.workload.get_if<Pool2dWorkload>()) return block_of_layout(pool->layout);
  return 1;
}

Layouts plain_layouts(const ModelSteps& model) { return Layouts(model.graph.values.size(), 1); }

Layouts chosen_layouts(const ModelSteps& model, const Target& target) {
  Layouts layouts = plain_layouts(model);
  if (!target.is_x86() || !target.has_tiles(DType::kInt8)) return layouts;
  const auto multiplies = [&](const ModelStep& step) {
    const auto* w = step.workload.get_if<Conv2dWorkload>();
    return w != nullptr && w->dtype == DType::kInt8 && w->groups == 1;
  };
  const auto pools = [&](const ModelStep& step) {
    const auto* pool = step.workload.get_if<Pool2dWorkload>();
    if (pool == nullptr || dtype_bytes(pool->dtype) != 1) return false;
    Pool2dWorkload w = *pool;
    w.layout = layout_name(kChannelsLast);
    return is_served(w, target);
  };
  const auto follows = [&](const ModelStep& step) { return step.flat || pools(step); };
  // A convolution reads it, perhaps behind poolings and sums.
  std::vector<bool> wanted(layouts.size(), false), fixed(layouts.size(), false);
  for (auto step = model.steps.rbegin(); step != model.steps.rend(); ++step) {
    if (multiplies(*step)) wanted[step->reads[0]] = true;
    if (wanted[step->writes] && follows(*step))
      for (const ValueId v : step->reads) wanted[v] = true;
  }
  for (const ValueId v : model.graph.outputs) fixed[v] = true;
  for (ValueId v = 0; v < layouts.size(); ++v)
    if (model.aliases[v].source != v) fixed[v] = fixed[model.aliases[v].source] = true;
  for (const ModelStep& step : model.steps) {
    const ValueId v = step.writes;
    if (wanted[v] && !fixed[v] && has_pixels(model.graph[v]) && (multiplies(step) || follows(step)))
      layouts[v] = kChannelsLast;
  }
  return layouts;
}

Layouts blocked_layouts(const ModelSteps& model, const Target& target) {
  const graph::Graph& graph = model.graph;
  const int64_t block = target.f32_lanes();
  Layouts layouts = plain_layouts(model);
  if (channel_block(layout_name(block)) == 0) return layouts;
  for (const ModelStep& step : model.steps) {
    const graph::TensorType& type = graph[step.writes].type;
    if (has_layouts(step) && type.shape.size() == 4 && type.shape[1] % block == 0)
      layouts[step.writes] = block;
  }
  for (const ModelStep& step : model.steps)
    if (!has_layouts(step))
      for (const ValueId v : step.reads) layouts[v] = 1;
  for (const ValueId v : graph.outputs) layouts[v] = 1;
  for (ValueId v = 0; v < layouts.size(); ++v)
    if (model.aliases[v].source != v) layouts[v] = layouts[model.aliases[v].source] = 1;
  // What no template serves so becomes plain, and so what it was blocked for.
  for (bool changed = true; changed;) {
    changed = false;
    for (const ModelStep& step : model.steps) {
      const ValueId in = step.reads.empty() ? step.writes : step.reads[0];
      const bool pool_moves =
          step.workload.get_if<Pool2dWorkload>() != nullptr && layouts[in] != layouts[step.writes];
      if (!has_layouts(step) || (!pool_moves && is_served(placed(step, layouts), target))) continue;
      const ValueId plain = layouts[step.writes] != 1 ? step.writes : in;
      changed = changed || layouts[plain] != 1;
      layouts[plain] = 1;
    }
  }
  return layouts;
}

Layouts accelerated_layouts(const ModelSteps& model) {
  Layouts layouts(model.graph.values.size(), 1);
  for (const ModelStep& step : model.steps) {
    const bool follows =
        step.flat && std::ranges::any_of(step.reads, [&](ValueId v) { return layouts[v] == kChannelsLast; });
    if (follows ||
        (step.accelerated && !step.flat && has_layouts(step) && has_pixels(model.graph[step.writes])))
      layouts[step.writes] = kChannelsLast;
  }
  return layouts;
}

Status apply_layouts(ModelSteps& model, const Layouts& chosen, const Target& host,
                     const Target* accelerator) {
  Layouts layouts = chosen;
  std::vector<ModelStep> steps;
  std::map<std::pair<ValueId, int64_t>, ValueId> moved;
  std::map<ValueId, std::vector<StepGuard>> guards;  // of the steps that make values, if they have any
  for (ModelStep& step : model.steps) {
    const Target& target = step.accelerated ? *accelerator : host;
    if (!has_layouts(step) && !step.flat && layouts[step.writes] != 1)
      return {StatusCode::kInternal, str("step ", step.name, ": writes what is to lie in blocks")};
    Workload workload = placed(step, layouts);
    if (has_layouts(step) && !is_served(workload, target))
      return {StatusCode::kInternal, str("step ", step.name, ": no template serves ", workload.key())};
    for (size_t i = 0; i < step.reads.size(); ++i) {
      const ValueId v = step.reads[i];
      const int64_t wanted = needed(model.graph, step, i, layouts);
      if (layouts[v] == wanted) continue;
      const auto [at, is_new] = moved.emplace(std::pair(v, wanted), model.graph.values.size());
      if (is_new) {
        const graph::Value image = model.graph[v];
        ASSIGN_OR_RETURN(ModelStep step_before, mover(image, v, layouts[v], at->second, wanted));
        if (const auto made = guards.find(v); made != guards.end()) step_before.guards = made->second;
        model.graph.values.push_back({step_before.name, image.type, std::nullopt});
        model.aliases.push_back({at->second, 0});
        layouts.push_back(wanted);
        steps.push_back(std::move(step_before));
      }
      step.reads[i] = at->second;
    }
    step.workload = std::move(workload);
    step.flat_block = layouts[step.writes];
    if (!step.guards.empty()) guards[step.writes] = step.guards;
    steps.push_back(std::move(step));
  }
  model.steps = std::move(steps);
  return Status::ok();
}

}  // namespace tuner
