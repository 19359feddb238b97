# compile_together(RESULT NAME source... [ALONE source...]): puts into RESULT the sources that the library NAME is made of.
#
# With TUNER_UNITY these are files below the build folder, each of which includes up to a dozen sources of one folder: headers are
# read and templates instantiated once for all of them, which halves the CPU seconds of a build. So names in anonymous namespaces must
# differ within a folder. Includes are relative to the tree, so that the compiler cache serves every clone of it. Sources behind
# ALONE have options of their own, or names that collide on purpose, and are compiled one by one.
#
# Without TUNER_UNITY (preset dev) RESULT has the sources: an edit compiles one file, and each shows that it includes what it uses.
option(TUNER_UNITY "Compile the sources of a folder together" ON)
set(TUNER_TOGETHER 12)  # at most

function(compile_together result library)
  cmake_parse_arguments(arg "" "" "ALONE" ${ARGN})
  set(sources ${arg_UNPARSED_ARGUMENTS})
  if(NOT TUNER_UNITY)
    set(${result} ${sources} ${arg_ALONE} PARENT_SCOPE)
    return()
  endif()
  set(compiled ${arg_ALONE})
  set(groups)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    cmake_path(GET source PARENT_PATH folder)
    string(REPLACE "/" "_" group ${folder})
    list(APPEND groups ${group})
    list(APPEND group_${group} ${source})
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    list(LENGTH group_${group} count)
    # Parts of about equal length: 13 sources are 7 and 6, not 12 and 1.
    math(EXPR parts "(${count} + ${TUNER_TOGETHER} - 1) / ${TUNER_TOGETHER}")
    foreach(part RANGE 1 ${parts})
      math(EXPR begin "(${part} - 1) * ${count} / ${parts}")
      math(EXPR length "${part} * ${count} / ${parts} - ${begin}")
      list(SUBLIST group_${group} ${begin} ${length} members)
      list(TRANSFORM members REPLACE "(.+)" "#include \"\\1\"\n")
      list(JOIN members "" text)
      set(file ${CMAKE_CURRENT_BINARY_DIR}/together/${library}-${group}-${part}.cpp)
      file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
      list(APPEND compiled ${file})
    endforeach()
  endforeach()
  set(${result} ${compiled} PARENT_SCOPE)
endfunction()
