// The number of threads that libraries built for OpenMP, such as Debian's oneDNN, use in a call.
#ifndef GRADFLOW_OPS_LINALG_OPENMP_H_
#define GRADFLOW_OPS_LINALG_OPENMP_H_

namespace gradflow {

// Returns the number of threads of the calling thread's next parallel region; 0 if OpenMP is not
// loaded.
int OpenMpThreads();
// Sets this number for the calling thread. REQUIRES: threads > 0
void SetOpenMpThreads(int threads);

// Makes OpenMP libraries use only the calling thread. The destructor restores the previous number.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : threads_(OpenMpThreads()) {
    if (threads_ > 1) SetOpenMpThreads(1);
  }
  ~OneOpenMpThread() {
    if (threads_ > 1) SetOpenMpThreads(threads_);
  }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  const int threads_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_OPENMP_H_
