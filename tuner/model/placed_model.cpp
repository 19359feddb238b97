#include "tuner/model/placed_model.h"

#include <algorithm>
#include <cstring>

#include "tuner/model/constant_packer.h"

namespace tuner {
namespace {

using graph::ValueId;
using Where = ValuePlace::Where;

template <class... Args>
Status misfit(const Args&... args) {
  return {StatusCode::kInternal, str(args...)};
}

class Placer {
 public:
  Placer(const ModelToPack& model, const std::vector<CSignature>& signatures, WeightsFile& weights)
      : model_(model), signatures_(signatures), weights_(weights), packer_(model.kernels, signatures) {}

  Result<PlacedStep> place(size_t s) {
    const ModelStep& step = model_.model.steps[s];
    const size_t kernel = model_.kernel_of_step[s];
    const CSignature& signature = signatures_[kernel];
    PlacedStep out;
    std::vector<PlacedOperand> operands;  // one for each of signature.operands
    RETURN_IF_ERROR(place_operands(step, signature, operands).with_context(step.name + ": "));
    RETURN_IF_ERROR(pack_constants(step, kernel, operands).with_context(step.name + ": "));
    out.entry = model_.kernels[kernel].code.manifest.entry;
    RETURN_IF_ERROR(place_program(step, kernel, out));
    for (const ArgPlace& arg : signature.entry) {
      out.args.push_back(operands[arg.arg].place);
      out.args.back().offset += arg.offset;
    }
    for (const tuner_place& arg : out.args)
      if (arg.offset % 64 != 0) return misfit(step.name, ": an argument lies at byte ", arg.offset);
    for (const StepGuard& guard : step.guards) {
      ASSIGN_OR_RETURN(const tuner_place place, place_of(guard.condition, step.name));
      const graph::Value& value = value_of(guard.condition);
      out.guards.push_back({{value.name, guard.condition, place, value.type.bytes()}, guard.wanted});
    }
    out.writes = std::move(operands.back());
    operands.pop_back();
    out.reads = std::move(operands);
    return out;
  }

 private:
  const graph::Value& value_of(ValueId v) const { return model_.model.graph[v]; }

  // Operands but constant ones, which pack_constants() places.
  Status place_operands(const ModelStep& step, const CSignature& signature,
                        std::vector<PlacedOperand>& operands) {
    size_t next = 0;
    for (const ArgInfo& operand : signature.operands) {
      const bool last = &operand == &signature.operands.back();
      if (last != operand.is_result()) return misfit("expected one result, the last operand");
      if (!last && next == step.reads.size()) return misfit("reads no value for operand ", operand.name);
      const ValueId v = last ? step.writes : step.reads[next++];
      PlacedOperand placed{
          .name = value_of(v).name, .value = v, .place = tuner_place{}, .bytes = operand.bytes};
      if (value_of(v).type.bytes() != operand.bytes)
        return misfit("operand ", operand.name, " has ", operand.bytes, " bytes, value ", placed.name, " ",
                      value_of(v).type.bytes());
      if (operand.role != BufferRole::kConstant) {
        ASSIGN_OR_RETURN(placed.place, place_of(v, step.name));
      }
      operands.push_back(std::move(placed));
    }
    // A value that a result lies on: it has the result's place.
    if (next < step.reads.size() && signature.operands.back().role == BufferRole::kInOut) {
      ASSIGN_OR_RETURN(const tuner_place under, place_of(step.reads[next++], step.name));
      const tuner_place& result = operands.back().place;
      if (under.kind != result.kind || under.index != result.index || under.offset != result.offset)
        return misfit("adds to a value that lies elsewhere");
    }
    return next == step.reads.size() ? Status::ok()
                                     : misfit("reads ", step.reads.size(), " values, its workload ", next);
  }

  // The bytes of a constant, or of a part of one.
  Result<std::string_view> constant_bytes(ValueId v) const {
    const ValuePlace& place = model_.memory.values[v];
    if (place.where != Where::kConstant)
      return misfit("value ", value_of(v).name, " is no constant, the operand is");
    const std::span<const std::byte> bytes = value_of(place.index).constant->bytes();
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
        .substr(static_cast<size_t>(place.offset), static_cast<size_t>(value_of(v).type.bytes()));
  }

  Result<tuner_place> place_of(ValueId v, const std::string& step) {
    const ValuePlace& place = model_.memory.values[v];
    const auto index = static_cast<int32_t>(place.index);
    switch (place.where) {
      case Where::kArena:
        return tuner_place{TUNER_ARENA, 0, place.offset};
      case Where::kInput:
        return tuner_place{TUNER_INPUT, index, place.offset};
      case Where::kOutput:
        return tuner_place{TUNER_OUTPUT, index, place.offset};
      case Where::kConstant: {
        ASSIGN_OR_RETURN(const std::string_view bytes, constant_bytes(v));
        ASSIGN_OR_RETURN(const int64_t offset, weights_.add(bytes, use_of(step, v)));
        return tuner_place{TUNER_WEIGHTS, 0, offset};
      }
      case Where::kNowhere:
        break;
    }
    return misfit("value ", value_of(v).name, " has no place");
  }

