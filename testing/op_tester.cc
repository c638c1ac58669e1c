#include "gradflow/testing/op_tester.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/io/file_access.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"

namespace gradflow {
namespace testing {
namespace {

// Allows arenas with more threads than the machine has processors. The limit stays, because oneTBB
// warns when it is lowered again.
void AllowManyThreads() {
  constexpr size_t kMax = 64;
  alignas(tbb::global_control) static unsigned char storage[sizeof(tbb::global_control)];
  static const auto* const allow =
      new (storage) tbb::global_control(tbb::global_control::max_allowed_parallelism, kMax);
  (void)allow;
}

// Restores the SIMD target at the end of the scope.
class ScopedSimdTarget {
 public:
  ScopedSimdTarget() = default;
  ~ScopedSimdTarget() { SetSimdTarget(""); }
  ScopedSimdTarget(const ScopedSimdTarget&) = delete;
  ScopedSimdTarget& operator=(const ScopedSimdTarget&) = delete;
};

void ExpectSameOutputs(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                       absl::string_view where) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_THAT(actual[i], TensorEq(expected[i])) << "output " << i << " " << where;
  }
}

}  // namespace

OpTester::OpTester(absl::string_view op, const Registry& registry)
    : registry_(&registry), node_(std::make_unique<NodeDef>()) {
  node_->set_name("node");
  node_->set_op(std::string(op));
}

OpTester::~OpTester() = default;

OpTester::OpTester(const OpTester& other)
    : registry_(other.registry_),
      node_(std::make_unique<NodeDef>(*other.node_)),
      inputs_(other.inputs_),
      status_(other.status_),
      op_(other.op_),
      input_types_(other.input_types_),
      output_types_(other.output_types_),
      shape_is_data_(other.shape_is_data_) {}

OpTester& OpTester::operator=(const OpTester& other) {
  if (this == &other) return *this;
  registry_ = other.registry_;
  *node_ = *other.node_;
  inputs_ = other.inputs_;
  status_ = other.status_;
  op_ = other.op_;
  input_types_ = other.input_types_;
  output_types_ = other.output_types_;
  shape_is_data_ = other.shape_is_data_;
  return *this;
}

OpTester& OpTester::Input(const Tensor& tensor) {
  inputs_.push_back({tensor.dtype(), tensor.shape(), tensor, true});
  return *this;
}

OpTester& OpTester::RandomInput(DataType dtype, const TensorShape& shape,
                                const Distribution& distribution, uint32_t seed) {
  return Input(RandomTensor(dtype, shape, distribution,
                            seed == 0 ? static_cast<uint32_t>(inputs_.size()) + 1 : seed));
}

OpTester& OpTester::InputFromNpy(const std::string& path) {
  absl::StatusOr<Tensor> tensor = ReadNpy(path);
  if (status_.ok()) status_ = tensor.status();
  return Input(tensor.ok() ? *std::move(tensor) : Tensor());
}

OpTester& OpTester::Inputs(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) Input(tensor);
  return *this;
}

OpTester& OpTester::UnknownInput(DataType dtype, const PartialTensorShape& shape) {
  inputs_.push_back({dtype, shape, Tensor(), false});
  return *this;
}

