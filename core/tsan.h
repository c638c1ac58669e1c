// Tells ThreadSanitizer of an order between threads that goes through oneTBB, which is not
// instrumented: what happens before TsanRelease(p) is seen after TsanAcquire(p). Nothing in other
// builds.
#ifndef GRADFLOW_CORE_TSAN_H_
#define GRADFLOW_CORE_TSAN_H_

// For a function that oneTBB calls in a task: it may read the task itself, which another thread has
// written, before its TsanAcquire. What it calls is watched as usual.
#ifdef GRADFLOW_TSAN
#define GRADFLOW_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define GRADFLOW_NO_TSAN
#endif

#ifdef GRADFLOW_TSAN
extern "C" void __tsan_acquire(void* address);  // NOLINT: the sanitizer's interface
extern "C" void __tsan_release(void* address);  // NOLINT
#endif

namespace gradflow {

// What this thread has done is seen by the one that acquires `address` next.
inline void TsanRelease([[maybe_unused]] const void* address) {
#ifdef GRADFLOW_TSAN
  __tsan_release(const_cast<void*>(address));
#endif
}

// Sees what was done by the threads that have released `address`.
inline void TsanAcquire([[maybe_unused]] const void* address) {
#ifdef GRADFLOW_TSAN
  __tsan_acquire(const_cast<void*>(address));
#endif
}

}  // namespace gradflow

#endif  // GRADFLOW_CORE_TSAN_H_
