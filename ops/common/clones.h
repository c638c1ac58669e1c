// Plain loops that the compiler vectorizes for several instruction sets.
//
// GRADFLOW_CLONES before a function makes gcc compile it a second time, for AVX2. The version is
// selected when the library is loaded. Results have the same bits: the compiler fuses no
// multiplications and additions. GRADFLOW_SIMD does not select these versions. Loops that need
// particular instructions use Highway instead (simd-inl.h).
#ifndef GRADFLOW_OPS_COMMON_CLONES_H_
#define GRADFLOW_OPS_COMMON_CLONES_H_

// A sanitizer instruments the functions that select a version, but is not ready when they run.
// Builds with ThreadSanitizer define GRADFLOW_TSAN (CMakePresets.json).
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(GRADFLOW_TSAN)
#define GRADFLOW_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GRADFLOW_CLONES
#endif

#endif  // GRADFLOW_OPS_COMMON_CLONES_H_
