// port::prefetch: requests memory before it is used.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_PREFETCH_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_PREFETCH_H_

namespace tensorflow {
namespace port {

enum PrefetchHint {
  PREFETCH_HINT_T0 = 3,
  PREFETCH_HINT_T1 = 2,
  PREFETCH_HINT_T2 = 1,
  PREFETCH_HINT_NTA = 0
};
template <PrefetchHint hint>
void prefetch(const void* x) {
  __builtin_prefetch(x, 0, hint);
}

}  // namespace port
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_PREFETCH_H_
