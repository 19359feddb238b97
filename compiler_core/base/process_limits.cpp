#include "compiler_core/base/process_limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace tuner {
namespace {

// What there is after the soft limit was raised; RLIM_INFINITY: no limit.
rlim_t raised(int resource, int64_t need) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return RLIM_INFINITY;
  const auto wanted = static_cast<rlim_t>(need);
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < wanted) {
    rlimit more = limit;
    more.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_max);
    if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &more) == 0) limit = more;
  }
  return limit.rlim_cur;
}

std::string gib(rlim_t bytes) {
  const auto hundredths = static_cast<int64_t>(static_cast<double>(bytes) / (1 << 30) * 100);
  return str(hundredths / 100, ".", hundredths / 10 % 10, hundredths % 10, " GiB");
}

}  // namespace

Status check_process_limits(const std::string& who, const ProcessNeeds& needs) {
  if (const rlim_t files = raised(RLIMIT_NOFILE, needs.files);
      files != RLIM_INFINITY && files < static_cast<rlim_t>(needs.files))
    return failed(who, ": may open ", files, " files at once, and needs ", needs.files,
                  ": raise the limit (ulimit -n ", needs.files, ")");
  if (const rlim_t bytes = raised(RLIMIT_AS, needs.address_space);
      bytes != RLIM_INFINITY && bytes < static_cast<rlim_t>(needs.address_space))
    return failed(who, ": may use ", gib(bytes), " of addresses, and needs ",
                  gib(static_cast<rlim_t>(needs.address_space)),
                  " beside the operands: raise the limit (ulimit -v ", needs.address_space >> 10,
                  "), or ask the batch system for more memory");
  return Status::ok();
}

}  // namespace tuner
