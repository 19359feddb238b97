#include "compiler_core/runtime/cuda_objects.h"

namespace tuner::cuda {

Result<DeviceContext> DeviceContext::open(int ordinal) {
  ASSIGN_OR_RETURN(std::vector<CudaDevice> devices, cuda_devices());
  if (ordinal < 0 || ordinal >= static_cast<int>(devices.size()))
    return invalid_argument("device ", ordinal, ": this host has devices 0..", devices.size() - 1);
  DeviceContext made;
  made.device_ = std::move(devices[ordinal]);
  Device device = 0;
  if (const int code = api()->device_get(&device, ordinal); code != kSuccess)
    return CallStatus(code, "cuDeviceGet").status();
  if (const int code = api()->context_retain(&made.context_, device); code != kSuccess)
    return CallStatus(code, "cuDevicePrimaryCtxRetain").status();
  if (const int code = api()->context_set(made.context_); code != kSuccess)
    return CallStatus(code, "cuCtxSetCurrent").status();
  return made;
}

DeviceContext::~DeviceContext() {
  Device device = 0;
  if (context_ != nullptr && api()->device_get(&device, device_.ordinal) == kSuccess)
    (void)api()->context_release(device);
}

CallStatus DeviceContext::synchronize() const { return {api()->context_synchronize(), "cuCtxSynchronize"}; }

CallStatus DeviceStream::create(DeviceStream& out) {
  Stream stream = nullptr;
  const CallStatus status(api()->stream_create(&stream, kStreamDefault), "cuStreamCreate");
  if (status) out.stream_ = Owned<Stream, &Api::stream_destroy>(stream);
  return status;
}

CallStatus DeviceStream::synchronize() const {
  return {api()->stream_synchronize(stream_.get()), "cuStreamSynchronize"};
}

CallStatus DeviceEvent::create(DeviceEvent& out) {
  Event event = nullptr;
  const CallStatus status(api()->event_create(&event, kEventDefault), "cuEventCreate");
  if (status) out.event_ = Owned<Event, &Api::event_destroy>(event);
  return status;
}

CallStatus DeviceEvent::record(const DeviceStream& stream) const {
  return {api()->event_record(event_.get(), stream.get()), "cuEventRecord"};
}

CallStatus DeviceEvent::synchronize() const {
  return {api()->event_synchronize(event_.get()), "cuEventSynchronize"};
}

CallStatus DeviceEvent::elapsed_ns(const DeviceEvent& begin, const DeviceEvent& end, double& ns) {
  float milliseconds = 0;
  const CallStatus status(api()->event_elapsed(&milliseconds, begin.event_.get(), end.event_.get()),
                          "cuEventElapsedTime");
  ns = 1e6 * milliseconds;
  return status;
}

CallStatus DeviceMemory::allocate(int64_t bytes, DeviceMemory& out) {
  DevicePtr pointer = 0;
  const CallStatus status(api()->memory_alloc(&pointer, static_cast<size_t>(bytes)), "cuMemAlloc");
  if (!status) return status;
  out.memory_ = Owned<DevicePtr, &Api::memory_free>(pointer);
  out.bytes_ = bytes;
  return status;
}

CallStatus copy_to_device(DevicePtr to, const void* from, int64_t bytes) {
  return {api()->copy_to_device(to, from, static_cast<size_t>(bytes)), "cuMemcpyHtoD"};
}

CallStatus copy_to_host(void* to, DevicePtr from, int64_t bytes) {
  return {api()->copy_to_host(to, from, static_cast<size_t>(bytes)), "cuMemcpyDtoH"};
}

CallStatus copy_on_device(DevicePtr to, DevicePtr from, int64_t bytes, const DeviceStream& stream) {
  return {api()->copy_on_device(to, from, static_cast<size_t>(bytes), stream.get()), "cuMemcpyDtoDAsync"};
}

CallStatus fill_bytes(DevicePtr to, unsigned char value, int64_t bytes, const DeviceStream& stream) {
  return {api()->fill_bytes(to, value, static_cast<size_t>(bytes), stream.get()), "cuMemsetD8Async"};
}

CallStatus DeviceModule::load(std::string_view cubin, DeviceModule& out) {
  Module module = nullptr;
  const CallStatus status(api()->module_load(&module, cubin.data()), "cuModuleLoadData");
  if (status) out.module_ = Owned<Module, &Api::module_unload>(module);
  return status;
}

CallStatus DeviceModule::function(const std::string& name, int64_t shared_bytes, Function& out) const {
  const CallStatus found(api()->module_function(&out, module_.get(), name.c_str()), "cuModuleGetFunction");
  constexpr int64_t kWithoutAsking = 48 << 10;
  if (!found || shared_bytes <= kWithoutAsking) return found;
  return {api()->function_set(out, kMaxDynamicSharedBytes, static_cast<int>(shared_bytes)),
          "cuFuncSetAttribute"};
}

CallStatus DeviceGraph::record(const DeviceStream& stream, const std::function<CallStatus()>& work,
                               DeviceGraph& out) {
  CallStatus status(api()->capture_begin(stream.get(), kCaptureRelaxed), "cuStreamBeginCapture");
  if (!status) return status;
  const CallStatus queued = work();
  Graph graph = nullptr;
  status = {api()->capture_end(stream.get(), &graph), "cuStreamEndCapture"};  // also after a failure
  const Owned<Graph, &Api::graph_destroy> recorded(graph);
  if (!queued) return queued;
  if (!status) return status;
  GraphExec made = nullptr;
  status = {api()->graph_instantiate(&made, graph, 0), "cuGraphInstantiate"};
  if (status) out.graph_ = Owned<GraphExec, &Api::graph_exec_destroy>(made);
  return status;
}

CallStatus DeviceGraph::launch(const DeviceStream& stream) const {
  return {api()->graph_launch(graph_.get(), stream.get()), "cuGraphLaunch"};
}

namespace {

int map_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kInt8:  // bytes are moved, whatever they mean
    case DType::kUInt8:
      return kMapUInt8;
    case DType::kInt16:
    case DType::kUInt16:
      return kMapUInt16;
    case DType::kInt32:
      return kMapInt32;
    case DType::kUInt32:
      return kMapUInt32;
    case DType::kInt64:
      return kMapInt64;
    case DType::kUInt64:
      return kMapUInt64;
    case DType::kFloat16:
      return kMapFloat16;
    case DType::kBFloat16:
      return kMapBFloat16;
    case DType::kFloat32:
      return kMapFloat32;
    case DType::kFloat64:
      return kMapFloat64;
  }
  return kMapUInt8;
}

