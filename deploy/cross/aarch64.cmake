# Toolchain: programs for 64-bit ARM Linux, made on another host by Debian's cross compiler from a sysroot of arm64 packages.
# deploy/cross.sh makes the sysroot and names it: -DTUNER_SYSROOT=FOLDER.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Projects that try_compile() makes read this file, too.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TUNER_SYSROOT)
if(NOT TUNER_SYSROOT)
  message(FATAL_ERROR "TUNER_SYSROOT names no folder; deploy/cross.sh aarch64 makes one")
endif()
set(CMAKE_SYSROOT ${TUNER_SYSROOT})

# Libraries and headers are those of the sysroot, programs (protoc, grpc_cpp_plugin) those of this host.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${TUNER_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${TUNER_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${TUNER_SYSROOT}/usr/share/pkgconfig)
