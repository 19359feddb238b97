// What a process owns of a GPU: context, module, memory, stream, event. Each gives back what it holds when it
// goes; moves, is not copied. One thread at a time.
//
// Every call answers with a cuda::CallStatus, so a caller can tell out of memory from a poisoned context.
// After a fault of a kernel all calls fail, those that give back too: end the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "compiler_core/artifact/artifact.h"
#include "compiler_core/runtime/cuda_driver.h"

namespace tuner::cuda {

// A handle that is given back by `Release` when its owner goes.
template <class Handle, auto Release>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != Handle{}) (void)(api()->*Release)(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};

// The primary context of a device, made current on the calling thread. Outlives everything below.
class DeviceContext {
 public:
  // Loads the driver when that has not happened. Takes 100-300 ms.
  static Result<DeviceContext> open(int ordinal);
  DeviceContext(DeviceContext&& other) noexcept
      : device_(std::move(other.device_)), context_(std::exchange(other.context_, nullptr)) {}
  DeviceContext& operator=(DeviceContext&&) = delete;
  ~DeviceContext();

  const CudaDevice& device() const { return device_; }
  CallStatus synchronize() const;

 private:
  DeviceContext() = default;
  CudaDevice device_;
  Context context_ = nullptr;
};

class DeviceStream {
 public:
  static CallStatus create(DeviceStream& out);
  Stream get() const { return stream_.get(); }
  CallStatus synchronize() const;

 private:
  Owned<Stream, &Api::stream_destroy> stream_;
};

class DeviceEvent {
 public:
  static CallStatus create(DeviceEvent& out);
  CallStatus record(const DeviceStream& stream) const;
  CallStatus synchronize() const;  // waits until it has happened
  // Nanoseconds between two events that have happened; resolution about 500 ns.
  static CallStatus elapsed_ns(const DeviceEvent& begin, const DeviceEvent& end, double& ns);

 private:
  Owned<Event, &Api::event_destroy> event_;
};

class DeviceMemory {
 public:
  static CallStatus allocate(int64_t bytes, DeviceMemory& out);
  DevicePtr address() const { return memory_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  Owned<DevicePtr, &Api::memory_free> memory_;
  int64_t bytes_ = 0;
};

// Copies return when the host's bytes may be reused (to the device) or are there (from the device); the
// others are queued.
CallStatus copy_to_device(DevicePtr to, const void* from, int64_t bytes);
CallStatus copy_to_host(void* to, DevicePtr from, int64_t bytes);
CallStatus copy_on_device(DevicePtr to, DevicePtr from, int64_t bytes, const DeviceStream& stream);
CallStatus fill_bytes(DevicePtr to, unsigned char value, int64_t bytes, const DeviceStream& stream);

// A cubin in the device's memory.
class DeviceModule {
 public:
  static CallStatus load(std::string_view cubin, DeviceModule& out);
  // Also asks for `shared_bytes` of dynamic shared memory, which needs permission above 48 KiB.
  CallStatus function(const std::string& name, int64_t shared_bytes, Function& out) const;

 private:
  Owned<Module, &Api::module_unload> module_;
};

// Work recorded once and queued as a whole: the device begins a kernel within about a microsecond of the end
// of the one before it, where queuing each takes the host two or three.
class DeviceGraph {
 public:
  // Records what `work` queues on the stream; nothing of it runs. Any failure: nothing is recorded, and the
  // stream is as before.
  static CallStatus record(const DeviceStream& stream, const std::function<CallStatus()>& work,
                           DeviceGraph& out);
  bool recorded() const { return graph_.get() != nullptr; }
  CallStatus launch(const DeviceStream& stream) const;

 private:
  Owned<GraphExec, &Api::graph_exec_destroy> graph_;
};

// Has the driver encode a tensor map of the array at `address`. Fails with kInvalidValue if its manual does
// not allow it (check_tensor_map() says why), and with kNotSupported on a driver that knows no tensor maps.
CallStatus encode(const TensorMap& map, DevicePtr address, TensorMapBytes& out);

// One launch, queued. `params` holds the address of each parameter's value, as the driver wants it.
CallStatus launch(Function function, const LaunchInfo& info, void** params, const DeviceStream& stream);

}  // namespace tuner::cuda