// Sets missing attributes that can be inferred from the inputs.
void OpTester::InferTypesAndNumbers(const OpDef& op_def) {
  const auto is_set = [&](const std::string& name) {
    return FindNodeAttr(*node_, name) != nullptr;
  };
  // The number of inputs of each argument, or -1 if unknown. The arguments with unknown numbers get
  // equal parts of the inputs.
  std::vector<int> counts;
  int known = 0;
  int unknown = 0;
  for (const OpDef::ArgDef& arg : op_def.input_arg()) {
    int64_t count = 1;
    DataTypeVector types;
    if (!arg.number_attr().empty()) {
      count = GetNodeAttr(*node_, arg.number_attr(), &count).ok() ? count : -1;
    } else if (!arg.type_list_attr().empty()) {
      count = GetNodeAttr(*node_, arg.type_list_attr(), &types).ok() ? types.size() : -1;
    }
    counts.push_back(static_cast<int>(count));
    (count < 0 ? unknown : known) += count < 0 ? 1 : static_cast<int>(count);
  }
  size_t next = 0;
  for (int a = 0; a < op_def.input_arg_size(); ++a) {
    const OpDef::ArgDef& arg = op_def.input_arg(a);
    const int left = static_cast<int>(inputs_.size()) - known;
    const int count = counts[a] >= 0 ? counts[a] : left / unknown;
    DataTypeVector types;
    for (int i = 0; i < count && next < inputs_.size(); ++i) types.push_back(inputs_[next++].dtype);
    if (!arg.number_attr().empty() && !is_set(arg.number_attr())) Attr(arg.number_attr(), count);
    if (!arg.type_list_attr().empty() && !is_set(arg.type_list_attr())) {
      Attr(arg.type_list_attr(), types);
    }
    if (!arg.type_attr().empty() && !is_set(arg.type_attr()) && !types.empty()) {
      Attr(arg.type_attr(), types[0]);
    }
  }
  // The type of a resource variable is an attribute, which the type of the argument (resource) does
  // not determine. Sets the attribute to the type of the given value.
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    const bool names_type = attr.name() == "dtype" || attr.name() == "T";
    if (attr.type() == "type" && names_type && !is_set(attr.name()) && !inputs_.empty() &&
        inputs_[0].dtype != DT_RESOURCE && op_def.input_arg(0).type() == DT_RESOURCE) {
      Attr(attr.name(), inputs_[0].dtype);
    }
  }
}

absl::Status OpTester::Finalize() {
  GRADFLOW_RETURN_IF_ERROR(status_);
  GRADFLOW_RETURN_IF_ERROR(registry_->status());
  GRADFLOW_ASSIGN_OR_RETURN(op_, registry_->LookUpOp(node_->op()));
  InferTypesAndNumbers(op_->def());
  node_->clear_input();
  for (size_t i = 0; i < inputs_.size(); ++i) node_->add_input(absl::StrCat("input", i));
  AddDefaultsToNodeDef(op_->def(), node_.get());
  GRADFLOW_RETURN_IF_ERROR(ValidateNodeDef(*node_, op_->def()));
  input_types_.clear();
  output_types_.clear();
  GRADFLOW_RETURN_IF_ERROR(InOutTypesForNode(*node_, op_->def(), &input_types_, &output_types_));
  DataTypeVector given;
  for (const InputInfo& input : inputs_) {
    given.push_back(input.dtype);
    // A variable is given by its value.
    if (given.size() <= input_types_.size() && IsVariable(given.size() - 1)) {
      const DataType expected = input_types_[given.size() - 1];
      if (expected == DT_RESOURCE || BaseType(expected) == input.dtype) given.back() = expected;
    }
  }
  if (given != input_types_) {
    return errors::InvalidArgument("inputs must have types ", DataTypeVectorString(input_types_),
                                   ", but have ", DataTypeVectorString(given));
  }
  return absl::OkStatus();
}

bool OpTester::IsVariable(size_t i) const {
  return inputs_[i].dtype != DT_RESOURCE &&
         (input_types_[i] == DT_RESOURCE || IsRefType(input_types_[i]));
}

std::vector<Tensor> OpTester::WithoutReferences(std::vector<Tensor> outputs) const {
  std::vector<Tensor> kept;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i >= output_types_.size() || !IsRefType(output_types_[i])) kept.push_back(outputs[i]);
  }
  return kept;
}

absl::StatusOr<std::unique_ptr<OpKernel>> OpTester::CreateKernel() {
  GRADFLOW_RETURN_IF_ERROR(Finalize());
  GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* kernel, registry_->FindKernel(*node_));
  return kernel->factory(KernelConstruction(*node_, op_->def(), input_types_, output_types_));
}

