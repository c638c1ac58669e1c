// RE2, if the system has it.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_REGEXP_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_REGEXP_H_

#if !__has_include(<re2/re2.h>)
#error "this header needs RE2: apt install libre2-dev, and link re2"
#endif
#include <re2/re2.h>

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_REGEXP_H_
