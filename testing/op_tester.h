// OpTester runs one op on given inputs, and checks on the way what holds for every op:
//
//   TEST(Tile, RepeatsRows) {
//     const auto y = OpTester("Tile")
//                        .Input<float>({1, 2}, {1, 2})
//                        .Input<int32_t>({2, 1})
//                        .RunOne();
//     EXPECT_THAT(y, TensorEq(AsTensor<float>({1, 2, 1, 2}, {2, 2})));
//   }
//   EXPECT_THAT(OpTester("Tile").Input(...).Input(...).Run(),
//               StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("multiples")));
//
// KernelTest (kernel_test.h) is a GoogleTest fixture with one.
#ifndef GRADFLOW_TESTING_OP_TESTER_H_
#define GRADFLOW_TESTING_OP_TESTER_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {

class NodeDef;
class OpDef;

namespace testing {

// Where RunEverywhere runs a kernel.
struct Everywhere {
  // Numbers of threads, up to 64: also more than the machine has processors, so that a test means
  // the same anywhere.
  std::vector<int> threads = {1, 2, 3, 8};
  // Instruction sets, of those in SimdTargets() (ops/simd.h); empty for all that the processor has.
  std::vector<std::string> simd_targets;
};

// Copies are independent.
class OpTester {
 public:
  // Of a registered op; the registry is borrowed.
  explicit OpTester(absl::string_view op, const Registry& registry = GlobalRegistry());
  ~OpTester();
  OpTester(const OpTester& other);
  OpTester& operator=(const OpTester& other);
  OpTester(OpTester&&) noexcept;
  OpTester& operator=(OpTester&&) noexcept;

  // ---- Inputs, in the order of the op's definition, lists laid out ----

  OpTester& Input(const Tensor& tensor);
  // Of an array: Input<float>({1, 2, 3, 4}, {2, 2}); a vector if it has no shape.
  template <typename T>
  OpTester& Input(std::initializer_list<typename Literal<T>::type> values,
                  const TensorShape& shape) {
    return Input(AsTensor<T>(values, shape));
  }
  template <typename T>
  OpTester& Input(std::initializer_list<typename Literal<T>::type> values) {
    return Input(AsTensor<T>(values));
  }
  // A copy of a span.
  template <typename T>
  OpTester& InputFromSpan(absl::Span<const T> values, const TensorShape& shape) {
    return Input(AsTensor<T>(values, shape));
  }
  // Always the same, but different for each input of an op unless `seed` says otherwise.
  OpTester& RandomInput(DataType dtype, const TensorShape& shape,
                        const Distribution& distribution = Distribution(), uint32_t seed = 0);
  // From a .npy file. If it cannot be read, everything below says so.
  OpTester& InputFromNpy(const std::string& path);
  OpTester& Inputs(const std::vector<Tensor>& tensors);
  // An input of which only that is known; for InferShapes and RunOn.
  OpTester& UnknownInput(DataType dtype, const PartialTensorShape& shape = PartialTensorShape());

  // ---- Attributes ----

  // Those that follow from the inputs (T, N) need not be set.
  template <typename T>
  OpTester& Attr(absl::string_view name, const T& value) {
    AddNodeAttr(name, value, node_.get());
    return *this;
  }
  OpTester& Attr(absl::string_view name, std::initializer_list<int64_t> values) {
    return Attr(name, absl::MakeConstSpan(values.begin(), values.size()));
  }
  // Takes the kernel that is registered with this label.
  OpTester& KernelLabel(absl::string_view label) { return Attr("_kernel", std::string(label)); }
  // Does not expect the shape function to find every dimension although all inputs are known.
  OpTester& ShapeIsData() { return shape_is_data_ = true, *this; }

  // ---- Running ----

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
  // Runs the kernel on one thread as a reference and then on each number of threads and each
  // instruction set of `where`, and expects the same bits. Returns the outputs. No other kernel
  // may run meanwhile: the instruction set is the process's.
  absl::StatusOr<std::vector<Tensor>> RunEverywhere(const Everywhere& where = {});
  // Runs the kernel once, on that many threads, without any of those checks.
  absl::StatusOr<std::vector<Tensor>> RunOnThreads(int threads);
  // Runs the kernel once, made for the inputs above (or, if there are none, for the attributes
  // alone), on other ones: also of types and shapes that no graph would give it. It may write in
  // place to those that no one else holds.
  absl::StatusOr<std::vector<Tensor>> RunOn(std::vector<Tensor> inputs);
  // The outcome of making the kernel, without running it.
  absl::Status MakeKernel();
  // What the shape function says of the outputs, all inputs but the unknown ones being constants.
  absl::StatusOr<std::vector<PartialTensorShape>> InferShapes();
  // The same for an op with one output.
  absl::StatusOr<PartialTensorShape> InferShape();

  // ---- What has been said so far ----

  const Registry& registry() const { return *registry_; }
  // INVALID_ARGUMENT or NOT_FOUND if there is no such op, or the inputs and attributes are not
  // those of the op. Otherwise the node then has all attributes.
  absl::Status Finalize();
  const NodeDef& node() const { return *node_; }
  // REQUIRES for these: Finalize() is OK.
  const OpDef& op_def() const { return op_->def(); }
  const DataTypeVector& input_types() const { return input_types_; }
  const DataTypeVector& output_types() const { return output_types_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Tensor& input(int i) const { return inputs_[i].value; }

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

  void InferTypesAndNumbers(const OpDef& op_def);
  absl::StatusOr<std::unique_ptr<OpKernel>> CreateKernel();
  absl::StatusOr<std::vector<Tensor>> KnownInputs(bool copies) const;
  absl::StatusOr<std::vector<Tensor>> RunKernel(const OpKernel& kernel, int threads,
                                                std::vector<Tensor> inputs);
  absl::StatusOr<std::vector<PartialTensorShape>> CallShapeFn(const Knowledge& knowledge);
  Knowledge FullKnowledge() const;
  void CheckShapes(const absl::StatusOr<std::vector<Tensor>>& outputs);
  void CheckShapesAgree(absl::string_view what, const Knowledge& knowledge,
                        const absl::StatusOr<std::vector<Tensor>>& outputs);

  const Registry* registry_;
  std::unique_ptr<NodeDef> node_;
  std::vector<InputInfo> inputs_;
  // The first fault of an input.
  absl::Status status_;
  const OpRegistration* op_ = nullptr;
  DataTypeVector input_types_;
  DataTypeVector output_types_;
  bool shape_is_data_ = false;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_OP_TESTER_H_
