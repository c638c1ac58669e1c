// OpTester runs one op on literal inputs, and checks on the way what holds for every op:
//
//   TEST(Tile, RepeatsRows) {
//     const auto y = OpTester("Tile")
//                        .Input(AsTensor<float>({1, 2}, {1, 2}))
//                        .Input(AsTensor<int32_t>({2, 1}))
//                        .RunOne();
//     ExpectTensorEqual(y, AsTensor<float>({1, 2, 1, 2}, {2, 2}));
//   }
//   EXPECT_THAT(OpTester("Tile").Input(...).Input(...).Run(),
//               StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("multiples")));
#ifndef GRADFLOW_TESTS_OPS_OP_TEST_UTIL_H_
#define GRADFLOW_TESTS_OPS_OP_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/proto/node_def.pb.h"
#include "tests/testing/status_matchers.h"

namespace gradflow {

// How failures show shapes.
inline void PrintTo(const TensorShape& shape, std::ostream* os) { *os << shape.DebugString(); }
inline void PrintTo(const PartialTensorShape& shape, std::ostream* os) {
  *os << shape.DebugString();
}

namespace testing {

// ---- Tensors by literal ----

// What a literal element of type T is written as: half and bfloat16 as float, qint8 as int8_t.
template <typename T>
struct Literal {
  using type = std::conditional_t<kIsFloat16<T>, float, T>;
};
template <typename Storage, DataType Id>
struct Literal<StorageType<Storage, Id>> {
  using type = Storage;
};

// The values in row-major order: AsTensor<half>({1, 2.5, 3, 4}, {2, 2}). `values` is any container.
template <typename T, typename Container = std::initializer_list<typename Literal<T>::type>>
Tensor AsTensor(const Container& values, const TensorShape& shape) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  EXPECT_EQ(tensor.NumElements(), static_cast<int64_t>(values.size()))
      << "values for a tensor of shape " << shape.DebugString();
  if (tensor.NumElements() != static_cast<int64_t>(values.size())) return tensor;
  const auto flat = tensor.flat<T>();
  int64_t i = 0;
  for (const auto& value : values) flat(i++) = T{static_cast<typename Literal<T>::type>(value)};
  return tensor;
}
// A vector: AsTensor<int32_t>({1, 2}).
template <typename T, typename Container = std::initializer_list<typename Literal<T>::type>>
Tensor AsTensor(const Container& values) {
  return AsTensor<T, Container>(values, TensorShape({static_cast<int64_t>(values.size())}));
}
template <typename T>
Tensor AsScalar(typename Literal<T>::type value) {
  return AsTensor<T>({value}, TensorShape());
}
// start, start + 1, ...
template <typename T>
Tensor Iota(const TensorShape& shape, int64_t start = 0) {
  std::vector<typename Literal<T>::type> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(static_cast<typename Literal<T>::type>(start + i));
  }
  return AsTensor<T>(values, shape);
}
// Uniform in [low, high), the same for the same arguments everywhere. For numeric types.
Tensor RandomTensor(DataType dtype, const TensorShape& shape, double low = -1, double high = 1,
                    uint32_t seed = 1);
// A tensor of any type with elements that differ from each other, as far as the type goes.
Tensor DistinctTensor(DataType dtype, const TensorShape& shape);
// Every type that tensors have.
const DataTypeVector& TensorTypes();
// The tensor of `shape` whose element at `index` is element number source_index(index) of `source`,
// in row-major order. What an op that only moves elements should give.
Tensor Rearranged(const Tensor& source, const TensorShape& shape,
                  const std::function<int64_t(const std::vector<int64_t>& index)>& source_index);
// The elements of a real numeric (or bool) tensor as doubles.
std::vector<double> AsDoubles(const Tensor& tensor);

// ---- Comparing tensors ----

// Same type, shape and elements; NaN equals NaN, and 0 is not -0.
void ExpectTensorEqual(const Tensor& actual, const Tensor& expected);
void ExpectTensorEqual(const absl::StatusOr<Tensor>& actual, const Tensor& expected);
// Same type and shape, and |actual - expected| <= atol + rtol * |expected| for each element;
// infinities and NaN must be the same. Negative tolerances mean a default for the type.
void ExpectClose(const Tensor& actual, const Tensor& expected, double rtol = -1, double atol = -1);
void ExpectClose(const absl::StatusOr<Tensor>& actual, const Tensor& expected, double rtol = -1,
                 double atol = -1);