// The number that the driver has for 0, 32, 64, 128 and for 0, 64, 128, 256 bytes.
int map_swizzle(int64_t bytes) {
  return bytes == 128  ? kMapSwizzle128
         : bytes == 64 ? kMapSwizzle64
         : bytes == 32 ? kMapSwizzle32
                       : kMapSwizzle0;
}
int map_l2(int64_t bytes) {
  return bytes == 256 ? kMapL2By256 : bytes == 128 ? kMapL2By128 : bytes == 64 ? kMapL2By64 : kMapL2As;
}

template <class To>
std::vector<To> as(const std::vector<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

CallStatus encode(const TensorMap& map, DevicePtr address, TensorMapBytes& out) {
  const bool tiled = map.kind == TensorMap::Kind::kTiled;
  const char* const call = tiled ? "cuTensorMapEncodeTiled" : "cuTensorMapEncodeIm2col";
  if (!check_tensor_map(map)) return {kInvalidValue, call};
  const auto rank = static_cast<uint32_t>(map.rank());
  void* const at = reinterpret_cast<void*>(address);
  const std::vector<uint64_t> extents = as<uint64_t>(map.extents), strides = as<uint64_t>(map.strides);
  const std::vector<uint32_t> steps =
      map.steps.empty() ? std::vector<uint32_t>(rank, 1) : as<uint32_t>(map.steps);
  const int type = map_type(map.dtype), swizzle = map_swizzle(map.swizzle_bytes), l2 = map_l2(map.l2_bytes),
            fill = map.fills_nan ? kMapFillsNan : kMapFillsZeros;
  if (tiled) {
    if (api()->tensor_map_tiled == nullptr) return {kNotSupported, call};
    const std::vector<uint32_t> box = as<uint32_t>(map.box);
    return {api()->tensor_map_tiled(&out, type, rank, at, extents.data(), strides.data(), box.data(),
                                    steps.data(), kMapNotInterleaved, swizzle, l2, fill),
            call};
  }
  if (api()->tensor_map_im2col == nullptr) return {kNotSupported, call};
  const std::vector<int> lower = as<int>(map.lower), upper = as<int>(map.upper);
  return {api()->tensor_map_im2col(&out, type, rank, at, extents.data(), strides.data(), lower.data(),
                                   upper.data(), static_cast<uint32_t>(map.channels),
                                   static_cast<uint32_t>(map.pixels), steps.data(), kMapNotInterleaved,
                                   swizzle, l2, fill),
          call};
}

CallStatus launch(Function function, const LaunchInfo& info, void** params, const DeviceStream& stream) {
  const auto u = [](int64_t n) { return static_cast<unsigned>(n); };
  return {
      api()->launch(function, u(info.grid[0]), u(info.grid[1]), u(info.grid[2]), u(info.block[0]),
                    u(info.block[1]), u(info.block[2]), u(info.shared_bytes), stream.get(), params, nullptr),
      "cuLaunchKernel"};
}

}  // namespace tuner::cuda
