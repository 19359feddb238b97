#include "measure_server/runner/device_lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "compiler_core/base/cpu_affinity.h"

namespace tuner {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{2};

// In the order in which everybody takes them.
std::vector<std::string> names_of(Devices devices) {
  if (devices.cpus.empty()) devices.cpus = usable_cpus();
  std::sort(devices.cpus.begin(), devices.cpus.end());
  devices.cpus.erase(std::unique(devices.cpus.begin(), devices.cpus.end()), devices.cpus.end());
  std::vector<std::string> names;
  for (const int cpu : devices.cpus) names.push_back(str("cpu-", cpu));
  if (devices.gpu.empty()) return names;
  for (char& c : devices.gpu)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  names.push_back("gpu-" + devices.gpu);
  return names;
}

// A folder that all users of this host may add to, and nobody can replace.
Status make_shared_folder(const std::string& folder) {
  constexpr mode_t kForAll = 01777;
  if (::mkdir(folder.c_str(), kForAll) == 0) (void)::chmod(folder.c_str(), kForAll);  // whatever the umask
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return failed("lock folder ", folder, ": ", std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return failed("lock folder ", folder, ": is no folder");
  return Status::ok();
}

}  // namespace

bool is_device_busy(const Status& status) {
  return status.code() == StatusCode::kUnavailable && status.message().starts_with(kDeviceBusy);
}

std::string DeviceLocks::default_folder() {
  const char* given = std::getenv("TUNER_LOCK_DIR");
  return given != nullptr && *given != '\0' ? given : "/tmp/tuner-locks";
}

DeviceLocks::DeviceLocks(std::string folder) : folder_(std::move(folder)) {
  if (const Status made = make_shared_folder(folder_); !made.is_ok()) unusable_ = made.message();
}

Result<DeviceLocks::Device*> DeviceLocks::device(const std::string& name) {
  const auto known = devices_.find(name);
  // Somebody who cleans /tmp may have removed the files: then others lock new ones.
  if (known != devices_.end() && known->second.lock.is_current() && known->second.turnstile.is_current())
    return &known->second;
  ASSIGN_OR_RETURN(FileLock lock, FileLock::open(str(folder_, "/", name, ".lock"), 0666));
  ASSIGN_OR_RETURN(FileLock turnstile, FileLock::open(str(folder_, "/", name, ".turnstile"), 0666));
  Device& device = devices_[name];
  device.lock = std::move(lock);
  device.turnstile = std::move(turnstile);
  return &device;
}

DeviceLocks::Held::~Held() {
  for (FileLock* lock : locks_) lock->unlock();
}

struct DeviceLocks::Wait {
  steady_clock::time_point end;
  milliseconds limit;
  const std::function<bool()>& give_up;
  const std::function<void(const std::string&)>& say;
  bool said = false;
};

// `stopped`: the holder that was waited for long enough, also in earlier calls; 0: none.
Result<DeviceLocks::Got> DeviceLocks::wait_for(FileLock& lock, const std::string& name, pid_t& stopped,
                                               Wait& wait) const {
  constexpr milliseconds kLookAtHolder{250};
  const auto begin = steady_clock::now();
  auto look = stopped > 0 ? begin : begin + kLookAtHolder;
  auto runs_until = begin;  // when the holder, or what it started, was last seen to do something
  int64_t ticks = -1;
  for (;;) {
    ASSIGN_OR_RETURN(const bool locked, lock.try_lock());
    if (locked) break;
    if (wait.give_up && wait.give_up())
      return Status(StatusCode::kAborted, str("waiting for ", name, " was given up"));
    const auto now = steady_clock::now();
    if (now >= wait.end)
      return unavailable(kDeviceBusy, process_text(lock.holder()), " has ", name, "; waited ",
                         static_cast<double>(wait.limit.count()) / 1000, " s for it");
    if (now >= look) {
      look = now + kLookAtHolder;
      const pid_t holder = lock.holder();
      const int64_t used = is_stopped(holder) ? ticks_of_tree(holder) : -1;
      const bool still = used >= 0 && used == std::exchange(ticks, used);
      if (!still) runs_until = now;
      if (still && (holder == stopped || now - runs_until >= kStoppedFor)) {
        if (holder != std::exchange(stopped, holder) && wait.say)
          wait.say(str(process_text(holder), " has ", name,
                       " and is stopped; going on without it. Continue it (kill -CONT ", holder,
                       ") or end it"));
        return Got::kStoppedHolder;
      }
      if (now - begin >= kSayAfter && !std::exchange(wait.said, true) && wait.say)
        wait.say(str(process_text(holder), " has ", name, "; waiting for it, up to ",
                     wait.limit.count() / 1000, " s"));
    }
    std::this_thread::sleep_for(kLook);
  }
  stopped = 0;
  return Got::kLock;
}

// Adds the locks that are held now to `held`: the device's own, and that of those who went on beside a
// stopped holder, as long as there is one. Who holds the first alone would run beside them.
Status DeviceLocks::take_one(Device& device, const std::string& name, Wait& wait,
                             std::vector<FileLock*>& held) {
  pid_t nobody = device.stopped;
  ASSIGN_OR_RETURN(const Got turn, wait_for(device.turnstile, name, nobody, wait));
  const Result<Got> got = wait_for(device.lock, name, device.stopped, wait);
  if (turn == Got::kLock) device.turnstile.unlock();
  if (!got.is_ok()) return got.status();
  if (*got == Got::kLock) held.push_back(&device.lock);
  const std::string path = str(folder_, "/", name, ".beside");
  if (*got == Got::kLock && ::access(path.c_str(), F_OK) != 0) return Status::ok();
  if (!device.beside.is_current()) {
    ASSIGN_OR_RETURN(device.beside, FileLock::open(path, 0666));
  }
  nobody = 0;
  ASSIGN_OR_RETURN(const Got beside, wait_for(device.beside, name, nobody, wait));
  if (beside == Got::kStoppedHolder)
    return unavailable(kDeviceBusy, process_text(device.beside.holder()), " has ", name,
                       " and is stopped, as is another one");
  held.push_back(&device.beside);
  return Status::ok();
}

Result<DeviceLocks::Held> DeviceLocks::take(const Devices& devices, milliseconds limit,
                                            const std::function<bool()>& give_up,
                                            const std::function<void(const std::string&)>& say) {
  Held held;
  if (!unusable_.empty()) return held;
  Wait wait{.end = steady_clock::now() + limit, .limit = limit, .give_up = give_up, .say = say};
  for (const std::string& name : names_of(devices)) {
    const Result<Device*> found = device(name);
    if (!found.is_ok()) {
      unusable_ = found.message();
      return Held();
    }
    const Status taken = take_one(**found, name, wait, held.locks_);
    if (taken.code() == StatusCode::kFailed) {  // no locks there at all
      unusable_ = taken.message();
      return Held();
    }
    RETURN_IF_ERROR(taken);
  }
  return held;
}

}  // namespace tuner
