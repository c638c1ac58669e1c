// Used if libtorch is not installed.
#include "benchmarks/models/networks.h"

namespace gradflow::benchmarks {

Runner TorchNetwork(Network, const Tensor&, bool, int, Tensor*) { return nullptr; }

}  // namespace gradflow::benchmarks
