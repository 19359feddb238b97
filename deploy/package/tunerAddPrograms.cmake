# tuner_add_programs(NAME source... [RUNNER source...]): the programs of tuner with your templates and back ends in them,
# together in one folder:
#
#   ${CMAKE_BINARY_DIR}/bin/tuner, measure_server, runner     use them as you use those of tuner
#   ${CMAKE_BINARY_DIR}/lib/libtuner_runtime.so               for applications that run kernels of your templates
#
# The sources register their templates (tuner::RegisterTemplate, templates/schedule_template.h) and back ends
# (tuner::RegisterTargetFamily, tuner::RegisterBackend, compiler_core/backend.h). They are compiled into each program but the
# runner, as the object library NAME_sources: nothing is loaded at run time, so there is no ABI that could differ between the
# daemon, the worker that builds, and you. Sources after RUNNER are for the runner: the loaders of your back ends' binaries
# (tuner::RegisterKernelLoader, compiler_core/runtime/kernel_loader.h).
set(tuner_PACKAGE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(tuner_add_programs name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "RUNNER")
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tuner_add_programs(${name}): expected the sources of your templates after the name")
  endif()
  add_library(${name}_sources OBJECT ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${name}_sources PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name}_sources PUBLIC tuner::templates tuner::core_backend tuner::core_lower tuner::core_runtime)

  set(bin ${CMAKE_BINARY_DIR}/bin)
  foreach(program tuner measure_server)
    add_executable(${name}_${program} ${tuner_PACKAGE_DIR}/${program}_program.cpp)
    set_target_properties(${name}_${program} PROPERTIES OUTPUT_NAME ${program} RUNTIME_OUTPUT_DIRECTORY ${bin})
    target_link_libraries(${name}_${program} PRIVATE ${name}_sources tuner::${program}_main)
  endforeach()
  # The worker looks for the runner beside itself. It knows no templates.
  if(arg_RUNNER)
    add_executable(${name}_runner ${tuner_PACKAGE_DIR}/runner_program.cpp ${arg_RUNNER})
    set_target_properties(${name}_runner PROPERTIES OUTPUT_NAME runner RUNTIME_OUTPUT_DIRECTORY ${bin})
    # As tuner's own runner (measure_server/runner): libm by name, because kernels expect its functions.
    target_link_options(${name}_runner PRIVATE -static-libstdc++ -static-libgcc LINKER:--no-as-needed LINKER:--gc-sections)
    target_link_libraries(${name}_runner PRIVATE tuner::runner_parts)
    add_dependencies(${name}_measure_server ${name}_runner)
  else()
    add_custom_command(TARGET ${name}_measure_server POST_BUILD
                       COMMAND ${CMAKE_COMMAND} -E copy_if_different ${tuner_RUNNER} ${bin}/runner)
  endif()

  add_library(${name}_runtime SHARED $<TARGET_OBJECTS:${name}_sources>)
  set_target_properties(${name}_runtime PROPERTIES OUTPUT_NAME tuner_runtime SOVERSION 0 LINKER_LANGUAGE CXX
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_link_libraries(${name}_runtime PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,tuner::runtime_parts>
                        tuner::${tuner_RUNTIME_BUILDER} tuner::backends)  # the latter if sources register one
  target_link_options(${name}_runtime PRIVATE LINKER:--version-script=${tuner_PACKAGE_DIR}/exports.map
                      LINKER:--gc-sections LINKER:--as-needed LINKER:-z,nodelete)
endfunction()
