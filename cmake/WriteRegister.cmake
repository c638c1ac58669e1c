# Writes the register.cc of one folder of ops/, which calls the Register function of each family:
#
#   cmake -D FOLDER=<folder> -D FUNCTION=<name> -D OUTPUT=<file> -P WriteRegister.cmake
#
# A family is a source <family>.cc that defines gradflow::<family>::Register(Registry& registry).
# The file is rewritten only if its content changes.
file(GLOB sources RELATIVE ${FOLDER} ${FOLDER}/*.cc)
list(SORT sources)
set(declarations "")
set(calls "")
foreach(source IN LISTS sources)
  file(STRINGS ${FOLDER}/${source} definition REGEX "^void Register\\(Registry& registry\\) {")
  if(definition)
    string(REPLACE ".cc" "" family ${source})
    string(APPEND declarations "namespace ${family} {\nvoid Register(Registry& registry);\n}\n")
    string(APPEND calls "  ${family}::Register(registry);\n")
  endif()
endforeach()
set(text "// Generated from the families of this folder.
#include \"gradflow/core/registry.h\"

namespace gradflow {

${declarations}
void ${FUNCTION}([[maybe_unused]] Registry& registry) {
${calls}}

}  // namespace gradflow
")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
