// The TensorFlow version whose interface these headers provide, and the version of the graphs that
// gradflow writes.
#ifndef GRADFLOW_COMPAT_CORE_PUBLIC_VERSION_H_
#define GRADFLOW_COMPAT_CORE_PUBLIC_VERSION_H_

#ifdef GRADFLOW_TENSORFLOW_V1
#define TF_MAJOR_VERSION 1
#define TF_MINOR_VERSION 15
#define TF_PATCH_VERSION 0
#else
#define TF_MAJOR_VERSION 2
#define TF_MINOR_VERSION 19
#define TF_PATCH_VERSION 0
#endif
#define TF_VERSION_SUFFIX ""

#define TF_STR_HELPER(x) #x
#define TF_STR(x) TF_STR_HELPER(x)
// "2.19.0"
#define TF_VERSION_STRING                                                             \
  (TF_STR(TF_MAJOR_VERSION) "." TF_STR(TF_MINOR_VERSION) "." TF_STR(TF_PATCH_VERSION) \
       TF_VERSION_SUFFIX)

// The newest graph version that gradflow reads, which it also writes.
#define TF_GRAPH_DEF_VERSION 2200
#define TF_GRAPH_DEF_VERSION_MIN_PRODUCER 0
#define TF_GRAPH_DEF_VERSION_MIN_CONSUMER 0
#define TF_CHECKPOINT_VERSION 1
#define TF_CHECKPOINT_VERSION_MIN_PRODUCER 0
#define TF_CHECKPOINT_VERSION_MIN_CONSUMER 0

inline const char* tf_git_version() { return "gradflow"; }
inline const char* tf_compiler_version() { return __VERSION__; }

#endif  // GRADFLOW_COMPAT_CORE_PUBLIC_VERSION_H_
