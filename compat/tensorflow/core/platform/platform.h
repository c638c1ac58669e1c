// Macros that identify the platform.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_PLATFORM_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_PLATFORM_H_

#if !defined(PLATFORM_POSIX)
#define PLATFORM_POSIX
#endif
#if defined(__x86_64__) && !defined(PLATFORM_IS_X86)
#define PLATFORM_IS_X86
#endif

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_PLATFORM_H_