// A shape, or a StatusOr of one, that prints as `text`: "[2,?]", "<unknown>".
inline std::string DescribeShape(const PartialTensorShape& shape) { return shape.DebugString(); }
inline std::string DescribeShape(const absl::StatusOr<PartialTensorShape>& shape) {
  return shape.ok() ? shape->DebugString() : shape.status().ToString();
}
MATCHER_P(ShapeIs, text, absl::StrCat("is ", text)) {
  *result_listener << "which is " << DescribeShape(arg);
  return DescribeShape(arg) == text;
}

// ---- Running ops ----

class OpTester {
 public:
  explicit OpTester(absl::string_view op, const Registry& registry = GlobalRegistry());

  // Adds an input, in the order of the op's definition, lists laid out.
  OpTester& Input(const Tensor& tensor);
  OpTester& Inputs(const std::vector<Tensor>& tensors);
  // Adds an input of which only that is known; for InferShapes.
  OpTester& UnknownInput(DataType dtype, const PartialTensorShape& shape = PartialTensorShape());
  // Sets an attribute. Those that follow from the inputs (T, N) need not be set.
  template <typename T>
  OpTester& Attr(absl::string_view name, const T& value) {
    AddNodeAttr(name, value, &node_);
    return *this;
  }
  OpTester& Attr(absl::string_view name, std::initializer_list<int64_t> values) {
    return Attr(name, absl::MakeConstSpan(values.begin(), values.size()));
  }
  // Does not expect the shape function to find every dimension although all inputs are known.
  OpTester& ShapeIsData() { return shape_is_data_ = true, *this; }

  // Makes the kernel and runs it. Expects, if it succeeds, that
  // - outputs have the types of the definition, and inputs are unchanged;
  // - the outputs have the same bits on one thread and on several, and when the kernel owns its
  //   inputs and may write in place;
  // - the shape function agrees with the outputs, whatever part of the inputs is known to it, and
  //   finds the whole shape if all are.
  // If it fails, that it does so each time, and that the shape function does not crash.
  absl::StatusOr<std::vector<Tensor>> Run();
  // The same for an op with one output.
  absl::StatusOr<Tensor> RunOne();
  // Runs the kernel once, on that many threads, without those checks.
  absl::StatusOr<std::vector<Tensor>> RunOnThreads(int threads);
  // The outcome of making the kernel, without running it.
  absl::Status MakeKernel();
  // What the shape function says of the outputs, all inputs but the unknown ones being constants.
  absl::StatusOr<std::vector<PartialTensorShape>> InferShapes();
  // The same for an op with one output.
  absl::StatusOr<PartialTensorShape> InferShape();

 private:
  struct InputInfo {
    DataType dtype;
    PartialTensorShape shape;
    // Of no meaning unless known.
    Tensor value;
    bool known;
  };
  // Which of the inputs' parts the shape function may see.
  struct Knowledge {
    std::vector<PartialTensorShape> shapes;
    std::vector<const Tensor*> values;
  };

  absl::Status Finalize();
  void InferTypesAndNumbers(const OpDef& op_def);
  absl::StatusOr<std::unique_ptr<OpKernel>> CreateKernel();
  absl::StatusOr<std::vector<Tensor>> RunKernel(const OpKernel& kernel, int threads,
                                                bool own_inputs);
  absl::StatusOr<std::vector<PartialTensorShape>> CallShapeFn(const Knowledge& knowledge);
  Knowledge FullKnowledge() const;
  void CheckShapes(const absl::StatusOr<std::vector<Tensor>>& outputs);
  void CheckShapesAgree(absl::string_view what, const Knowledge& knowledge,
                        const absl::StatusOr<std::vector<Tensor>>& outputs);

  const Registry& registry_;
  NodeDef node_;
  std::vector<InputInfo> inputs_;
  const OpRegistration* op_ = nullptr;
  DataTypeVector input_types_;
  DataTypeVector output_types_;
  bool shape_is_data_ = false;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_OP_TEST_UTIL_H_
