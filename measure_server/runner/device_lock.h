// DeviceLock: the cores and the GPU that a timed run uses, for one process of this host at a time. Two timed
// runs on one core make each other 1.3 times slower at the median and 4 times at worst.
//
// Each core and GPU is a file in /tmp/tuner-locks (TUNER_LOCK_DIR names another folder), which all users
// share. Locks are taken in one order, cores first, so nobody waits in a circle. Beside each lock stands a
// turnstile: who waits holds it, so who has just released the lock comes after him. Two processes take turns;
// of many, nobody is passed by the same one twice. The kernel frees all of it when the process ends.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler_core/base/status.h"
#include "measure_server/runner/file_lock.h"

namespace tuner {

// What a run has for itself. `cpus` empty: it is not pinned, so every CPU this process may use.
struct Devices {
  std::vector<int> cpus;
  std::string gpu;  // its uuid; empty: none
};

// This process's view of the locks. Used by one thread at a time.
class DeviceLocks {
 public:
  // Never fails: where the folder cannot be used or has no locks, `unusable()` says why, and every lock is
  // had at once.
  explicit DeviceLocks(std::string folder = default_folder());
  static std::string default_folder();
  const std::string& unusable() const { return unusable_; }

  // Holds the locks until it is destroyed. It must not outlive the DeviceLocks.
  class Held {
   public:
    Held() = default;
    ~Held();
    Held(Held&& other) noexcept : locks_(std::move(other.locks_)) { other.locks_.clear(); }
    Held& operator=(Held&& other) noexcept {
      locks_.swap(other.locks_);
      return *this;
    }

   private:
    friend class DeviceLocks;
    std::vector<FileLock*> locks_;
  };
  // Waits until all are free. `give_up` is asked every few milliseconds: Aborted once it is true. Unavailable
  // after `limit`: the message begins with kDeviceBusy and names the process that has the device. A wait of
  // more than kSayAfter is told to `say`, once, with who has the device.
  //
  // A process that is stopped (SIGSTOP) for kStoppedFor, while nothing that it started uses a CPU, is not
  // waited for any more: `say` is told, and those who come after it take turns by a second lock, which from
  // then on everybody takes.
  Result<Held> take(const Devices& devices, std::chrono::milliseconds limit,
                    const std::function<bool()>& give_up = {},
                    const std::function<void(const std::string&)>& say = {});
  static constexpr std::chrono::seconds kSayAfter{3};
  static constexpr std::chrono::seconds kStoppedFor{10};

 private:
  struct Device {
    FileLock lock, turnstile;
    FileLock beside;    // in place of the lock while its holder is stopped
    pid_t stopped = 0;  // the holder that this process does not wait for any more
  };
  struct Wait;  // of one take()
  enum class Got { kLock, kStoppedHolder };
  Result<Device*> device(const std::string& name);
  Result<Got> wait_for(FileLock& lock, const std::string& name, pid_t& stopped, Wait& wait) const;
  Status take_one(Device& device, const std::string& name, Wait& wait, std::vector<FileLock*>& held);

  std::string folder_, unusable_;
  std::map<std::string, Device> devices_;
};

inline constexpr char kDeviceBusy[] = "device busy: ";
// True if the status says that a device was not free in time: a fact of this host, not of the run.
bool is_device_busy(const Status& status);

}  // namespace tuner
