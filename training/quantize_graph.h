// Quantizes a trained float graph: inserts fake-quantization nodes, so that
// SessionOptions::integer_inference can run the graph in 8-bit integers.
//
//   GRADFLOW_ASSIGN_OR_RETURN(const GraphQuantizer quantizer, GraphQuantizer::Make(graph));
//   std::vector<RangeCalibrator> ranges(quantizer.tensors().size());
//   for (const Tensor& batch : batches) {
//     std::vector<Tensor> values;
//     GRADFLOW_RETURN_IF_ERROR(session->Run({{"x", batch}}, quantizer.tensors(), {}, &values));
//     for (size_t i = 0; i < values.size(); ++i) ranges[i].Add(values[i]);
//   }
//   GRADFLOW_ASSIGN_OR_RETURN(const GraphDef quantized, quantizer.Quantize(ranges));
#ifndef GRADFLOW_TRAINING_QUANTIZE_GRAPH_H_
#define GRADFLOW_TRAINING_QUANTIZE_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/tensor.h"
#include "gradflow/proto/graph.pb.h"

#pragma GCC visibility push(default)
namespace gradflow::training {

// Methods that find the range of a tensor from the values of several runs.
enum class RangeMethod {
  // From the least to the greatest number of all runs.
  kMinMax,
  // The moving average of the least and of the greatest number of each run, with momentum 0.9.
  kMovingAverage,
  // The mean, over the runs, of two percentiles of the numbers.
  kPercentile,
  // The range with the least sum of squared errors, if all numbers are rounded to 256 levels. Found
  // from a histogram of 8192 bins, so it is approximate.
  kLeastSquares,
};

// Finds the range of a tensor. Ignores infinities and NaN.
class RangeCalibrator {
 public:
  // With kPercentile, a range contains `percentile` percent of the numbers, and the same number is
  // outside of it on either side.
  explicit RangeCalibrator(RangeMethod method = RangeMethod::kMinMax, double percentile = 99.99)
      : method_(method), percentile_(percentile) {}

  // Adds the values of a run. Tensors of other types than float are ignored.
  void Add(const Tensor& values);
  // Extends the range by the range of another calibrator. With kLeastSquares, the range is then
  // found from the numbers of both.
  void Merge(const RangeCalibrator& other);

  // Returns the range, extended to contain 0. Empty and tiny ranges become [min, min + 1].
  float min() const;
  // Returns the upper end of the range.
  float max() const;

 private:
  RangeMethod method_;
  double percentile_;
  // The numbers of a tensor in equal bins from -bound to bound.
  struct Histogram {
    void Add(float value);
    // Doubles `bound` until it is at least `least`.
    void Extend(double least);
    // A power of two; 0 if there are no bins.
    double bound = 0;
    std::vector<int64_t> counts;
  };
  struct Range {
    double min;
    double max;
  };
  // Returns the range of least squared error.
  Range LeastSquares() const;
  Range range() const;

  int64_t runs_ = 0;
  double min_ = 0;
  double max_ = 0;
  // Empty unless the method is kLeastSquares.
  Histogram histogram_;
};

// Inserts fake-quantization nodes into a graph. The rules:
//
//   - Products are Conv2D and DepthwiseConv2dNative with the channels last, and MatMul, of floats
//     with constant weights. Freeze the graph first.
//   - The weights of a product get a symmetric range for each output channel, or a single range if
//     they are transposed.
//   - The input of a product gets a range. If nodes such as MaxPool and Reshape only move its
//     elements, the tensor before these nodes gets the range.
//   - Both inputs of an addition of two results of products get ranges, and so does the input of
//     its reader by these rules.
//   - The input of a Mean or AvgPool gets a range if its result gets one, and if the input is the
//     result of a product or sum. The input and the result of AvgPool share a range.
//   - The tensors that a ConcatV2 joins share a range.
//
// Biases, batch normalization and ReLUs after a product remain part of it.
class GraphQuantizer {
 public:
  // Finds the products and tensors to quantize. Returns INVALID_ARGUMENT if the graph has no
  // product, or if it is already quantized.
  static absl::StatusOr<GraphQuantizer> Make(const GraphDef& graph);

  // Returns the float graph.
  const GraphDef& graph() const { return graph_; }
  // The tensors whose ranges Quantize() needs, as names of nodes.
  const std::vector<std::string>& tensors() const { return tensors_; }
  // Returns the number of products.
  int num_products() const { return static_cast<int>(products_.size()); }

  // Returns the names of the products.
  std::vector<std::string> products() const;

  // Returns the graph with fake-quantization nodes. `ranges` has an element for each of tensors().
  // If `corrections` is not empty, it has a vector for each of products(), with an element for each
  // output channel. The vector is added to the result of the product.
  absl::StatusOr<GraphDef> Quantize(const std::vector<RangeCalibrator>& ranges,
                                    const std::vector<Tensor>& corrections = {}) const;

  // Returns the ranges of tensors() in the quantized graph, where tensors may share a range.
  absl::StatusOr<std::vector<RangeCalibrator>> JoinedRanges(
      const std::vector<RangeCalibrator>& ranges) const;

  // The names of the tensors that measure the errors of a product. The error is the exact result
  // minus the result with rounded weights and a rounded input. The input is computed in float, so
  // an error does not contain errors of earlier products.
  struct ErrorTensors {
    // The mean error of each output channel: the correction for Quantize().
    std::string mean;
    // Scalars: the mean squares of the errors and of the exact results.
    std::string squared_error;
    std::string squared_result;
  };
  struct ErrorGraph {
    // The float graph, with the nodes.
    GraphDef graph;
    // An element for each of products().
    std::vector<ErrorTensors> products;
  };
  // Returns the float graph with nodes that measure the errors of a run. `ranges` has an element
  // for each of tensors().
  absl::StatusOr<ErrorGraph> MeasureErrors(const std::vector<RangeCalibrator>& ranges) const;

 private:
  class Finder;

  GraphDef graph_;
  std::vector<std::string> tensors_;
  // For each tensor, the index of the first tensor that shares its range.
  std::vector<size_t> groups_;
  // Indexes of nodes.
  std::vector<int> products_;
  // For each product, the index of a tensor with the range of its input, or kNoTensor.
  static constexpr size_t kNoTensor = SIZE_MAX;
  std::vector<size_t> input_tensors_;
};

}  // namespace gradflow::training
#pragma GCC visibility pop

#endif  // GRADFLOW_TRAINING_QUANTIZE_GRAPH_H_
