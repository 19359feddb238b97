// Tells where this user's caches are, and how much memory and disk is free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler_core/base/status.h"

namespace tuner {

// Returns $XDG_CACHE_HOME/tuner or ~/.cache/tuner; /tmp/tuner-UID/tuner if neither variable is an absolute
// path.
std::string user_cache_folder();
// Returns its folder that all workers of this machine share (measure_server/README.md, "One cache").
std::string shared_cache_folder();

// Returns the bytes that our processes may still take before the system swaps or kills: what the kernel calls
// available, limited by the control groups of this process. INT64_MAX if that cannot be told.
int64_t available_memory();
// Reads "MemAvailable:  123 kB" of /proc/meminfo as bytes; -1 without such a line.
int64_t available_memory_in(std::string_view meminfo);

// What control groups leave: the least of memory.max - memory.current of the group that `self`
// (/proc/self/cgroup, version 2) names and of all groups around it, below `root`. INT64_MAX: no limit.
int64_t memory_left_in_groups(const std::string& root, std::string_view self);

// Returns the bytes free to this user on the disk of `path`, or of its nearest existing parent; INT64_MAX if
// that cannot be told.
int64_t available_disk(const std::string& path);

// Formats bytes for messages: "13.4 GiB", "512 MiB".
std::string bytes_text(int64_t bytes);

}  // namespace tuner
