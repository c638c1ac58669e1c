// The version of gradflow that a program is compiled with. CMakeLists.txt parses this file.
#ifndef GRADFLOW_CORE_VERSION_H_
#define GRADFLOW_CORE_VERSION_H_

// The version as numbers and as a string.
#define GRADFLOW_VERSION_MAJOR 0
#define GRADFLOW_VERSION_MINOR 1
#define GRADFLOW_VERSION_PATCH 0
#define GRADFLOW_VERSION_STRING "0.1.0"

#endif  // GRADFLOW_CORE_VERSION_H_
