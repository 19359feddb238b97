#include "measure_server/runner/device_child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>

#include "measure_server/runner/device_candidate.h"
#include "measure_server/runner/frame.h"

namespace tuner {
namespace {

Deadline reply_deadline() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }
Deadline far() { return std::chrono::steady_clock::now() + std::chrono::hours(24 * 365); }

bool say(int socket, const DeviceMessage& message) {
  return write_frame(socket, to_json(message), reply_deadline()).is_ok();
}

// Ends with the runner, leaves no core dump. Threads of the driver come later and inherit this.
void settle(const char* name) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // a kernel that cannot be loaded is told when it is loaded
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, name);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(SIGPIPE, SIG_IGN);
}

DeviceInfo info_of(const CudaDevice& d) {
  DeviceInfo out;
  out.family = "cuda";
  out.ordinal = d.ordinal;
  out.name = d.name;
  out.arch = d.arch;
  out.uuid = d.uuid;
  out.multiprocessors = d.multiprocessors;
  out.driver_version = d.driver_version;
  out.memory_bytes = d.memory_bytes;
  out.l2_bytes = d.l2_bytes;
  out.peak_gflops = d.fp32_peak_gflops;
  out.half_peak_gflops = d.half_peak_gflops;
  out.byte_peak_gflops = d.byte_peak_gflops;
  out.fingerprint = fingerprint(d);
  return out;
}

// Carries out one order after the other on one bench.
class Desk {
 public:
  Desk(DeviceBench& bench, int socket) : bench_(bench), socket_(socket) {}

  DeviceMessage done(const DeviceOrder& order) {
    DeviceMessage out{.kind = DeviceMessage::Kind::kDone};
    switch (order.kind) {
      case DeviceOrder::Kind::kRun:
        out.reply = run_on_device(bench_, order.request, entered_, out.poisoned);
        break;
      case DeviceOrder::Kind::kTurn: {
        std::unique_ptr<DeviceRacer>& racer = racers_[order.racer];
        if (racer == nullptr) racer = race_on_device(bench_, order.request, entered_);
        out.reply = racer->take_turn(order.samples, out.pulses_ns);
        out.poisoned = racer->poisoned();
        // Who leaves makes room; in a poisoned context nothing can be given back.
        if (out.reply.outcome != Outcome::kOk && !out.poisoned) racers_.erase(order.racer);
        break;
      }
      case DeviceOrder::Kind::kFinish: {
        const auto racer = racers_.find(order.racer);
        if (racer == racers_.end()) {
          out.reply.error = str("candidate ", order.racer, " has had no turn");
          break;
        }
        out.reply = racer->second->finish();
        out.poisoned = racer->second->poisoned();
        if (!out.poisoned) racers_.erase(racer);
        break;
      }
      case DeviceOrder::Kind::kCopy:
        copy(out);
    }
    return out;
  }

 private:
  void copy(DeviceMessage& out) {
    const cuda::CallStatus status = bench_.sentinel(out.reply.sentinel_before_ns);
    if (status) {
      out.reply.outcome = Outcome::kOk;
      return;
    }
    out.poisoned = out.reply.device_sick = true;
    out.reply.error = str("device: beside the turns of a race: ", status.message());
  }

  DeviceBench& bench_;
  const int socket_;
  const std::function<void(Phase)> entered_ = [this](Phase phase) {
    (void)say(socket_, {.kind = DeviceMessage::Kind::kPhase, .phase = phase});
  };
  std::map<size_t, std::unique_ptr<DeviceRacer>> racers_;
};

}  // namespace

int device_list(int socket) {
  settle("device-list");
  ProbeReply reply;
  const Result<std::vector<CudaDevice>> devices = cuda_devices();
  if (devices.is_ok())
    for (const CudaDevice& d : *devices) reply.devices.push_back(info_of(d));
  else
    reply.no_device = devices.message();
  return write_frame(socket, to_json(reply), reply_deadline()).is_ok() ? 0 : 1;
}

int device_child(int socket, int ordinal) {
  settle("device-child");
  Result<std::unique_ptr<DeviceBench>> bench = DeviceBench::open(ordinal);
  if (!bench.is_ok()) {
    (void)say(socket, {.kind = DeviceMessage::Kind::kFailed, .error = bench.message()});
    return 1;
  }
  if (!say(socket, {.kind = DeviceMessage::Kind::kReady})) return 1;
  Desk desk(**bench, socket);
  for (;;) {
    const Result<std::string> text = read_frame(socket, far());
    if (!text.is_ok()) return 0;
    const Result<DeviceOrder> order = parse_device_order(*text);
    DeviceMessage done{.kind = DeviceMessage::Kind::kDone};
    if (order.is_ok())
      done = desk.done(*order);
    else
      done.reply.error = order.message();
    if (!say(socket, done)) return 1;
    // Without giving anything back: in a poisoned context that may hang.
    if (done.poisoned) _exit(0);
  }
}

}  // namespace tuner
