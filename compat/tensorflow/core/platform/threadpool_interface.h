// ThreadPoolInterface: threads that the program provides.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_INTERFACE_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_INTERFACE_H_

#include <functional>
#include <utility>

namespace tensorflow {
namespace thread {

class ThreadPoolInterface {
 public:
  virtual ~ThreadPoolInterface() = default;
  // Runs `fn` on a thread of the pool.
  virtual void Schedule(std::function<void()> fn) = 0;
  // Schedules a function, preferably on a thread in [start, end).
  virtual void ScheduleWithHint(std::function<void()> fn, int /*start*/, int /*end*/) {
    Schedule(std::move(fn));
  }
  virtual void Cancel() {}
  virtual int NumThreads() const = 0;
  // Returns the index of the calling thread, or -1.
  virtual int CurrentThreadId() const = 0;
};

}  // namespace thread
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_THREADPOOL_INTERFACE_H_
