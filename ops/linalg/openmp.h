// The number of threads that a library built for OpenMP, as Debian's oneDNN is, uses in a call.
#ifndef GRADFLOW_OPS_LINALG_OPENMP_H_
#define GRADFLOW_OPS_LINALG_OPENMP_H_

extern "C" {
// Present if a library that is built for OpenMP is.
__attribute__((weak)) int omp_get_max_threads(void);
__attribute__((weak)) void omp_set_num_threads(int);
}

namespace gradflow {

// Makes such a library use the calling thread alone. The setting is the thread's own, and is put
// back.
class OneOpenMpThread {
 public:
  OneOpenMpThread() {
    if (omp_get_max_threads == nullptr || omp_set_num_threads == nullptr) return;
    threads_ = omp_get_max_threads();
    omp_set_num_threads(1);
  }
  ~OneOpenMpThread() {
    if (threads_ > 0) omp_set_num_threads(threads_);
  }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int threads_ = 0;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_OPENMP_H_
