// A kernel as C for an application: its bytes and its functions. Private to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler_core/backend.h"

namespace tuner {

struct NpuSource {
  std::string header, source;
};

// `name`: of the function; `kernel`: bytes of a kernel file; `about`: lines for people.
NpuSource npu_source(const Manifest& manifest, const std::string& name, std::string_view kernel,
                     const std::string& about);

// tuner_npu.h, which the source includes.
std::string_view npu_library_header();

}  // namespace tuner
