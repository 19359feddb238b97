#include "deploy/onnxruntime/part_library.h"

#include <cstring>

namespace tuner::ort {
namespace {

constexpr uintptr_t kAlignment = 64;  // that kernels ask for

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0; }

Status check_operands(const std::string& folder, const char* what, const tuner_arg* found, int32_t count,
                      const std::vector<int64_t>& expected) {
  bool same = count == std::ssize(expected);
  for (int32_t k = 0; same && k < count; ++k) same = found[k].bytes == expected[static_cast<size_t>(k)];
  if (same) return Status::ok();
  return invalid_argument(folder, ": its ", what, " are others than those of the part; remove the folder");
}

}  // namespace

struct PartLibrary::Room {
  struct Destroy {
    void operator()(tuner_context* context) const { tuner_context_destroy(context); }
  };
  std::unique_ptr<ThreadPool> pool;  // null: the caller's thread
  std::unique_ptr<tuner_context, Destroy> context;
  std::vector<AlignedBuffer> inputs, outputs;  // of operands that came without alignment
};

PartLibrary::PartLibrary(ModelLibrary library, PartOperands operands, int threads)
    : library_(std::move(library)), operands_(std::move(operands)), threads_(threads) {}
PartLibrary::~PartLibrary() = default;

Result<std::shared_ptr<PartLibrary>> PartLibrary::open(const std::string& folder,
                                                       const PartOperands& operands, int threads) {
  ASSIGN_OR_RETURN(const ModelFiles files, read_model_files(folder));
  ASSIGN_OR_RETURN(ModelLibrary library, ModelLibrary::open(folder, files));
  const tuner_model& table = library.table();
  RETURN_IF_ERROR(check_operands(folder, "inputs", table.inputs, table.num_inputs, operands.inputs));
  RETURN_IF_ERROR(check_operands(folder, "outputs", table.outputs, table.num_outputs, operands.outputs));
  std::shared_ptr<PartLibrary> made(new PartLibrary(std::move(library), operands, threads));
  ASSIGN_OR_RETURN(auto room, made->take_room());  // memory that a first run would take
  made->free_.push_back(std::move(room));
  return made;
}

Result<std::unique_ptr<PartLibrary::Room>> PartLibrary::take_room() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Room> room = std::move(free_.back());
      free_.pop_back();
      return room;
    }
  }
  auto room = std::make_unique<Room>();
  if (threads_ > 1) room->pool = std::make_unique<ThreadPool>(threads_);
  const tuner_runtime runtime = room->pool ? room->pool->runtime(nullptr) : tuner_serial_runtime(nullptr);
  tuner_context* raw = nullptr;
  const int32_t code = tuner_context_create(&library_.table(), library_.weights(), &runtime, &raw);
  if (code != 0) return model_status(code);
  room->context.reset(raw);
  room->inputs.resize(operands_.inputs.size());
  room->outputs.resize(operands_.outputs.size());
  return room;
}

Status PartLibrary::run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  ASSIGN_OR_RETURN(std::unique_ptr<Room> room, take_room());
  const Status done = run_in(*room, inputs, outputs);
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(room));
  return done;
}

Status PartLibrary::run_in(Room& room, std::vector<const void*> inputs, std::vector<void*> outputs) const {
  const auto aligned = [](AlignedBuffer& buffer, int64_t bytes) {
    if (buffer.bytes() < bytes) buffer = AlignedBuffer(bytes);
    return buffer.data();
  };
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (is_aligned(inputs[k])) continue;
    void* const copy = aligned(room.inputs[k], operands_.inputs[k]);
    std::memcpy(copy, inputs[k], static_cast<size_t>(operands_.inputs[k]));
    inputs[k] = copy;
  }
  const std::vector<void*> wanted = outputs;
  for (size_t k = 0; k < outputs.size(); ++k)
    if (!is_aligned(outputs[k])) outputs[k] = aligned(room.outputs[k], operands_.outputs[k]);
  const int32_t code = tuner_context_run(room.context.get(), inputs.data(), outputs.data());
  if (code != 0) {
    const int32_t step = room.context->failed_step;
    return model_status(code).with_context(step < 0 ? ""
                                                    : str("step ", library_.table().steps[step].name, ": "));
  }
  for (size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k] != wanted[k])
      std::memcpy(wanted[k], outputs[k], static_cast<size_t>(operands_.outputs[k]));
  return Status::ok();
}

}  // namespace tuner::ort
