# Debian packages, made by deploy/package.sh (cpack in a build folder):
#
#   tuner           the command, its manual, and completion for bash, zsh and fish; needs tuner-worker of the same version
#   tuner-worker    measure_server, measure_runner and runner, beside each other and beside tuner, which looks for them there
#   tuner-runtime   libtuner_runtime.so with its header and CMake package, for applications
#   tuner-client    libtuner_client.so with its header, for programs that talk to a daemon; its CMake package is in tuner-runtime
#   tuner-onnxruntime   libtuner_onnxruntime.so, an execution provider that ONNX Runtime loads
#
# The component "development" (own templates) is no package: its libraries have no stable ABI.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tuner)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "tuner maintainers <maintainers@users.noreply.a-seed-f2ceae2b.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL tuner worker runtime client onnxruntime)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # libraries by dpkg-shlibdeps; LLVM 22 comes from bookworm-security
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(full_version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(CPACK_DEBIAN_TUNER_PACKAGE_NAME tuner)
set(CPACK_DEBIAN_TUNER_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TUNER_PACKAGE_DEPENDS "tuner-worker (= ${full_version})")
set(CPACK_DEBIAN_TUNER_PACKAGE_SUGGESTS "bash-completion, tuner-runtime")
set(CPACK_DEBIAN_TUNER_DESCRIPTION "finds the fastest configuration of operator kernels
 For each operator shape (products, convolutions, pooling, softmax, ...) and
 each machine, candidates of hand-written schedules are compiled, run in
 processes of their own, checked for correct results and timed; a model-guided
 search decides what to try next. A tuned kernel comes out as a library with a
 C header. This package has the command and the daemon.")
set(CPACK_DEBIAN_WORKER_PACKAGE_NAME tuner-worker)
set(CPACK_DEBIAN_WORKER_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_WORKER_DESCRIPTION "measurement worker of tuner
 Takes candidates from a daemon of tuner, or from the tuner command on the same
 machine, builds them, checks their results and times them, each in a process
 of its own. NVIDIA GPUs are used where driver and NVRTC are found at run time.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME tuner-runtime)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/triggers)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "tuned kernels inside an application
 A library with a C API that opens a database or a bundle of tuner, finds the
 kernel for a workload, compiles or loads it, and runs it from any thread. With
 the header and a CMake package.")
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME tuner-client)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS "tuner-runtime (= ${full_version})")
set(CPACK_DEBIAN_CLIENT_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/triggers)
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "a daemon of tuner from a C++ program
 A library with one header: submit jobs to a daemon, follow them, ask what was
 tuned. Every call has a deadline; calls that break are made again.")
set(CPACK_DEBIAN_ONNXRUNTIME_PACKAGE_NAME tuner-onnxruntime)
set(CPACK_DEBIAN_ONNXRUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_ONNXRUNTIME_PACKAGE_RECOMMENDS "tuner (= ${full_version})")
set(CPACK_DEBIAN_ONNXRUNTIME_DESCRIPTION "execution provider of tuner for ONNX Runtime
 A plugin for ONNX Runtime 1.24 or later. Parts of a model that tuner can
 compile run as compiled libraries; ONNX Runtime runs the rest. Compiling needs
 the package tuner, running a ready cache does not.")
include(CPack)
