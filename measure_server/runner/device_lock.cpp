#include "measure_server/runner/device_lock.h"

#include <sys/stat.h>

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

Result<DeviceLocks::Held> DeviceLocks::take(const Devices& devices, milliseconds limit,
                                            const std::function<bool()>& give_up) {
  Held held;
  if (!unusable_.empty()) return held;
  const auto end = steady_clock::now() + limit;
  const auto wait_for = [&](FileLock& lock, const std::string& name) -> Status {
    while (!lock.try_lock()) {
      if (give_up && give_up()) return {StatusCode::kAborted, str("waiting for ", name, " was given up")};
      if (steady_clock::now() >= end)
        return unavailable(kDeviceBusy, process_text(lock.holder()), " has ", name, "; waited ",
                           static_cast<double>(limit.count()) / 1000, " s for it");
      std::this_thread::sleep_for(kLook);
    }
    return Status::ok();
  };
  for (const std::string& name : names_of(devices)) {
    const Result<Device*> found = device(name);
    if (!found.is_ok()) {
      unusable_ = found.message();
      return Held();
    }
    Device& device = **found;
    RETURN_IF_ERROR(wait_for(device.turnstile, name));
    const Status taken = wait_for(device.lock, name);
    device.turnstile.unlock();
    RETURN_IF_ERROR(taken);
    held.locks_.push_back(&device.lock);
  }
  return held;
}

}  // namespace tuner