absl::Status OpTester::MakeKernel() { return CreateKernel().status(); }

absl::StatusOr<std::vector<Tensor>> OpTester::RunOnThreads(int threads) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpKernel> kernel, CreateKernel());
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<Tensor> inputs, KnownInputs(/*copies=*/false));
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                            RunKernel(*kernel, threads, std::move(inputs)));
  return WithoutReferences(std::move(outputs));
}

absl::StatusOr<std::vector<Tensor>> OpTester::RunOn(std::vector<Tensor> inputs) {
  if (inputs_.empty()) {
    // The attributes determine the types.
    GRADFLOW_ASSIGN_OR_RETURN(op_, registry_->LookUpOp(node_->op()));
    AddDefaultsToNodeDef(op_->def(), node_.get());
    DataTypeVector types;
    DataTypeVector unused;
    GRADFLOW_RETURN_IF_ERROR(InOutTypesForNode(*node_, op_->def(), &types, &unused));
    for (const DataType type : types) UnknownInput(type);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpKernel> kernel, CreateKernel());
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                            RunKernel(*kernel, /*threads=*/1, std::move(inputs)));
  return WithoutReferences(std::move(outputs));
}

absl::StatusOr<std::vector<Tensor>> OpTester::KnownInputs(bool copies) const {
  std::vector<Tensor> inputs;
  for (const InputInfo& input : inputs_) {
    if (!input.known) return errors::FailedPrecondition("a run needs the value of every input");
    inputs.push_back(input.value);
    if (copies) {
      GRADFLOW_ASSIGN_OR_RETURN(inputs.back(), input.value.DeepCopy());
    }
  }
  return inputs;
}

absl::StatusOr<std::vector<Tensor>> OpTester::RunKernel(const OpKernel& kernel, int threads,
                                                        std::vector<Tensor> inputs) {
  std::vector<Tensor> outputs(output_types_.size());
  std::vector<std::shared_ptr<Variable>> variables;
  for (size_t i = 0; i < inputs.size() && i < inputs_.size(); ++i) {
    if (!IsVariable(i) || inputs[i].dtype() == DT_RESOURCE) continue;
    const TensorShape shape = inputs[i].shape();
    variables.push_back(
        std::make_shared<Variable>(inputs[i].dtype(), shape, absl::StrCat("input", i)));
    const ResourceHandle handle(variables.back(), variables.back()->name());
    GRADFLOW_RETURN_IF_ERROR(variables.back()->Assign(std::exchange(inputs[i], Tensor(handle))));
  }
  DataTypeVector slot_types;
  for (const DataType dtype : output_types_) slot_types.push_back(TypeOfSlot(dtype));
  RunContext run;
  run.stop = stop_;
  run.files = &FileAccess::All();
  KernelContext context(absl::MakeSpan(inputs), absl::MakeSpan(outputs), slot_types, run);
  absl::Status status;
  AllowManyThreads();
  tbb::task_arena(threads).execute([&] { status = kernel.Compute(context); });
  if (!status.ok()) {
    EXPECT_NE(status.message(), "");
    return status;
  }
  for (const int dead : context.dead_outputs()) {
    outputs[static_cast<size_t>(dead)] = Tensor(Tensor::Unset());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    // The output is dead.
    if (outputs[i].dtype() == DT_INVALID) continue;
    EXPECT_EQ(DataTypeString(outputs[i].dtype()), DataTypeString(slot_types[i])) << "output " << i;
    EXPECT_TRUE(outputs[i].IsInitialized()) << "output " << i;
    if (!IsRefType(output_types_[i])) continue;
    GRADFLOW_ASSIGN_OR_RETURN(outputs[i], ReadReference(outputs[i]));
  }
  for (const auto& variable : variables) {
    if (!variable->IsInitialized()) continue;
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, variable->Read());
    outputs.push_back(std::move(value));
  }
  return outputs;
}

