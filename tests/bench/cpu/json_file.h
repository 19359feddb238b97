// What the benchmarks keep: a document in a file, whole or not at all (temporary file, rename).
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler_core/base/status.h"

namespace tuner {

// InvalidArgument: it cannot be written.
template <class Json>
Status write_json_file(const Json& document, const std::string& path) {
  const std::string temporary = path + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << document.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0)
    return invalid_argument(path, ": cannot be written: ", std::strerror(errno));
  return Status::ok();
}

}  // namespace tuner
