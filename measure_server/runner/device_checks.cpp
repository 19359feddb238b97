#include "measure_server/runner/device_checks.h"

#include <algorithm>

#include "measure_server/runner/check_kernels.h"

namespace tuner {

using cuda::CallStatus;
using cuda::DevicePtr;

CallStatus DeviceChecks::load(std::string_view cubin, int64_t memory_bytes, DeviceChecks& out) {
  out.capacity_bytes_ = memory_bytes / 4;
  return cuda::DeviceModule::load(cubin, out.module_);
}

bool DeviceChecks::knows(DType dtype) { return !sums_kernel(dtype).empty(); }

CallStatus DeviceChecks::launch(const std::string& kernel, int64_t blocks_x, int64_t blocks_y, void** params,
                                const cuda::DeviceStream& stream) {
  const auto [found, is_new] = functions_.try_emplace(kernel, nullptr);
  if (is_new)
    if (const CallStatus status = module_.function(kernel, 0, found->second); !status) {
      functions_.erase(found);
      return status;
    }
  const LaunchInfo info{.kernel = kernel, .grid = {blocks_x, blocks_y, 1}, .block = {kCheckThreads, 1, 1}};
  return cuda::launch(found->second, info, params, stream);
}

CallStatus DeviceChecks::scratch(int64_t bytes) {
  if (scratch_.bytes() >= bytes) return {};
  scratch_ = {};
  return cuda::DeviceMemory::allocate(bytes, scratch_);
}

CallStatus DeviceChecks::sums(DevicePtr output, DType dtype, const ReferenceView& reference,
                              const cuda::DeviceStream& stream, OutputSums& found) {
  const auto rows = static_cast<int64_t>(reference.rows.size()),
             columns = static_cast<int64_t>(reference.columns.size()),
             samples = static_cast<int64_t>(reference.samples.size());
  // Scratch: sums of rows, of columns, samples, and their indices.
  const int64_t sums_bytes = (rows + columns) * 8;
  CallStatus status = scratch(sums_bytes + samples * 16);
  DevicePtr of_rows = scratch_.address(), of_columns = of_rows + static_cast<DevicePtr>(rows) * 8,
            values = of_columns + static_cast<DevicePtr>(columns) * 8,
            indices = values + static_cast<DevicePtr>(samples) * 8;
  std::vector<uint64_t> where;
  for (const ReferenceView::Sample& s : reference.samples) where.push_back(s.index);
  if (status) status = cuda::fill_bytes(of_rows, 0, sums_bytes, stream);
  if (status) status = cuda::copy_to_device(indices, where.data(), samples * 8);
  uint64_t count = 1, n_columns = static_cast<uint64_t>(columns), n_samples = where.size();
  for (const int64_t d : reference.shape) count *= static_cast<uint64_t>(d);
  void* sums_params[] = {&output, &of_rows, &of_columns, &count, &n_columns};
  if (status)
    status = launch(sums_kernel(dtype), (columns + kSumsColumns - 1) / kSumsColumns,
                    (rows + kSumsRows - 1) / kSumsRows, sums_params, stream);
  void* samples_params[] = {&output, &indices, &values, &n_samples};
  if (status)
    status = launch(samples_kernel(dtype), (samples + kCheckThreads - 1) / kCheckThreads, 1, samples_params,
                    stream);
  std::vector<double> all(static_cast<size_t>(rows + columns + samples));
  if (status) status = stream.synchronize();
  if (status) status = cuda::copy_to_host(all.data(), of_rows, static_cast<int64_t>(all.size()) * 8);
  found.rows.assign(all.begin(), all.begin() + rows);
  found.columns.assign(all.begin() + rows, all.begin() + rows + columns);
  found.samples.assign(all.begin() + rows + columns, all.end());
  return status;
}

CallStatus DeviceChecks::reduce(const std::string& kernel, void** params, int64_t bytes,
                                const cuda::DeviceStream& stream, uint64_t& word) {
  constexpr int64_t kMostBlocks = 4096;
  CallStatus status = cuda::fill_bytes(scratch_.address(), 0, sizeof word, stream);
  const int64_t blocks = std::clamp<int64_t>(bytes / 16 / kCheckThreads, 1, kMostBlocks);
  if (status) status = launch(kernel, blocks, 1, params, stream);
  if (status) status = stream.synchronize();
  return status ? cuda::copy_to_host(&word, scratch_.address(), sizeof word) : status;
}

CallStatus DeviceChecks::equal(DevicePtr a, DevicePtr b, int64_t bytes, const cuda::DeviceStream& stream,
                               bool& same) {
  if (const CallStatus status = scratch(8); !status) return status;
  uint64_t different = 1;
  auto size = static_cast<uint64_t>(bytes);
  DevicePtr result = scratch_.address();
  void* params[] = {&a, &b, &size, &result};
  const CallStatus status = reduce(kEqualKernel, params, bytes, stream, different);
  same = different == 0;
  return status;
}

CallStatus DeviceChecks::hash(const cuda::DeviceMemory& memory, const cuda::DeviceStream& stream,
                              uint64_t& found) {
  if (const CallStatus status = scratch(8); !status) return status;
  DevicePtr a = memory.address(), result = scratch_.address();
  auto size = static_cast<uint64_t>(memory.bytes());
  void* params[] = {&a, &size, &result};
  return reduce(kHashKernel, params, memory.bytes(), stream, found);
}

CallStatus DeviceChecks::original(const std::string& name, const cuda::DeviceStream& stream,
                                  DevicePtr& address) {
  address = 0;
  const auto it = originals_.find(name);
  if (it == originals_.end()) return {};
  uint64_t now = 0;
  const CallStatus status = hash(it->second.memory, stream, now);
  if (!status) return status;
  if (now != it->second.hash) {
    originals_.erase(it);
    return {};
  }
  it->second.used = ++clock_;
  address = it->second.memory.address();
  return {};
}

CallStatus DeviceChecks::keep(const std::string& name, std::string_view bytes,
                              const cuda::DeviceStream& stream) {
  const auto size = static_cast<int64_t>(bytes.size());
  originals_.erase(name);
  if (size == 0 || size > capacity_bytes_) return {};
  for (;;) {
    int64_t held = size;
    auto oldest = originals_.end();
    for (auto it = originals_.begin(); it != originals_.end(); ++it) {
      held += it->second.memory.bytes();
      if (oldest == originals_.end() || it->second.used < oldest->second.used) oldest = it;
    }
    if (held <= capacity_bytes_ || oldest == originals_.end()) break;
    originals_.erase(oldest);
  }
  Original made{.used = ++clock_};
  CallStatus status = cuda::DeviceMemory::allocate(size, made.memory);
  if (status.code() == cuda::kOutOfMemory) return {};
  if (status) status = cuda::copy_to_device(made.memory.address(), bytes.data(), size);
  if (status) status = hash(made.memory, stream, made.hash);
  if (status) originals_[name] = std::move(made);
  return status;
}

}  // namespace tuner
