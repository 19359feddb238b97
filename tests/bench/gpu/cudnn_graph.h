// CudnnGraph: a convolution and what follows it, as an operation graph of cuDNN, and the plans that the
// library has for it: those of its heuristics (modes A and B, then the fallback), then each engine with its
// own defaults.
//
//   convolution -> + bias -> + residual -> ReLU, as far as the task has them; sums, and numbers between the
//   steps, in float32
//
// What is known of an engine says on which hardware and by which arithmetic it computes: plans that would
// compute otherwise than the task allows are not offered (tensor cores where float32 may not be TF32), and
// those by Winograd and FFT, which round otherwise, are marked.
//
// Needs no header of it to build. Uses the context that is current on the calling thread; one thread at a
// time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/runtime/cuda_driver_api.h"
#include "templates/workload/workload.h"
#include "tests/bench/gpu/cudnn_descriptor.h"

namespace tuner {

// Whose plans they are: a handle's, which can run them; or those of a device that is only described.
struct CudnnDevice {
  void* handle = nullptr;
  const cudnn::CudnnDescriptor* properties = nullptr;
};

// The properties of the handle's device as cuDNN writes them down (JSON): what it asks of a device to make
// plans for it.
Result<std::string> cudnn_device_properties(void* handle);
// The same read back; no driver and no device is needed. Failed with what the library misses in it.
Result<cudnn::CudnnDescriptor> cudnn_described_device(const std::string& json);

// How the library is asked.
struct CudnnAsked {
  bool channels_last = false;    // images and weights as NHWC and [OC, KH, KW, IC]
  DType bias = DType::kFloat32;  // of the bias's elements
  DType out = DType::kFloat32;   // of out's
  bool epilogue = true;          // false: the convolution alone
};

// One way to run a graph.
class CudnnPlan {
 public:
  struct Operands {
    cuda::DevicePtr data = 0, weight = 0, bias = 0, residual = 0, out = 0;  // 0 where the graph has none
    cuda::DevicePtr workspace = 0;
  };
  int64_t engine = 0;
  std::vector<std::pair<int, int64_t>> knobs;  // cudnnBackendKnobType_t and the value
  bool on_tensor_cores = false, by_winograd = false, by_fft = false;
  size_t workspace_bytes = 0;
  std::string origin;  // "heuristic A #3", "fallback #1", "engine's defaults"

  // Queues it on the handle's stream. Failed with what the library says.
  Status run(const Operands& operands);

 private:
  friend class CudnnGraph;
  // Operands as the library wants them, kept: the same ones come again, a set of them after the other.
  struct Pack {
    Operands operands;
    cudnn::CudnnDescriptor descriptor;
  };
  Result<void*> pack_of(const Operands& operands);
  void* handle_ = nullptr;
  bool has_bias_ = false, has_residual_ = false;
  cudnn::CudnnDescriptor plan_;
  std::vector<Pack> packs_;
};

class CudnnGraph {
 public:
  static constexpr int64_t kMostWorkspaceBytes = int64_t{1} << 30;

  // Failed: the library does not take such a graph. `w` is one that cudnn_serves(); `device` outlives this.
  static Result<std::unique_ptr<CudnnGraph>> describe(const CudnnDevice& device, const Conv2dWorkload& w,
                                                      const CudnnAsked& asked);

  // The next plan, each engine with the same knobs once. Nothing: there is none more, or `over` became true.
  // Failed: the library offers one and does not make it.
  std::optional<Result<std::unique_ptr<CudnnPlan>>> next(const std::function<bool()>& over);

  // How many configs there were from each: heuristics A, B, the fallback; engines that serve it by their
  // defaults.
  struct Offered {
    int64_t mode_a = 0, mode_b = 0, fallback = 0, engines = 0;
    int64_t left_out = 0;  // compute otherwise than the task allows
  };
  const Offered& offered() const { return offered_; }

 private:
  struct Config {
    cudnn::CudnnDescriptor descriptor;
    std::string origin;
  };
  explicit CudnnGraph(const CudnnDevice& device) : device_(device) {}
  Status describe(const Conv2dWorkload& w, const CudnnAsked& asked);
  Result<cudnn::CudnnDescriptor*> keep(Result<cudnn::CudnnDescriptor> made);
  Result<cudnn::CudnnDescriptor*> tensor(int64_t id, const std::vector<int64_t>& shape, DType type,
                                         bool is_virtual);
  Status add_convolution(const Conv2dWorkload& w, const cudnn::CudnnDescriptor& data,
                         const cudnn::CudnnDescriptor& weight, const cudnn::CudnnDescriptor& out);
  Status add_pointwise(int mode, const cudnn::CudnnDescriptor& x, const cudnn::CudnnDescriptor* b,
                       const cudnn::CudnnDescriptor& y);
  void ask_heuristic(int mode, const std::string& name, int64_t& count);
  std::optional<Config> next_config();
  Result<std::unique_ptr<CudnnPlan>> plan_of(Config config);

  const CudnnDevice device_;
  bool channels_last_ = false, may_use_tensor_cores_ = false, has_bias_ = false, has_residual_ = false;
  std::vector<cudnn::CudnnDescriptor> kept_;  // what the graph is made of
  std::vector<void*> operations_;
  cudnn::CudnnDescriptor graph_;
  std::vector<Config> queue_;  // offered, last one first
  int stage_ = 0;              // of the heuristics that were asked
  int64_t engine_ = 0;         // the next one whose defaults are tried
  std::set<std::pair<int64_t, std::vector<std::pair<int, int64_t>>>> given_;
  Offered offered_;
};

// "tile size" of cudnnBackendKnobType_t 2; "knob 77" of one that was not known when this was written.
std::string cudnn_knob_name(int knob);

}  // namespace tuner
