# Moves an installed prefix. Fails if a text file in it contains the old path.
#
#   cmake -D FROM=<prefix> -D TO=<prefix> -P move.cmake
file(GLOB_RECURSE files "${FROM}/*.cmake" "${FROM}/*.pc" "${FROM}/*.h")
if(NOT files)
  message(FATAL_ERROR "nothing is installed in ${FROM}")
endif()
foreach(file IN LISTS files)
  file(STRINGS "${file}" lines REGEX "${FROM}")
  if(lines)
    message(FATAL_ERROR "${file} names the prefix: ${lines}")
  endif()
endforeach()
file(REMOVE_RECURSE "${TO}")
file(RENAME "${FROM}" "${TO}")
