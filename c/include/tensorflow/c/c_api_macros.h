// Macros of the C API.
#ifndef GRADFLOW_C_C_API_MACROS_H_
#define GRADFLOW_C_C_API_MACROS_H_

// Marks the functions that the library exports. TF_CAPI_WEAK makes them weak references.
#if defined(SWIG)
#define TF_CAPI_EXPORT
#elif defined(TF_CAPI_WEAK)
#define TF_CAPI_EXPORT __attribute__((visibility("default"), weak))
#else
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#endif

// The type of truth values in structs.
#ifndef TF_Bool
#define TF_Bool unsigned char
#endif

// The size of a struct up to and including a member, which versions structs. Needs <stddef.h>.
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))
#endif

#endif  // GRADFLOW_C_C_API_MACROS_H_
