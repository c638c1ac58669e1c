// Used if oneDNN is not installed.
#include "benchmarks/kernels/runners.h"

namespace gradflow::benchmarks {

Runner OneDnn(const KernelCase&, int) { return nullptr; }

}  // namespace gradflow::benchmarks
