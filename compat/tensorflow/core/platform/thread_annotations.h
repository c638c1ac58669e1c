// Annotations for clang's thread safety analysis, with the names of all TensorFlow versions.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_THREAD_ANNOTATIONS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_THREAD_ANNOTATIONS_H_

// No effect, because standard mutexes, which the analysis does not know, implement these classes.
#define TF_GUARDED_BY(...)
#define TF_PT_GUARDED_BY(...)
#define TF_ACQUIRED_AFTER(...)
#define TF_ACQUIRED_BEFORE(...)
#define TF_EXCLUSIVE_LOCKS_REQUIRED(...)
#define TF_SHARED_LOCKS_REQUIRED(...)
#define TF_LOCKS_EXCLUDED(...)
#define TF_LOCK_RETURNED(...)
#define TF_LOCKABLE
#define TF_SCOPED_LOCKABLE
#define TF_EXCLUSIVE_LOCK_FUNCTION(...)
#define TF_SHARED_LOCK_FUNCTION(...)
#define TF_UNLOCK_FUNCTION(...)
#define TF_EXCLUSIVE_TRYLOCK_FUNCTION(...)
#define TF_SHARED_TRYLOCK_FUNCTION(...)
#define TF_ASSERT_EXCLUSIVE_LOCK(...)
#define TF_ASSERT_SHARED_LOCK(...)
#define TF_NO_THREAD_SAFETY_ANALYSIS
#define TF_GUARDED_VAR
#define TF_PT_GUARDED_VAR

// The names of TensorFlow 1.x. Abseil's header of the same name may also define them.
#ifdef GRADFLOW_TENSORFLOW_V1
#ifndef GUARDED_BY
#define GUARDED_BY(...)
#endif
#ifndef PT_GUARDED_BY
#define PT_GUARDED_BY(...)
#endif
#ifndef ACQUIRED_AFTER
#define ACQUIRED_AFTER(...)
#endif
#ifndef ACQUIRED_BEFORE
#define ACQUIRED_BEFORE(...)
#endif
#ifndef EXCLUSIVE_LOCKS_REQUIRED
#define EXCLUSIVE_LOCKS_REQUIRED(...)
#endif
#ifndef SHARED_LOCKS_REQUIRED
#define SHARED_LOCKS_REQUIRED(...)
#endif
#ifndef LOCKS_EXCLUDED
#define LOCKS_EXCLUDED(...)
#endif
#ifndef LOCK_RETURNED
#define LOCK_RETURNED(...)
#endif
#ifndef LOCKABLE
#define LOCKABLE
#endif
#ifndef SCOPED_LOCKABLE
#define SCOPED_LOCKABLE
#endif
#ifndef EXCLUSIVE_LOCK_FUNCTION
#define EXCLUSIVE_LOCK_FUNCTION(...)
#endif
#ifndef SHARED_LOCK_FUNCTION
#define SHARED_LOCK_FUNCTION(...)
#endif
#ifndef UNLOCK_FUNCTION
#define UNLOCK_FUNCTION(...)
#endif
#ifndef NO_THREAD_SAFETY_ANALYSIS
#define NO_THREAD_SAFETY_ANALYSIS
#endif
#endif

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_THREAD_ANNOTATIONS_H_
