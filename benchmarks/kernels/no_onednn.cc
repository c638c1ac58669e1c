// Where oneDNN is not installed.
#include "benchmarks/kernels/runners.h"

namespace gradflow::benchmarks {

Runner OneDnn(const Case&, int) { return nullptr; }

}  // namespace gradflow::benchmarks
