// OpTester: runs one op on given inputs, and checks invariants of all ops:
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
// KernelTest (kernel_test.h) is a GoogleTest fixture with an OpTester.
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

// The configurations for RunEverywhere.
struct Everywhere {
  // Numbers of threads, at most 64. They may exceed the number of processors, so that tests do not
  // depend on the machine.
  std::vector<int> threads = {1, 2, 3, 8};
  // Instruction sets, from SimdTargets() (ops/common/simd.h); empty for all that the processor
  // supports.
  std::vector<std::string> simd_targets;
};

// Copies are independent, and have no StopToken. A move makes a copy.
class OpTester {
 public:
  // Tests the registered op `op`. Borrows the registry.
  explicit OpTester(absl::string_view op, const Registry& registry = GlobalRegistry());
  ~OpTester();
  OpTester(const OpTester& other);
  OpTester& operator=(const OpTester& other);

  // ---- Inputs, in the order of the op definition, with lists flattened ----

  // Adds an input. If the op takes a variable (a resource or a reference), the input is the
  // variable's value, and each run has new variables. Their values after the run follow the outputs
  // of the op. Reference outputs are omitted.
  OpTester& Input(const Tensor& tensor);
  // Adds literals: Input<float>({1, 2, 3, 4}, {2, 2}). Without a shape, they form a vector.
  template <typename T>
  OpTester& Input(std::initializer_list<typename Literal<T>::type> values,
                  const TensorShape& shape) {
    return Input(AsTensor<T>(values, shape));
  }
  template <typename T>
  OpTester& Input(std::initializer_list<typename Literal<T>::type> values) {
    return Input(AsTensor<T>(values));
  }
  // Adds a copy of a span.
  template <typename T>
  OpTester& InputFromSpan(absl::Span<const T> values, const TensorShape& shape) {
    return Input(AsTensor<T>(values, shape));
  }
  // Adds a deterministic random tensor. With seed 0, the values differ between inputs.
  OpTester& RandomInput(DataType dtype, const TensorShape& shape,
                        const Distribution& distribution = Distribution(), uint32_t seed = 0);
  // Reads a .npy file. If reading fails, all runs return the error.
  OpTester& InputFromNpy(const std::string& path);
  OpTester& Inputs(const std::vector<Tensor>& tensors);
  // Adds an input of unknown value, for InferShapes and RunOn.
  OpTester& UnknownInput(DataType dtype, const PartialTensorShape& shape = PartialTensorShape());

  // ---- Attributes ----

  // Attributes that can be inferred from the inputs (T, N) need not be set.
  template <typename T>
  OpTester& Attr(absl::string_view name, const T& value) {
    AddNodeAttr(name, value, node_.get());
    return *this;
  }
  OpTester& Attr(absl::string_view name, std::initializer_list<int64_t> values) {
    return Attr(name, absl::MakeConstSpan(values.begin(), values.size()));
  }
  // Selects the kernel that is registered with label `label`.
  OpTester& KernelLabel(absl::string_view label) { return Attr("_kernel", std::string(label)); }
  // States that the shape function need not infer whole output shapes even if all inputs are known,
  // as for Where, whose output shape depends on the elements of its input.
  OpTester& ShapeIsData() { return shape_is_data_ = true, *this; }

  // ---- Running ----

  // Creates the kernel and runs it. If the run succeeds, expects that
  // - outputs have the types of the definition, and inputs are unchanged;
  // - outputs have the same bits on one and on several threads, even if the kernel owns its
  //   inputs and may compute in place;
  // - the shape function agrees with the outputs for any known part of the inputs, and infers the
  //   whole shape if all inputs are known.
  // If the run fails, expects that it fails every time and that the shape function does not crash.
  absl::StatusOr<std::vector<Tensor>> Run();
  // Runs an op with a single output.
  absl::StatusOr<Tensor> RunOne();
  // Runs the kernel in a run that `stop` can stop. `stop` must outlive this object.
  OpTester& StoppedBy(StopToken* stop) {
    stop_ = stop;
    return *this;
  }
  // Runs the kernel on one thread as a reference. Then runs it with each number of threads and each
  // instruction set of `where`, and expects the same bits. Returns the outputs. No other kernel may
  // run at the same time, because the instruction set is process-wide.
  absl::StatusOr<std::vector<Tensor>> RunEverywhere(const Everywhere& where = {});
  // Runs the kernel once on `threads` threads, without checks.
  absl::StatusOr<std::vector<Tensor>> RunOnThreads(int threads);
  // Creates a kernel for the inputs that were added or, if there are none, from the attributes
  // alone, and runs it once on `inputs`. These may have types and shapes that graphs rule out. The
  // kernel may compute in place in tensors that are not shared.
  absl::StatusOr<std::vector<Tensor>> RunOn(std::vector<Tensor> inputs);
  // Creates the kernel without running it, and returns the status.
  absl::Status MakeKernel();
  // Calls the shape function, and returns the shapes of the outputs. All inputs are constants,
  // except unknown inputs.
  absl::StatusOr<std::vector<PartialTensorShape>> InferShapes();
  // Infers the shape of an op with a single output.
  absl::StatusOr<PartialTensorShape> InferShape();

  // ---- Access to the node ----

  const Registry& registry() const { return *registry_; }
  // Sets all attributes of the node. Returns NOT_FOUND if the op does not exist, and
  // INVALID_ARGUMENT if the inputs or attributes do not match its definition.
  absl::Status Finalize();
  const NodeDef& node() const { return *node_; }
  // REQUIRES (all below): Finalize() returned OK.
  const OpDef& op_def() const { return op_->def(); }
  const DataTypeVector& input_types() const { return input_types_; }
  const DataTypeVector& output_types() const { return output_types_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Tensor& input(int i) const { return inputs_[i].value; }

 private:
  struct InputInfo {
    DataType dtype;
    PartialTensorShape shape;
    // The value if `known`; otherwise empty.
    Tensor value;
    bool known;
  };
  // The shapes and values of inputs that the shape function can see.
  struct Knowledge {
    std::vector<PartialTensorShape> shapes;
    std::vector<const Tensor*> values;
  };

  void InferTypesAndNumbers(const OpDef& op_def);
  // Returns true if input i is the value of a variable. REQUIRES: Finalize() returned OK
  bool IsVariable(size_t i) const;
  // Removes reference outputs from the outputs of RunKernel().
  std::vector<Tensor> WithoutReferences(std::vector<Tensor> outputs) const;
  absl::StatusOr<std::unique_ptr<OpKernel>> CreateKernel();
  absl::StatusOr<std::vector<Tensor>> KnownInputs(bool copies) const;
  // Returns the outputs, including the values of reference outputs, and then the values of the
  // variables.
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
  // The first error of any input.
  absl::Status status_;
  const OpRegistration* op_ = nullptr;
  DataTypeVector input_types_;
  DataTypeVector output_types_;
  bool shape_is_data_ = false;
  StopToken* stop_ = nullptr;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_OP_TESTER_H_
