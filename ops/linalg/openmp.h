// The number of threads that a library built for OpenMP, as Debian's oneDNN is, uses in a call.
#ifndef GRADFLOW_OPS_LINALG_OPENMP_H_
#define GRADFLOW_OPS_LINALG_OPENMP_H_

namespace gradflow {

// Returns the number of threads of the calling thread's next parallel region; 0 if no OpenMP is
// loaded.
int OpenMpThreads();
// Sets it, for the calling thread. REQUIRES: threads > 0
void SetOpenMpThreads(int threads);

// Makes such a library use the calling thread alone, and puts the setting back.
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