  // Of a kernel for an accelerator: its program stands among the weights, behind its size.
  Status place_program(const ModelStep& step, size_t kernel, PlacedStep& out) {
    const auto used = std::ranges::find(model_.used, kernel, &UsedFunction::kernel);
    if (used == model_.used.end() || used->step.empty()) return Status::ok();
    const ShippedKernel& code = model_.kernels[kernel].code;
    const auto library = backend_of(model_.kernels[kernel].task.target).host_library();
    CHECK(library) << step.name << ": its device has no library of ours";
    const auto program = std::ranges::find(code.files, library->program, &ShippedKernel::File::role);
    CHECK(program != code.files.end()) << step.name << ": its kernel was shipped without a program";
    std::string bytes(sizeof(int64_t), '\0');
    const auto size = static_cast<int64_t>(program->bytes.size());
    std::memcpy(bytes.data(), &size, sizeof size);
    bytes += program->bytes;
    ASSIGN_OR_RETURN(const int64_t offset, weights_.add(bytes, step.name + ": program"));
    out.args.push_back({TUNER_WEIGHTS, 0, offset});
    out.entry = used->step;
    return Status::ok();
  }

  std::string use_of(const std::string& step, ValueId v) const { return str(step, ": ", value_of(v).name); }

  Status pack_constants(const ModelStep& step, size_t kernel, std::vector<PlacedOperand>& operands) {
    const CSignature& signature = signatures_[kernel];
    if (!signature.packs()) return Status::ok();
    std::vector<size_t> at;
    std::vector<std::string_view> constants;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (signature.operands[i].role != BufferRole::kConstant) continue;
      at.push_back(i);
      ASSIGN_OR_RETURN(const std::string_view bytes, constant_bytes(operands[i].value));
      constants.push_back(bytes);
    }
    ASSIGN_OR_RETURN(const std::vector<AlignedBuffer> packed, packer_.pack(kernel, constants));
    for (size_t c = 0; c < at.size(); ++c) {
      PlacedOperand& operand = operands[at[c]];
      operand.bytes = packed[c].bytes();
      ASSIGN_OR_RETURN(const int64_t offset,
                       weights_.add({packed[c].as<char>(), static_cast<size_t>(operand.bytes)},
                                    use_of(step.name, operand.value)));
      operand.place = {TUNER_WEIGHTS, 0, offset};
    }
    return Status::ok();
  }

  const ModelToPack& model_;
  const std::vector<CSignature>& signatures_;
  WeightsFile& weights_;
  ConstantPacker packer_;
};

// An input or output as a program sees it.
Result<ArgInfo> tensor_info(const graph::Value& value, std::string name, BufferRole role) {
  if (value.type.shape.size() > TUNER_MAX_RANK)
    return invalid_argument(role, " \"", name, "\" has ", value.type.shape.size(),
                            " dimensions, expected at most ", TUNER_MAX_RANK);
  return ArgInfo{.name = std::move(name),
                 .role = role,
                 .dtype = value.type.dtype,
                 .shape = value.type.shape,
                 .layout = "",
                 .bytes = value.type.bytes()};
}

Status add_tensors(const ModelToPack& model, PlacedModel& out) {
  const graph::Graph& graph = model.model.graph;
  for (const ValueId v : graph.inputs) {
    ASSIGN_OR_RETURN(ArgInfo info, tensor_info(graph[v], graph[v].name, BufferRole::kInput));
    out.inputs.push_back(std::move(info));
  }
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const ValuePlace& place = model.memory.values[graph.outputs[o]];
    const bool is_empty = graph[graph.outputs[o]].type.elements() == 0;  // it lies nowhere
    if (!is_empty && (place.where != Where::kOutput || place.index != o || place.offset != 0))
      return misfit("output ", graph.output_names[o], " lies elsewhere");
    ASSIGN_OR_RETURN(ArgInfo info,
                     tensor_info(graph[graph.outputs[o]], graph.output_names[o], BufferRole::kOutput));
    out.outputs.push_back(std::move(info));
  }
  return Status::ok();
}

Result<PlacedModel> place_in(const ModelToPack& model, WeightsFile& file) {
  CHECK(model.kernel_of_step.size() == model.model.steps.size()) << "a step without a kernel";
  std::vector<CSignature> signatures;
  PlacedModel out;
  for (const BundleKernel& k : model.kernels) {
    signatures.push_back(c_signature(k.task.workload, k.code.manifest));
    out.workspace_bytes = std::max(out.workspace_bytes, k.code.manifest.workspace_bytes);
    out.workspace_bytes_per_thread =
        std::max(out.workspace_bytes_per_thread, k.code.manifest.workspace_bytes_per_thread);
    for (const std::string& set : k.code.instruction_sets)
      if (std::ranges::find(out.instruction_sets, set) == out.instruction_sets.end())
        out.instruction_sets.push_back(set);
  }
  RETURN_IF_ERROR(add_tensors(model, out));
  Placer placer(model, signatures, file);
  for (size_t s = 0; s < model.model.steps.size(); ++s) {
    ASSIGN_OR_RETURN(PlacedStep step, placer.place(s));
    out.steps.push_back(std::move(step));
  }
  return out;
}

}  // namespace

Result<PlacedModel> place_model(const ModelToPack& model, const std::string& weights) {
  ASSIGN_OR_RETURN(std::vector<PlacedModel> placed, place_models({&model, 1}, weights));
  return std::move(placed.front());
}

Result<std::vector<PlacedModel>> place_models(std::span<const ModelToPack> models,
                                              const std::string& weights) {
  ASSIGN_OR_RETURN(WeightsFile file, WeightsFile::create(weights));
  std::vector<PlacedModel> out;
  for (const ModelToPack& model : models) {
    ASSIGN_OR_RETURN(PlacedModel placed, place_in(model, file));
    out.push_back(std::move(placed));
  }
  ASSIGN_OR_RETURN(const WeightsFacts facts, file.finish());
  for (PlacedModel& placed : out) placed.weights = facts;
  return out;
}

}  // namespace tuner
