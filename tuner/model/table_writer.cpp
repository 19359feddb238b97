#include "tuner/model/table_writer.h"

#include <algorithm>

namespace tuner {
namespace {

size_t put_tensors(TableWriter& table, const std::vector<ArgInfo>& tensors) {
  std::vector<tuner_arg> args(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    args[i].rank = static_cast<int32_t>(tensors[i].shape.size());
    std::ranges::copy(tensors[i].shape, args[i].shape);
    args[i].bytes = tensors[i].bytes;
  }
  const size_t begin = table.put(args.data(), args.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t at = begin + i * sizeof(tuner_arg);
    table.text(at + offsetof(tuner_arg, name), tensors[i].name);
    table.text(at + offsetof(tuner_arg, role), std::string(buffer_role_name(tensors[i].role)));
    table.text(at + offsetof(tuner_arg, dtype), std::string(dtype_name(tensors[i].dtype)));
    table.text(at + offsetof(tuner_arg, layout), tensors[i].layout);
  }
  return begin;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

tuner_model table_head(const ModelToPack& model, const PlacedModel& placed) {
  tuner_model head{};
  head.version = TUNER_MODEL_VERSION;
  head.threads = model.target.threads;
  head.weights_checksum = placed.weights.checksum;
  head.weights_bytes = placed.weights.bytes;
  head.arena_bytes = model.memory.arena_bytes;
  head.workspace_bytes = placed.workspace_bytes;
  head.workspace_bytes_per_thread = placed.workspace_bytes_per_thread;
  head.num_inputs = static_cast<int32_t>(placed.inputs.size());
  head.num_outputs = static_cast<int32_t>(placed.outputs.size());
  head.num_steps = static_cast<int32_t>(placed.steps.size());
  head.num_kernels = static_cast<int32_t>(model.kernels.size());
  return head;
}

void point_head(TableWriter& table, const ModelToPack& model, const PlacedModel& placed, size_t at) {
  table.text(at + offsetof(tuner_model, name), model.name);
  table.text(at + offsetof(tuner_model, target), model.target.name());
  table.text(at + offsetof(tuner_model, instruction_sets), joined(placed.instruction_sets));
  table.text(at + offsetof(tuner_model, source_digest), model.source_digest);
  table.text(at + offsetof(tuner_model, weights_digest), placed.weights.digest);
  table.point(at + offsetof(tuner_model, inputs), put_tensors(table, placed.inputs));
  table.point(at + offsetof(tuner_model, outputs), put_tensors(table, placed.outputs));
}

}  // namespace tuner
