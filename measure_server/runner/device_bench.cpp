#include <algorithm>
#include <cstring>

#include "measure_server/runner/device_candidate.h"

namespace tuner {

using cuda::CallStatus;

namespace {

constexpr int64_t kSentinelBytes = 16 << 20;
// Inputs and reference answers kept in memory: several workloads'.
constexpr int64_t kDeviceFilesBytes = int64_t{2} << 30;

}  // namespace

DeviceBench::DeviceBench(cuda::DeviceContext context)
    : context_(std::move(context)), files_(kDeviceFilesBytes) {}

Result<std::unique_ptr<DeviceBench>> DeviceBench::open(int ordinal) {
  ASSIGN_OR_RETURN(cuda::DeviceContext context, cuda::DeviceContext::open(ordinal));
  std::unique_ptr<DeviceBench> bench(new DeviceBench(std::move(context)));
  RETURN_IF_ERROR(bench->prepare().status());
  RETURN_IF_ERROR(bench->check());
  return bench;
}

CallStatus DeviceBench::prepare() {
  CallStatus status = cuda::DeviceStream::create(stream_);
  if (status) status = cuda::DeviceEvent::create(begin_);
  if (status) status = cuda::DeviceEvent::create(end_);
  if (status) status = cuda::DeviceMemory::allocate(kSentinelBytes, from_);
  if (status) status = cuda::DeviceMemory::allocate(kSentinelBytes, to_);
  return status;
}

// There, across the device's memory, and back.
Status DeviceBench::check() {
  std::string sent(1 << 20, '\0'), back(sent.size(), '\0');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 2654435761u >> 13);
  const auto bytes = static_cast<int64_t>(sent.size());
  RETURN_IF_ERROR(cuda::fill_bytes(to_.address(), 0, kSentinelBytes, stream_).status());
  RETURN_IF_ERROR(cuda::copy_to_device(from_.address(), sent.data(), bytes).status());
  RETURN_IF_ERROR(cuda::copy_on_device(to_.address(), from_.address(), bytes, stream_).status());
  RETURN_IF_ERROR(stream_.synchronize().status());
  RETURN_IF_ERROR(cuda::copy_to_host(back.data(), to_.address(), bytes).status());
  if (sent != back) return unavailable("device check: bytes copied to the device and back have changed");
  double ns = 0;
  RETURN_IF_ERROR(sentinel(ns).status());
  if (!(ns > 0)) return unavailable("device check: copying 16 MiB took ", ns, " ns by the device's clock");
  return Status::ok();
}

CallStatus DeviceBench::elapsed_ns(double& ns) {
  CallStatus status = end_.synchronize();
  if (status) status = cuda::DeviceEvent::elapsed_ns(begin_, end_, ns);
  return status;
}

CallStatus DeviceBench::sentinel(double& best_ns) {
  CallStatus status;
  best_ns = 0;
  for (int i = 0; i < 3 && status; ++i) {
    double ns = 0;
    status = begin();
    if (status) status = cuda::copy_on_device(to_.address(), from_.address(), kSentinelBytes, stream_);
    if (status) status = end();
    if (status) status = elapsed_ns(ns);
    best_ns = i == 0 ? ns : std::min(best_ns, ns);
  }
  return status;
}

CallStatus DeviceBench::pulse(double& ns) {
  ns = 0;
  if (!pulse_) {
    const CallStatus loaded = DevicePulse::load(context_.device(), pulse_.emplace());
    if (!loaded) return loaded;
    // The first launch of a kernel takes longer.
    if (pulse_->there())
      if (const CallStatus first = pulse_->queue(stream_); !first) return first;
  }
  if (!pulse_->there()) return {};
  CallStatus status = begin();
  if (status) status = pulse_->queue(stream_);
  if (status) status = end();
  return status ? elapsed_ns(ns) : status;
}

CallStatus DeviceBench::checks(const std::string& path, std::string_view cubin, DeviceChecks*& checks) {
  const auto [it, is_new] = checks_.try_emplace(path);
  checks = &it->second;
  if (!is_new) return {};
  const CallStatus status = DeviceChecks::load(cubin, context_.device().memory_bytes, it->second);
  if (!status) checks_.erase(it);
  return status;
}

CallStatus DeviceBench::flush_l2() {
  if (flush_.bytes() == 0) {
    constexpr int64_t kLeast = 1 << 20;
    const CallStatus status =
        cuda::DeviceMemory::allocate(std::max(2 * context_.device().l2_bytes, kLeast), flush_);
    if (!status) return status;
  }
  return cuda::fill_bytes(flush_.address(), 0, flush_.bytes(), stream_);
}

}  // namespace tuner
