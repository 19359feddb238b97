// set_layout, launch_bounds: shared memory and registers of a GPU.
#include <algorithm>

#include "compiler_core/ir/layout.h"
#include "compiler_core/schedule/rewrite.h"

namespace tuner {

using namespace rewrite;

void Schedule::set_layout(const Tensor& t, std::string_view layout) {
  if (refused()) return;
  const Buffer buffer = resolve(t);
  const std::string call =
      str("set_layout(", buffer == nullptr ? "(none)" : buffer->name, ", {", layout, "})");
  apply(call, [&]() -> Status {
    const bool packed = buffer != nullptr && buffer->role == BufferRole::kPacked;
    if (!packed) RETURN_IF_ERROR(check_shared(buffer));
    RETURN_IF_ERROR(check_layout(layout, buffer->shape));
    auto changed = std::make_shared<BufferNode>(*buffer);
    changed->layout = layout;
    if (packed && storage_elements(*changed) != buffer->elements())
      return invalid_config(buffer->name, " is packed ahead, and an argument has no unused elements");
    program_.body = replace_buffers(program_.body, {{buffer, changed}});
    if (packed) {
      Program packing = *program_.packing;
      packing.body = replace_buffers(packing.body, {{buffer, changed}});
      std::ranges::replace(packing.args, buffer, Buffer(changed));
      std::ranges::replace(program_.args, buffer, Buffer(changed));
      program_.packing = std::make_shared<const Program>(std::move(packing));
    }
    moved(buffer, changed);
    record(call);
    return Status::ok();
  });
}

void Schedule::launch_bounds(int blocks) {
  if (refused()) return;
  const std::string call = str("launch_bounds(", blocks, ")");
  apply(call, [&]() -> Status {
    if (blocks < 1 || blocks > 32) return invalid_config("blocks of a multiprocessor must be in 1..32");
    program_.min_blocks = blocks;
    record(call);
    return Status::ok();
  });
}

}  // namespace tuner
