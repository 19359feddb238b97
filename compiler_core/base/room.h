// Where this user's caches lie, and how much memory and disk there is to take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

// $XDG_CACHE_HOME/tuner, or ~/.cache/tuner; /tmp/tuner-UID/tuner where neither variable is an absolute path.
std::string user_cache_folder();
// In it: what all workers of this machine share (measure_server/README.md, "One cache").
std::string shared_cache_folder();

// Bytes that processes of ours may still take before the system swaps or kills: what the kernel calls
// available, within the limits of the control groups this process is in. INT64_MAX where it cannot be told.
int64_t available_memory();
// "MemAvailable:  123 kB" of /proc/meminfo, in bytes; -1 without such a line.
int64_t available_memory_in(std::string_view meminfo);

// Bytes free to this user on the disk of `path`, or of the nearest folder above that exists; INT64_MAX where
// that cannot be told.
int64_t available_disk(const std::string& path);

// "13.4 GiB", "512 MiB": for messages.
std::string bytes_text(int64_t bytes);

}  // namespace tuner
