// Annotations of happens-before edges for ThreadSanitizer. TsanRelease(p) happens before
// TsanAcquire(p). ThreadSanitizer does not see the edges inside oneTBB, because oneTBB is not
// instrumented. The annotations do nothing in builds without ThreadSanitizer.
#ifndef GRADFLOW_CORE_TSAN_H_
#define GRADFLOW_CORE_TSAN_H_

// Marks a function that oneTBB calls as a task. Such a function reads the task object, which
// another thread has written, before its TsanAcquire. Its callees are checked as usual.
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

// Releases the calling thread's writes to the next thread that acquires `address`.
inline void TsanRelease([[maybe_unused]] const void* address) {
#ifdef GRADFLOW_TSAN
  __tsan_release(const_cast<void*>(address));
#endif
}

// Acquires the writes of the threads that have released `address`.
inline void TsanAcquire([[maybe_unused]] const void* address) {
#ifdef GRADFLOW_TSAN
  __tsan_acquire(const_cast<void*>(address));
#endif
}

}  // namespace gradflow

#endif  // GRADFLOW_CORE_TSAN_H_
