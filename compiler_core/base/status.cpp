#include "compiler_core/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace tuner {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kInvalidConfig:
      return "invalid_config";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kDeadlineExceeded:
      return "deadline_exceeded";
    case StatusCode::kAborted:
      return "aborted";
    case StatusCode::kFailed:
      return "failed";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

namespace internal {
void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) does not hold%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::abort();
}
}  // namespace internal

}  // namespace tuner
