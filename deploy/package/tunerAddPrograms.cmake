# tuner_add_programs(NAME source...): the programs of tuner with your templates in them, together in one folder:
#
#   ${CMAKE_BINARY_DIR}/bin/tuner, measure_server, runner     use them as you use those of tuner
#   ${CMAKE_BINARY_DIR}/lib/libtuner_runtime.so               for applications that run kernels of your templates
#
# The sources register their templates (tuner::RegisterTemplate, templates/schedule_template.h). They are compiled
# into each program: nothing is loaded at run time, so there is no ABI that could differ between the daemon, the
# worker that builds, and you.
set(tuner_PACKAGE_DIR ${CMAKE_CURRENT_LIST_DIR})

function(tuner_add_programs name)
  if(NOT ARGN)
    message(FATAL_ERROR "tuner_add_programs(${name}): expected the sources of your templates after the name")
  endif()
  add_library(${name}_templates OBJECT ${ARGN})
  set_target_properties(${name}_templates PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name}_templates PUBLIC tuner::templates)

  set(bin ${CMAKE_BINARY_DIR}/bin)
  foreach(program tuner measure_server)
    add_executable(${name}_${program} ${tuner_PACKAGE_DIR}/${program}_program.cpp)
    set_target_properties(${name}_${program} PROPERTIES OUTPUT_NAME ${program} RUNTIME_OUTPUT_DIRECTORY ${bin})
    target_link_libraries(${name}_${program} PRIVATE ${name}_templates tuner::${program}_main)
  endforeach()
  # The worker looks for the runner beside itself. It knows no templates.
  add_custom_command(TARGET ${name}_measure_server POST_BUILD
                     COMMAND ${CMAKE_COMMAND} -E copy_if_different ${tuner_RUNNER} ${bin}/runner)

  add_library(${name}_runtime SHARED $<TARGET_OBJECTS:${name}_templates>)
  set_target_properties(${name}_runtime PROPERTIES OUTPUT_NAME tuner_runtime SOVERSION 0 LINKER_LANGUAGE CXX
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_link_libraries(${name}_runtime PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,tuner::runtime_parts>
                        tuner::${tuner_RUNTIME_BUILDER})
  target_link_options(${name}_runtime PRIVATE LINKER:--version-script=${tuner_PACKAGE_DIR}/exports.map
                      LINKER:--gc-sections LINKER:--as-needed LINKER:-z,nodelete)
endfunction()