absl::StatusOr<std::vector<Tensor>> OpTester::Run() {
  SCOPED_TRACE(absl::StrCat("OpTester(\"", node_->op(), "\")"));
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpKernel> kernel, CreateKernel());
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Tensor> before, KnownInputs(/*copies=*/true));
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<Tensor> shared, KnownInputs(/*copies=*/false));
  absl::StatusOr<std::vector<Tensor>> outputs =
      RunKernel(*kernel, /*threads=*/1, std::move(shared));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    EXPECT_THAT(inputs_[i].value, TensorEq(before[i]))
        << "input " << i << ", which the kernel must not change";
  }
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<Tensor> own, KnownInputs(/*copies=*/true));
  // A stateful kernel would continue from its state, so it needs a new kernel.
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpKernel> other, CreateKernel());
  const absl::StatusOr<std::vector<Tensor>> again =
      RunKernel(op_->def().is_stateful() ? *other : *kernel, /*threads=*/4, std::move(own));
  EXPECT_EQ(outputs.status(), again.status());
  if (outputs.ok() && again.ok()) {
    ExpectSameOutputs(*again, *outputs, "with 4 threads, in place where possible");
  }
  CheckShapes(outputs);
  if (!outputs.ok()) return outputs;
  return WithoutReferences(*std::move(outputs));
}

absl::StatusOr<std::vector<Tensor>> OpTester::RunEverywhere(const Everywhere& where) {
  SCOPED_TRACE(absl::StrCat("OpTester(\"", node_->op(), "\")"));
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<Tensor> expected, RunOnThreads(1));
  const std::vector<std::string> targets =
      where.simd_targets.empty() ? SimdTargets() : where.simd_targets;
  const ScopedSimdTarget restore;
  for (const std::string& target : targets) {
    if (!SetSimdTarget(target)) {
      return errors::InvalidArgument("this processor has no instruction set '", target, "'");
    }
    for (const int threads : where.threads) {
      GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, RunOnThreads(threads));
      ExpectSameOutputs(outputs, expected, absl::StrCat("on ", threads, " threads, ", target));
    }
  }
  return expected;
}

absl::StatusOr<Tensor> OpTester::RunOne() {
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, Run());
  if (outputs.size() != 1) {
    return errors::FailedPrecondition("RunOne() of an op with ", outputs.size(), " outputs");
  }
  return outputs[0];
}

absl::StatusOr<std::vector<PartialTensorShape>> OpTester::CallShapeFn(const Knowledge& knowledge) {
  if (op_->shape_fn() == nullptr) {
    return errors::Internal("op '", node_->op(), "' has no shape function");
  }
  std::vector<const PartialTensorShape*> shapes;
  shapes.reserve(knowledge.shapes.size());
  const PartialTensorShape scalar = TensorShape();
  const auto is_variable = [&](int i) {
    return input_types_[i] == DT_RESOURCE && inputs_[i].dtype != DT_RESOURCE;
  };
  for (size_t i = 0; i < knowledge.shapes.size(); ++i) {
    shapes.push_back(is_variable(static_cast<int>(i)) ? &scalar : &knowledge.shapes[i]);
  }
  const auto constant = [&](int i) { return IsVariable(i) ? nullptr : knowledge.values[i]; };
  const auto find_variable = [&](int i, DataType* dtype, PartialTensorShape* shape) {
    if (!is_variable(i)) return false;
    *dtype = inputs_[i].dtype;
    *shape = knowledge.shapes[i];
    return true;
  };
  ShapeContext context(*node_, op_->def(), shapes, input_types_,
                       static_cast<int>(output_types_.size()), constant);
  context.SetFindVariable(find_variable);
  GRADFLOW_RETURN_IF_ERROR(op_->shape_fn()(context));
  std::vector<PartialTensorShape> outputs;
  outputs.reserve(context.num_outputs());
  for (int i = 0; i < context.num_outputs(); ++i) outputs.push_back(context.output(i));
  return outputs;
}

