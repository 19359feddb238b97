#include "measure_server/runner/shared_buffers.h"

#include <utility>

namespace tuner {

Result<GuardedBuffer> SharedBuffers::take(int64_t bytes, void* where) {
  const auto found = kept_.find(bytes);
  if (found == kept_.end()) return GuardedBuffer::create(bytes, GuardedBuffer::Sharing::kShared, where);
  GuardedBuffer buffer = std::move(found->second);
  kept_.erase(found);
  kept_bytes_ -= bytes;
  if (where != nullptr) RETURN_IF_ERROR(buffer.move_to(where));
  buffer.renew();
  return buffer;
}

void SharedBuffers::give_back(GuardedBuffer buffer) {
  const int64_t bytes = buffer.bytes();
  if (buffer.data() == nullptr || kept_bytes_ + bytes > capacity_bytes_) return;
  kept_bytes_ += bytes;
  kept_.emplace(bytes, std::move(buffer));
}

}  // namespace tuner
