// Where libtorch is not installed.
#include "benchmarks/kernels/runners.h"

namespace gradflow::benchmarks {

Runner Torch(const Case&, int) { return nullptr; }

}  // namespace gradflow::benchmarks
