// DeviceRun: a candidate on a device, as timed runs (device_candidate.cpp) and wary ones (device_wary_run.h)
// have it in common. It is loaded beside its operands and called, its answers and inputs are compared, and an
// error of the driver is told to be whose fault it is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "measure_server/runner/device_candidate.h"
#include "measure_server/runner/device_kernel.h"
#include "measure_server/runner/device_operands.h"
#include "measure_server/runner/reference_file.h"

namespace tuner {

class DeviceRun {
 public:
  DeviceRun(DeviceBench& bench, const RunRequest& request, const std::function<void(Phase)>& entered);
  virtual ~DeviceRun() = default;
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  RunReply run();
  bool context_is_ruined() const { return poisoned_; }

 protected:
  // The whole run. Every step returns false when the verdict stands.
  virtual void steps() = 0;

  void begin();
  RunReply answer();  // as far as it is known
  void enter(Phase phase);
  bool verdict(Outcome outcome, const std::string& message);
  bool trouble(const std::string& why);
  // A driver call: whose fault it is when it fails. Most faults of a kernel show at the next call that waits.
  bool sound(const cuda::CallStatus& status);
  bool no_time(double ns, int64_t calls);  // the device's clock stands still

  // --- before the first run ---

  bool prepare();
  bool load();  // the code
  bool make_operands();
  // The bytes of an input: those of `set`, which tells what is not the same in all sets.
  bool input_of(const std::vector<RunRequest::Data>& set, const ArgInfo& a, std::string_view& bytes);
  // By argument; empty: an input.
  bool read_references(const std::vector<RunRequest::Data>& set, std::vector<ReferenceView>& references);

  // --- running ---

  cuda::CallStatus call(int set);
  bool run_once();  // on poisoned outputs
  bool flushed_call(double& ns);

  // --- judging ---

  bool check(const char* when);  // of the outputs
  bool untouched();              // the inputs

  const Manifest& manifest() const { return artifact_.manifest; }

  DeviceBench& bench_;
  const RunRequest r_;
  RunReply reply_;
  double started_ns_ = 0;
  DeviceKernel kernel_;
  DeviceOperands operands_;
  // The inputs that are on the device, and the answers to them.
  struct ShownSet {
    const std::vector<RunRequest::Data>* inputs = nullptr;
    std::vector<ReferenceView> references;
  };
  ShownSet own_;  // that it is timed on
  const ShownSet* shown_ = &own_;

 private:
  int sets_of_operands() const;
  bool pack();
  bool load_checks();
  bool supply(const DeviceOperands::Input& in);
  bool original(const ArgInfo& a, cuda::DevicePtr& from);
  Result<std::string_view> file(const std::vector<RunRequest::Data>& data, const ArgInfo& arg);
  bool for_others(const cuda::CallStatus& status);
  bool loaded(const cuda::CallStatus& status);
  bool launched(const cuda::CallStatus& status);
  bool compare(size_t i, CheckResult& result);
  bool unchanged(size_t i, bool& same);
  bool is_output(size_t i) const { return is_result(manifest().args[i].role); }
  bool is_packed(size_t i) const { return manifest().args[i].role == BufferRole::kPacked; }

  const std::function<void(Phase)> entered_;
  std::string error_;
  bool poisoned_ = false, device_sick_ = false;
  Phase phase_ = Phase::kStarting;
  Artifact artifact_;
  std::vector<std::shared_ptr<SealedFile>> files_;  // kept while they are read
  DeviceChecks* checks_ = nullptr;                  // null: everything is compared here
  std::string original_name_;                       // of the input looked for last
  std::vector<cuda::DeviceMemory> packed_;          // by argument: copies of what was packed
  std::string bytes_;                               // copied back
};

}  // namespace tuner
