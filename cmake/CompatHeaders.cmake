# Generates the headers of compat/ that are lines of a table instead of files. compat/headers.txt states
# the form of the table.
include_guard(GLOBAL)

# gradflow_expand_braces(<result> <text> <choice>)
#
# Sets <result> to "<expansion>|<choice>" for each expansion of the braces. <choice> is the choice
# of the last braces: "a/{b,c}.h" gives "a/b.h|b" and "a/c.h|c". A text without braces keeps
# <choice>.
function(gradflow_expand_braces result text choice)
  if(NOT text MATCHES "^([^{]*)[{]([^{}]*)[}](.*)$")
    set(${result} "${text}|${choice}" PARENT_SCOPE)
    return()
  endif()
  set(before "${CMAKE_MATCH_1}")
  set(after "${CMAKE_MATCH_3}")
  string(REPLACE "," ";" choices "${CMAKE_MATCH_2}")
  set(all)
  foreach(choice IN LISTS choices)
    gradflow_expand_braces(expansions "${before}${choice}${after}" "${choice}")
    list(APPEND all ${expansions})
  endforeach()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()

# gradflow_write_forward(<header> <file> <targets> <names> <table>)
#
# Writes a header that includes the targets and names gradflow's classes in namespace tensorflow.
function(gradflow_write_forward header file targets names table)
  set(includes "")
  foreach(target IN LISTS targets)
    if(NOT target MATCHES "^<")
      set(target "\"${target}\"")
    endif()
    string(APPEND includes "#include ${target}  // IWYU pragma: export\n")
  endforeach()
  set(usings "")
  foreach(name IN LISTS names)
    string(APPEND usings "using gradflow::${name};\n")
  endforeach()
  if(usings)
    set(usings "namespace tensorflow {\n\n${usings}\n}  // namespace tensorflow\n\n")
  endif()
  list(JOIN targets ", " targets)
  string(TOUPPER "gradflow_compat_${header}_" guard)
  string(MAKE_C_IDENTIFIER "${guard}" guard)
  file(CONFIGURE OUTPUT ${file} CONTENT
"// Forwards to ${targets}. Generated from compat/${table}.
#ifndef ${guard}
#define ${guard}

${includes}
${usings}#endif  // ${guard}
" @ONLY)
endfunction()

# Adds a line to `errors` of the caller, with its `table` and `number`.
function(gradflow_add_table_error text)
  set(errors "${errors}${table}:${number}: ${text}\n" PARENT_SCOPE)
endfunction()

# gradflow_generate_compat_headers(TABLE <file> SOURCE_DIR <folder> OUTPUT_DIR <folder>
#                                  KNOWN <header>... [TESTING])
#
# Writes the headers of TABLE to OUTPUT_DIR/forward and OUTPUT_DIR/missing. Writes headers of the
# section [testing] only with TESTING. Does not touch a file whose content stays the same. Removes
# other files of OUTPUT_DIR. SOURCE_DIR has the headers that are files. The table may also forward
# to the headers KNOWN. Sets these variables in the caller:
#
#   compat_errors    the errors of the table, one per line; if there are any, writes and removes nothing
#   compat_forwards  the paths in OUTPUT_DIR/forward
#   compat_testing   the files of the section [testing]
#   compat_internal  the files of the section [internal]
function(gradflow_generate_compat_headers)
  cmake_parse_arguments(PARSE_ARGV 0 arg "TESTING" "TABLE;SOURCE_DIR;OUTPUT_DIR" "KNOWN")
  cmake_path(GET arg_TABLE FILENAME table)
  set(errors)

  # Each header has the variables line_<header>, section_<header>, targets_<header>, names_<header> and
  # message_<header>.
  set(forwards)
  set(missing)
  set(testing)
  set(internal)
  set(section "")
  set(previous "")
  set(number 0)
  file(STRINGS ${arg_TABLE} lines)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(line MATCHES "^(#.*)?$")
      continue()
    endif()
    if(line MATCHES "^[[](forward|testing|internal|missing)[]]$")
      set(section ${CMAKE_MATCH_1})
      set(previous "")
      continue()
    endif()
    if(NOT line STRGREATER previous)
      gradflow_add_table_error("expected sorted lines, found '${line}' after '${previous}'")
    endif()
    set(previous "${line}")
    set(targets)
    set(names)
    set(message)
    if(section MATCHES "forward|testing" AND line MATCHES "^([^ ]+) -> ([^ ]+( [^ ]+)*)$")
      set(list forwards)
      set(pattern "${CMAKE_MATCH_1}")
      set(targets "${CMAKE_MATCH_2}")
      if(targets MATCHES "^(.+) using (.+)$")
        set(targets "${CMAKE_MATCH_1}")
        string(REPLACE " " ";" names "${CMAKE_MATCH_2}")
      endif()
      string(REPLACE " " ";" targets "${targets}")
    elseif(section STREQUAL "missing" AND line MATCHES "^([^ ]+) [|] ([^\"\\]+)$")
      set(list missing)
      set(pattern "${CMAKE_MATCH_1}")
      set(message "${CMAKE_MATCH_2}")
    elseif(section MATCHES "testing|internal" AND line MATCHES "^[^ ]+$")
      set(list ${section})
      set(pattern "${line}")
    else()
      gradflow_add_table_error("expected a line of section [${section}], found '${line}'")
      continue()
    endif()

    gradflow_expand_braces(expansions "${pattern}" "")
    foreach(expansion IN LISTS expansions)
      string(REGEX MATCH "^(.*)[|](.*)$" expansion "${expansion}")
      set(header "${CMAKE_MATCH_1}")
      set(choice "${CMAKE_MATCH_2}")
      if(NOT header MATCHES "^[A-Za-z0-9_./-]+$" OR header MATCHES "^/|[.][.]|/$")
        gradflow_add_table_error("expected the path of a header, found '${header}'")
        continue()
      endif()
      if(DEFINED line_${header})
        gradflow_add_table_error("${header} is in line ${line_${header}} already")
        continue()
      endif()
      set(line_${header} ${number})
      set(section_${header} ${section})
      set(is_file FALSE)
      if(EXISTS ${arg_SOURCE_DIR}/${header})
        set(is_file TRUE)
      endif()
      if(list MATCHES "forwards|missing" AND is_file)
        gradflow_add_table_error("${header} is also a file")
      elseif(list MATCHES "testing|internal" AND NOT is_file)
        gradflow_add_table_error("there is no file ${header}")
      endif()
      list(APPEND ${list} ${header})
      set(names_${header} ${names})
      set(message_${header} "${message}")
      set(targets_${header})
      foreach(target IN LISTS targets)
        string(REPLACE "*" "${choice}" target "${target}")
        gradflow_expand_braces(target "${target}" "")
        list(TRANSFORM target REPLACE "[|].*" "")
        list(APPEND targets_${header} ${target})
      endforeach()
    endforeach()
  endforeach()

  # Checks that the targets of a header exist in each build that has the header.
  foreach(header IN LISTS forwards)
    set(number ${line_${header}})
    foreach(target IN LISTS targets_${header})
      if(target MATCHES "^<.+>$")
        continue()
      endif()
      if(target STREQUAL header)
        gradflow_add_table_error("${header} forwards to itself")
      elseif(NOT EXISTS ${arg_SOURCE_DIR}/${target}
             AND NOT target IN_LIST forwards
             AND NOT target IN_LIST arg_KNOWN)
        gradflow_add_table_error("${header} forwards to ${target}, which does not exist")
      elseif("${section_${target}}" STREQUAL "internal"
             OR ("${section_${target}}" STREQUAL "testing" AND section_${header} STREQUAL "forward"))
        gradflow_add_table_error("${header} of [${section_${header}}] forwards to ${target} of [${section_${target}}]")
      endif()
    endforeach()
  endforeach()
  set(compat_errors "${errors}" PARENT_SCOPE)
  if(errors)
    return()
  endif()

  set(written)
  set(compat_forwards)
  foreach(header IN LISTS forwards)
    if(section_${header} STREQUAL "testing" AND NOT arg_TESTING)
      continue()
    endif()
    gradflow_write_forward(${header} ${arg_OUTPUT_DIR}/forward/${header} "${targets_${header}}"
                           "${names_${header}}" ${table})
    list(APPEND written forward/${header})
    list(APPEND compat_forwards ${header})
  endforeach()
  foreach(header IN LISTS missing)
    file(CONFIGURE OUTPUT ${arg_OUTPUT_DIR}/missing/${header} CONTENT
         "#error \"gradflow does not have ${header}: ${message_${header}}\"\n" @ONLY)
    list(APPEND written missing/${header})
  endforeach()
  file(GLOB_RECURSE stale RELATIVE ${arg_OUTPUT_DIR} ${arg_OUTPUT_DIR}/*)
  list(REMOVE_ITEM stale ${written})
  list(TRANSFORM stale PREPEND ${arg_OUTPUT_DIR}/)
  if(stale)
    file(REMOVE ${stale})
  endif()
  set(compat_forwards ${compat_forwards} PARENT_SCOPE)
  set(compat_testing ${testing} PARENT_SCOPE)
  set(compat_internal ${internal} PARENT_SCOPE)
endfunction()
