#include "tuner/bundle/bundle_package.h"

#include "compiler_core/base/status.h"

namespace tuner {
namespace {

constexpr std::string_view kCmakeHead = R"(# @ABOUT@
# Written by `@COMMAND@`. In a CMakeLists.txt:
#
#   find_package(@NAME@ REQUIRED)                            # cmake -DCMAKE_PREFIX_PATH=this folder's prefix
#   target_link_libraries(app PRIVATE @NAME@::@NAME@)        # or @NAME@::static
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(@PROCESSORS@)$")
  set(@NAME@_FOUND FALSE)
  set(@NAME@_NOT_FOUND_MESSAGE "@NAME@ is built for @PROCESSOR@, not for ${CMAKE_SYSTEM_PROCESSOR}")
  return()
endif()
include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(_@NAME@_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
)";

constexpr std::string_view kCmakeShared = R"(if(NOT TARGET @NAME@::@NAME@)
  add_library(@NAME@::@NAME@ SHARED IMPORTED)
  set_target_properties(@NAME@::@NAME@ PROPERTIES
    IMPORTED_LOCATION "${_@NAME@_prefix}/lib/lib@NAME@.so"
    IMPORTED_SONAME "lib@NAME@.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_@NAME@_prefix}/include"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
)";

constexpr std::string_view kCmakeStatic = R"(if(NOT TARGET @NAME@::@STATIC@)
  add_library(@NAME@::@STATIC@ STATIC IMPORTED)
  set_target_properties(@NAME@::@STATIC@ PROPERTIES
    IMPORTED_LOCATION "${_@NAME@_prefix}/lib/lib@NAME@.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_@NAME@_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads@MATH@")
endif()
)";

constexpr std::string_view kPkgConfig = R"(prefix=${pcfiledir}/../..
includedir=${prefix}/include
libdir=${prefix}/lib

Name: @NAME@
Description: @ABOUT@
Version: 1
Cflags: -I${includedir} -pthread
Libs: -L${libdir} -l@NAME@@LIBM@ -pthread
)";

std::string filled(std::string_view text, const PackageText& p, std::string_view archive_target = "") {
  const std::pair<std::string_view, std::string> values[] = {
      {"@STATIC@", std::string(archive_target)},
      {"@NAME@", p.name},
      {"@ABOUT@", p.about},
      {"@COMMAND@", p.command},
      {"@MATH@", p.math ? ";m" : ""},
      {"@LIBM@", p.math && !p.shared ? " -lm" : ""},  // a shared library asks for it by itself
      {"@PROCESSORS@", p.x86 ? "x86_64|amd64|AMD64" : "aarch64|arm64|ARM64"},
      {"@PROCESSOR@", p.x86 ? "x86_64" : "aarch64"}};
  std::string out(text);
  for (const auto& [mark, value] : values)
    for (size_t at = out.find(mark); at != std::string::npos; at = out.find(mark, at + value.size()))
      out.replace(at, mark.size(), value);
  return out;
}

}  // namespace

std::string cmake_config(const PackageText& package) {
  std::string text = filled(kCmakeHead, package);
  if (package.shared) text += filled(kCmakeShared, package);
  if (package.archive) text += filled(kCmakeStatic, package, "static");
  if (!package.shared) text += filled(kCmakeStatic, package, package.name);
  if (package.weights)
    text += filled("set(@NAME@_WEIGHTS \"${_@NAME@_prefix}/@NAME@.weights\")  # what @NAME@_create() takes\n",
                   package);
  return text + filled("unset(_@NAME@_prefix)\n", package);
}

std::string pkg_config(const PackageText& package) {
  // pkg-config --variable=weights NAME
  return filled(package.weights ? "weights=${pcfiledir}/../../@NAME@.weights\n" : "", package) +
         filled(kPkgConfig, package) + (package.math && package.shared ? "Libs.private: -lm\n" : "");
}

}  // namespace tuner
