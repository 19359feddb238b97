# Dependencies of the runner-only worker, as archives where Debian has them: its programs are copied to boards that have nothing
# of ours, so gRPC and all below it are linked into them. What stays shared is glibc.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
set(CMAKE_SKIP_RPATH ON)

# Debian has no archive of spdlog and fmt; their headers hold all of it.
find_path(SPDLOG_INCLUDE_DIR spdlog/spdlog.h REQUIRED)
add_library(spdlog::spdlog INTERFACE IMPORTED)
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)

# Debian's CMake packages of gRPC and Abseil name shared objects; the archives lie beside them.
get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS imported)
  get_target_property(location ${target} IMPORTED_LOCATION_NONE)
  if(location MATCHES "[.]so[.0-9]*$")
    string(REGEX REPLACE "[.]so[.0-9]*$" ".a" archive "${location}")
    if(EXISTS ${archive})
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE ${archive})
    endif()
  endif()
endforeach()
# RE2 comes by pkg-config, as flags.
find_library(RE2_ARCHIVE re2)
if(RE2_ARCHIVE AND TARGET re2::re2)
  set_target_properties(re2::re2 PROPERTIES INTERFACE_LINK_LIBRARIES ${RE2_ARCHIVE})
endif()
