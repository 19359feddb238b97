// What every function of the C API does with errors: a code for the caller, a line for tuner_last_error(), no
// exception.
#pragma once

#include <exception>
#include <string>

#include "compiler_core/base/status.h"
#include "deploy/runtime/tuner_runtime_api.h"

namespace tuner::runtime {

// This thread's tuner_last_error() from now on.
void keep_error(std::string message);
tuner_code code_of(const Status& status);

// Runs `body`, a Status, and turns what it says or throws into a code.
template <class Body>
tuner_code guarded(const Body& body) noexcept {
  try {
    const Status status = body();
    if (!status.is_ok()) keep_error(status.message());
    return code_of(status);
  } catch (const std::exception& error) {
    keep_error(str("out of memory, threads or the like: ", error.what()));
  } catch (...) {
    keep_error("an unknown exception");
  }
  return TUNER_FAILED;
}

}  // namespace tuner::runtime
