#include "tuner/model/model_table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tuner {
namespace {

// Structs of tuner_model.h have the same layout on every CPU that libraries are made for: 64 bits,
// little-endian.
static_assert(sizeof(void*) == 8 && sizeof(tuner_place) == 16 && sizeof(tuner_guard) == 24 &&
              sizeof(tuner_step) == 56);

// Lays structs out one behind the other, and notes which of their members are addresses.
class TableWriter {
 public:
  explicit TableWriter(std::string symbol) { table_.symbol = std::move(symbol); }

  template <class T>
  size_t put(const T* items, size_t count) {
    table_.bytes.resize((table_.bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const size_t at = table_.bytes.size();
    table_.bytes.append(reinterpret_cast<const char*>(items), sizeof(T) * count);
    return at;
  }
  void point(size_t at, size_t to) { table_.addresses.push_back({at, "", to}); }
  void point(size_t at, const std::string& symbol) { table_.addresses.push_back({at, symbol}); }
  // The same text stands there once.
  void text(size_t at, const std::string& text) {
    const auto known = std::ranges::find(texts_, text, &std::pair<std::string, size_t>::first);
    if (known != texts_.end()) return point(at, known->second);
    texts_.emplace_back(text, put(text.c_str(), text.size() + 1));
    point(at, texts_.back().second);
  }

  ConstantTable finish() {
    std::ranges::sort(table_.addresses, {}, &ConstantTable::Address::at);
    return std::move(table_);
  }

 private:
  ConstantTable table_;
  std::vector<std::pair<std::string, size_t>> texts_;
};

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

size_t put_steps(TableWriter& table, const ModelToPack& model, const PlacedModel& placed) {
  std::vector<tuner_step> steps(placed.steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    steps[s].num_args = static_cast<int32_t>(placed.steps[s].args.size());
    steps[s].kernel = static_cast<int32_t>(model.kernel_of_step[s]);
    steps[s].num_guards = static_cast<int32_t>(placed.steps[s].guards.size());
  }
  const size_t begin = table.put(steps.data(), steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    const size_t at = begin + s * sizeof(tuner_step);
    const BundleKernel& kernel = model.kernels[model.kernel_of_step[s]];
    const std::vector<tuner_place>& args = placed.steps[s].args;
    table.text(at + offsetof(tuner_step, name), model.model.steps[s].name);
    table.text(at + offsetof(tuner_step, workload), kernel.task.key);
    table.point(at + offsetof(tuner_step, entry), kernel.code.manifest.entry);
    table.point(at + offsetof(tuner_step, args), table.put(args.data(), args.size()));
    std::vector<tuner_guard> guards;
    for (const PlacedGuard& guard : placed.steps[s].guards)
      guards.push_back({guard.condition.place, guard.wanted ? 1 : 0, 0});
    if (!guards.empty())
      table.point(at + offsetof(tuner_step, guards), table.put(guards.data(), guards.size()));
  }
  return begin;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

ConstantTable model_table(const ModelToPack& model, const PlacedModel& placed) {
  TableWriter table(table_symbol(model.name));
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
  table.put(&head, 1);
  table.text(offsetof(tuner_model, name), model.name);
  table.text(offsetof(tuner_model, target), model.target.name());
  table.text(offsetof(tuner_model, instruction_sets), joined(placed.instruction_sets));
  table.text(offsetof(tuner_model, source_digest), model.source_digest);
  table.text(offsetof(tuner_model, weights_digest), placed.weights.digest);
  table.point(offsetof(tuner_model, inputs), put_tensors(table, placed.inputs));
  table.point(offsetof(tuner_model, outputs), put_tensors(table, placed.outputs));
  table.point(offsetof(tuner_model, steps), put_steps(table, model, placed));
  return table.finish();
}

}  // namespace tuner
