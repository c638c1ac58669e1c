// Annotations for sanitizers. No effect.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_DYNAMIC_ANNOTATIONS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_DYNAMIC_ANNOTATIONS_H_

#define TF_ANNOTATE_MEMORY_IS_INITIALIZED(ptr, bytes) \
  do {                                                \
  } while (0)
#define TF_ANNOTATE_BENIGN_RACE(ptr, description) \
  do {                                            \
  } while (0)

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_DYNAMIC_ANNOTATIONS_H_
