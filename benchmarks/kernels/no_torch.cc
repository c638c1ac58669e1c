// Used if libtorch is not installed.
#include "benchmarks/kernels/runners.h"

namespace gradflow::benchmarks {

Runner Torch(const KernelCase&, int) { return nullptr; }

}  // namespace gradflow::benchmarks
