// oneDNN's convolutions, called directly.
#ifndef GRADFLOW_BENCHMARKS_CONV_ONEDNN_H_
#define GRADFLOW_BENCHMARKS_CONV_ONEDNN_H_

#include <cstdint>
#include <functional>
#include <string>

namespace gradflow::benchmarks {

enum class Pass { kForward, kInputGradient, kFilterGradient };

// A square convolution with SAME padding.
struct ConvCase {
  int64_t size;
  int64_t in_depth;
  int64_t out_depth;
  int64_t filter;
  int64_t stride;
  // The number of layers of the network with this shape.
  int64_t layers;

  int64_t out() const { return (size + stride - 1) / stride; }
  // "56x56x64 3x3x64 /1 (3)"
  std::string DebugString() const;
};

// Returns a runner of the pass on `threads` OpenMP threads; null if the program is built without
// oneDNN. With `plain`, the filter has the format hwio, otherwise the format that oneDNN prefers.
std::function<void()> OneDnn(const ConvCase& c, Pass pass, int64_t batch, int threads, bool plain);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_CONV_ONEDNN_H_
