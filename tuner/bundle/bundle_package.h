// The bundle as a package of build systems: what find_package() and pkg-config read. Both find the rest
// relative to where they lie, so that the folder can be moved.
#pragma once

#include <string>
#include <string_view>

namespace tuner {

struct PackageText {
  std::string name;
  std::string about;                   // one line
  bool shared = true, archive = true;  // which libraries there are: at least one
  bool x86 = true;                     // else AArch64
};
// NAMEConfig.cmake: targets NAME::NAME (the shared library, or the static one where that is all) and
// NAME::static; refuses other processors.
std::string cmake_config(const PackageText& package);
// NAME.pc.
std::string pkg_config(const PackageText& package);

}  // namespace tuner