OpTester::Knowledge OpTester::FullKnowledge() const {
  Knowledge knowledge;
  for (const InputInfo& input : inputs_) {
    knowledge.shapes.push_back(input.shape);
    knowledge.values.push_back(input.known ? &input.value : nullptr);
  }
  return knowledge;
}

absl::StatusOr<std::vector<PartialTensorShape>> OpTester::InferShapes() {
  GRADFLOW_RETURN_IF_ERROR(Finalize());
  return CallShapeFn(FullKnowledge());
}

absl::StatusOr<PartialTensorShape> OpTester::InferShape() {
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<PartialTensorShape> shapes, InferShapes());
  if (shapes.size() != 1) {
    return errors::FailedPrecondition("InferShape() of an op with ", shapes.size(), " outputs");
  }
  return shapes[0];
}

void OpTester::CheckShapesAgree(absl::string_view what, const Knowledge& knowledge,
                                const absl::StatusOr<std::vector<Tensor>>& outputs) {
  SCOPED_TRACE(absl::StrCat("shape function: ", what));
  const absl::StatusOr<std::vector<PartialTensorShape>> shapes = CallShapeFn(knowledge);
  if (!outputs.ok()) return;
  GRADFLOW_EXPECT_OK(shapes);
  if (!shapes.ok()) return;
  for (size_t i = 0; i < shapes->size(); ++i) {
    const PartialTensorShape& inferred = (*shapes)[i];
    const TensorShape& actual = (*outputs)[i].shape();
    EXPECT_TRUE(inferred.IsCompatibleWith(actual))
        << "output " << i << " has shape " << actual.DebugString() << ", but was inferred to have "
        << inferred.DebugString();
  }
}

void OpTester::CheckShapes(const absl::StatusOr<std::vector<Tensor>>& outputs) {
  const Knowledge full = FullKnowledge();
  CheckShapesAgree("all inputs known", full, outputs);
  if (const auto shapes = CallShapeFn(full); outputs.ok() && shapes.ok() && !shape_is_data_) {
    for (size_t i = 0; i < shapes->size(); ++i) {
      EXPECT_TRUE((*shapes)[i].IsFullyDefined())
          << "output " << i << " is inferred to have shape " << (*shapes)[i].DebugString()
          << " although all inputs are known, expected " << (*outputs)[i].shape().DebugString();
    }
  }
  Knowledge none;
  Knowledge ranks = full;
  Knowledge no_values = full;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    no_values.values[i] = nullptr;
    ranks.values[i] = nullptr;
    ranks.shapes[i] = PartialTensorShape::UnknownOfRank(full.shapes[i].dims());
    none.shapes.emplace_back();
    none.values.push_back(nullptr);
    Knowledge one_missing = full;
    one_missing.values[i] = nullptr;
    CheckShapesAgree(absl::StrCat("value of input ", i, " not known"), one_missing, outputs);
    one_missing.shapes[i] = PartialTensorShape();
    // A graph that was imported without shapes knows no shapes.
    one_missing.values[i] = full.values[i];
    CheckShapesAgree(absl::StrCat("shape of input ", i, " not known"), one_missing, outputs);
    one_missing.values[i] = nullptr;
    one_missing.shapes[i] = ranks.shapes[i];
    CheckShapesAgree(absl::StrCat("only rank of input ", i, " known"), one_missing, outputs);
    one_missing.shapes[i] = PartialTensorShape();
    CheckShapesAgree(absl::StrCat("nothing of input ", i, " known"), one_missing, outputs);
  }
  CheckShapesAgree("no values known", no_values, outputs);
  CheckShapesAgree("only ranks known", ranks, outputs);
  CheckShapesAgree("nothing known", none, outputs);
}

}  // namespace testing
}  // namespace gradflow
