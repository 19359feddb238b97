// The package files of a bundle, for find_package() and pkg-config. Both locate the rest relative to
// themselves, so the folder can be moved.
#pragma once

#include <string>
#include <string_view>

namespace tuner {

struct PackageText {
  std::string name;
  std::string about;                   // one line
  bool shared = true, archive = true;  // which libraries exist; at least one
  bool x86 = true;                     // false: AArch64
  bool weights = false;                // beside lib/ lies NAME.weights
  bool math = false;                   // kernels call libm: the static library needs it named
  std::string command = "tuner build";
};
// NAMEConfig.cmake: defines NAME::NAME (the shared library, or the static one if there is no other) and
// NAME::static. It refuses other processors.
std::string cmake_config(const PackageText& package);
// NAME.pc.
std::string pkg_config(const PackageText& package);

}  // namespace tuner
