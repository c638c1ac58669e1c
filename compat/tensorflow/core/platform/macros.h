// Attributes and helpers with TensorFlow's names.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_MACROS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_MACROS_H_

#define TF_ATTRIBUTE_NORETURN [[noreturn]]
#define TF_ATTRIBUTE_ALWAYS_INLINE __attribute__((always_inline))
#define TF_ATTRIBUTE_NOINLINE __attribute__((noinline))
#define TF_ATTRIBUTE_UNUSED __attribute__((unused))
#define TF_ATTRIBUTE_COLD __attribute__((cold))
#define TF_MUST_USE_RESULT __attribute__((warn_unused_result))
#define TF_FALLTHROUGH_INTENDED [[fallthrough]]
#define TF_PREDICT_FALSE(x) (__builtin_expect(static_cast<bool>(x), 0))
#define TF_PREDICT_TRUE(x) (__builtin_expect(static_cast<bool>(x), 1))

#define TF_DISALLOW_COPY_AND_ASSIGN(TypeName) \
  TypeName(const TypeName&) = delete;         \
  void operator=(const TypeName&) = delete

// The number of elements of an array.
#define TF_ARRAYSIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_MACROS_H_
