// One task of a pack on a device: its kernel loaded, its operands there, its reference at hand. Whatever can
// compute the task, ours or a peer, is called on the same operands and held against the same reference.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure_server/runner/device_candidate.h"
#include "measure_server/runner/device_kernel.h"
#include "measure_server/runner/device_operands.h"
#include "measure_server/runner/pack_file.h"
#include "measure_server/runner/reference_file.h"
#include "templates/workload/workload.h"

namespace tuner {

// A driver's answer as a Status. What leaves the device usable (out of memory, a launch that is refused, work
// that cannot be recorded) is Failed; everything else is Unavailable.
Status driver_status(const cuda::CallStatus& status);

// What a peer leaves in out, where that is not the whole answer. The rest is done on the host before the
// comparison.
struct PeerAnswer {
  bool bare = false;  // a product or convolution without its bias, residual and activation
  // Elements are of this type, as many as out has, from its start on; nothing: of out's type.
  std::optional<DType> written;
  std::vector<double> column_terms;  // of each column of each product, to be added to its sums; empty: none
  // By how much the bias that the peer added, rounded to out's type, is more than the task's, for each
  // channel; empty: it added the task's own.
  std::vector<double> bias_errors;
  bool channels_last = false;  // an image lies as NHWC, where the task says NCHW

  bool is_whole() const {
    return !bare && !written && column_terms.empty() && bias_errors.empty() && !channels_last;
  }
};

class DeviceCase {
 public:
  // kRotate: as many sets of operands as are together over three times as large as L2; else one. Failed: this
  // task cannot be run here (a kernel for a CPU or for another GPU, too little memory). `bench` and `pack`
  // outlive this.
  static Result<std::unique_ptr<DeviceCase>> open(DeviceBench& bench, const PackFile& pack, size_t task,
                                                  size_t candidate, Caches caches);

  const Workload& workload() const { return workload_; }
  const std::string& digest() const { return artifact_.manifest.digest; }
  int sets() const { return operands_.sets(); }
  // Of "a", "out", ...: CHECKs that there is such an argument.
  cuda::DevicePtr address(int set, std::string_view arg) const {
    return operands_.address(set, index_of(arg));
  }

  // Queues one call of our kernel.
  Status call(int set) { return driver_status(kernel_.call(set, bench_.stream())); }

  // Runs `call` once on the first set with poisoned outputs and compares: the largest error, in tolerances.
  // Failed, naming the first wrong element or the operand beside which something was written. What a peer
  // rounds to 16 bits before the rest is done here may be off by that rounding, too.
  Result<double> check(const std::function<Status(int set)>& call, const PeerAnswer& answer = {});

  // Of the bytes of all outputs of the first set, as the latest call left them.
  Result<std::string> output_sha256() const;

  // Failed: more follows the product or convolution than check() can put on a bare one (bias, residual,
  // relu).
  Status can_finish() const;

  // The numbers of an operand of the first set.
  Result<std::vector<double>> values_of(std::string_view arg) const;
  // Memory with these bytes once for each set, at multiples of `stride`: an operand stored as a peer wants
  // it.
  struct OwnOperand {
    cuda::DeviceMemory memory;
    int64_t stride = 0;
    cuda::DevicePtr address(int set) const { return memory.address() + set * stride; }
  };
  Result<std::shared_ptr<OwnOperand>> upload_own(const std::string& bytes) const;

 private:
  explicit DeviceCase(DeviceBench& bench) : bench_(bench) {}
  Status load(const PackFile& pack, size_t task, size_t candidate);
  Status read_references(const PackFile& pack, size_t task);
  Status upload_inputs(const PackTask& task);
  Result<CheckResult> check_finished(size_t arg, const std::string& bytes, const PeerAnswer& answer) const;
  Status finish(std::vector<double>& out) const;
  void take_back(const std::vector<double>& bias_errors, std::vector<double>& out) const;
  int index_of(std::string_view arg) const;

  DeviceBench& bench_;
  Workload workload_;
  Artifact artifact_;
  CheckSpec spec_;
  std::vector<std::string> reference_bytes_;  // what references_ looks into
  std::vector<ReferenceView> references_;     // by argument; empty of inputs
  DeviceKernel kernel_;
  DeviceOperands operands_;
};

}  // namespace tuner
