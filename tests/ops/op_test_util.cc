#include "tests/ops/op_test_util.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace testing {
namespace {

// Bit patterns, except that every NaN is the same.
bool SameElement(const Tensor& a, const Tensor& b, int64_t i) {
  if (a.dtype() == DT_STRING) return a.flat<tstring>()(i) == b.flat<tstring>()(i);
  bool both_nan = false;
  DispatchType(FloatingTypes(), a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    both_nan = std::isnan(static_cast<double>(a.flat<T>()(i))) &&
               std::isnan(static_cast<double>(b.flat<T>()(i)));
  });
  const size_t size = DataTypeSize(a.dtype());
  const auto* bytes_a = static_cast<const char*>(a.raw_data()) + i * size;
  const auto* bytes_b = static_cast<const char*>(b.raw_data()) + i * size;
  return both_nan || std::memcmp(bytes_a, bytes_b, size) == 0;
}

bool SameTypeAndShape(const Tensor& actual, const Tensor& expected) {
  EXPECT_EQ(DataTypeString(actual.dtype()), DataTypeString(expected.dtype()));
  EXPECT_EQ(actual.shape().DebugString(), expected.shape().DebugString());
  EXPECT_TRUE(actual.IsInitialized());
  EXPECT_TRUE(expected.IsInitialized());
  return actual.dtype() == expected.dtype() && actual.shape() == expected.shape() &&
         actual.IsInitialized() && expected.IsInitialized();
}

// The relative and absolute error that a few roundings in the type leave.
std::pair<double, double> DefaultTolerance(DataType dtype) {
  switch (dtype) {
    case DT_HALF:
      return {2e-3, 1e-4};
    case DT_BFLOAT16:
      return {1.6e-2, 1e-4};
    case DT_FLOAT:
    case DT_COMPLEX64:
      return {1e-5, 1e-6};
    case DT_DOUBLE:
    case DT_COMPLEX128:
      return {1e-12, 1e-13};
    default:
      return {0, 0};
  }
}

std::string Summary(const Tensor& tensor) { return tensor.DebugString(20); }

}  // namespace

Tensor RandomTensor(DataType dtype, const TensorShape& shape, double low, double high,
                    uint32_t seed) {
  Tensor tensor(dtype, shape);
  // mt19937 is the same everywhere, unlike the distributions of the standard library.
  std::mt19937 generator(seed);
  const auto uniform = [&] { return low + (high - low) * (generator() / 4294967296.0); };
  const bool numeric = DispatchType(NumberTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& element : tensor.flat<T>()) {
      if constexpr (kIsComplex<T>) {
        const double real = uniform();
        element = T(real, uniform());
      } else {
        element = static_cast<T>(uniform());
      }
    }
  });
  EXPECT_TRUE(numeric) << "RandomTensor of " << DataTypeString(dtype);
  return tensor;
}

Tensor DistinctTensor(DataType dtype, const TensorShape& shape) {
  Tensor tensor(dtype, shape);
  if (dtype == DT_STRING) {
    int64_t i = 0;
    for (tstring& element : tensor.flat<tstring>()) {
      element = absl::StrCat("an element that lives on the heap: ", i++);
    }
    return tensor;
  }
  static const auto* tiny = new std::set<DataType>{DT_BOOL, DT_INT4, DT_UINT4, DT_INT2, DT_UINT2};
  const size_t size = DataTypeSize(dtype);
  for (int64_t i = 0; i < tensor.NumElements(); ++i) {
    const int64_t value = tiny->count(dtype) > 0 ? i % 3 % 2 : i + 1;
    const int64_t words[2] = {value, ~value};
    std::memcpy(static_cast<char*>(tensor.raw_data()) + i * size, words, size);
  }
  return tensor;
}

const DataTypeVector& TensorTypes() {
  static const auto* types = [] {
    auto* result = new DataTypeVector;
    for (const DataType dtype : AllDataTypes()) {
      if (DataTypeCanBeTensor(dtype)) result->push_back(dtype);
    }
    return result;
  }();
  return *types;
}

Tensor Rearranged(const Tensor& source, const TensorShape& shape,
                  const std::function<int64_t(const std::vector<int64_t>& index)>& source_index) {
  Tensor result(source.dtype(), shape);
  std::vector<int64_t> index(shape.dims());
  const size_t size = DataTypeSize(source.dtype());
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    int64_t rest = i;
    for (int d = shape.dims() - 1; d >= 0; --d) {
      index[d] = rest % shape.dim_size(d);
      rest /= shape.dim_size(d);
    }
    const int64_t from = source_index(index);
    EXPECT_TRUE(from >= 0 && from < source.NumElements()) << from;
    if (source.dtype() == DT_STRING) {
      result.flat<tstring>()(i) = source.flat<tstring>()(from);
    } else {
      std::memcpy(static_cast<char*>(result.raw_data()) + i * size,
                  static_cast<const char*>(source.raw_data()) + from * size, size);
    }
  }
  return result;
}

std::vector<double> AsDoubles(const Tensor& tensor) {
  std::vector<double> values;
  using Types = ConcatTypes<NumberTypes, TypeList<bool>>::type;
  const bool numeric = DispatchType(Types(), tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T& element : tensor.flat<T>()) {
      if constexpr (kIsComplex<T>) {
        values.push_back(element.real());
        values.push_back(element.imag());
      } else {
        values.push_back(static_cast<double>(element));
      }
    }
  });
  EXPECT_TRUE(numeric) << "AsDoubles of " << DataTypeString(tensor.dtype());
  return values;
}

void ExpectTensorEqual(const Tensor& actual, const Tensor& expected) {
  if (!SameTypeAndShape(actual, expected)) return;
  for (int64_t i = 0; i < actual.NumElements(); ++i) {
    if (!SameElement(actual, expected, i)) {
      ADD_FAILURE() << "element " << i << " differs\nactual:   " << Summary(actual)
                    << "\nexpected: " << Summary(expected);
      return;
    }
  }
}

void ExpectTensorEqual(const absl::StatusOr<Tensor>& actual, const Tensor& expected) {
  EXPECT_OK(actual);
  if (actual.ok()) ExpectTensorEqual(*actual, expected);
}

void ExpectClose(const Tensor& actual, const Tensor& expected, double rtol, double atol) {
  if (!SameTypeAndShape(actual, expected)) return;
  const auto [default_rtol, default_atol] = DefaultTolerance(actual.dtype());
  if (rtol < 0) rtol = default_rtol;
  if (atol < 0) atol = default_atol;
  const std::vector<double> found = AsDoubles(actual);
  const std::vector<double> wanted = AsDoubles(expected);
  for (size_t i = 0; i < found.size(); ++i) {
    const double f = found[i];
    const double w = wanted[i];
    const bool close = std::isfinite(f) && std::isfinite(w)
                           ? std::abs(f - w) <= atol + rtol * std::abs(w)
                           : f == w || (std::isnan(f) && std::isnan(w));
    if (!close) {
      ADD_FAILURE() << "element " << i << " is " << f << ", expected " << w << " (difference "
                    << f - w << ", allowed " << atol + rtol * std::abs(w)
                    << ")\nactual:   " << Summary(actual) << "\nexpected: " << Summary(expected);
      return;
    }
  }
}

void ExpectClose(const absl::StatusOr<Tensor>& actual, const Tensor& expected, double rtol,
                 double atol) {
  EXPECT_OK(actual);
  if (actual.ok()) ExpectClose(*actual, expected, rtol, atol);
}

OpTester::OpTester(absl::string_view op, const Registry& registry) : registry_(registry) {
  node_.set_name("node");
  node_.set_op(std::string(op));
}

OpTester& OpTester::Input(const Tensor& tensor) {
  inputs_.push_back({tensor.dtype(), tensor.shape(), tensor, true});
  return *this;
}

OpTester& OpTester::Inputs(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) Input(tensor);
  return *this;
}

OpTester& OpTester::UnknownInput(DataType dtype, const PartialTensorShape& shape) {
  inputs_.push_back({dtype, shape, Tensor(), false});
  return *this;
}

// Attributes that the node does not have and that follow from the inputs given.
void OpTester::InferTypesAndNumbers(const OpDef& op_def) {
  const auto is_set = [&](const std::string& name) { return FindNodeAttr(node_, name) != nullptr; };
  // The number of inputs of each argument, or -1; at most one attribute can be solved for.
  std::vector<int> counts;
  int known = 0;
  int unknown = 0;
  for (const OpDef::ArgDef& arg : op_def.input_arg()) {
    int64_t count = 1;
    DataTypeVector types;
    if (!arg.number_attr().empty()) {
      count = GetNodeAttr(node_, arg.number_attr(), &count).ok() ? count : -1;
    } else if (!arg.type_list_attr().empty()) {
      count = GetNodeAttr(node_, arg.type_list_attr(), &types).ok() ? types.size() : -1;
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
}

absl::Status OpTester::Finalize() {
  GRADFLOW_RETURN_IF_ERROR(registry_.status());
  GRADFLOW_ASSIGN_OR_RETURN(op_, registry_.LookUpOp(node_.op()));
  InferTypesAndNumbers(op_->def());
  node_.clear_input();
  for (size_t i = 0; i < inputs_.size(); ++i) node_.add_input(absl::StrCat("input", i));
  AddDefaultsToNodeDef(op_->def(), &node_);
  GRADFLOW_RETURN_IF_ERROR(ValidateNodeDef(node_, op_->def()));
  input_types_.clear();
  output_types_.clear();
  GRADFLOW_RETURN_IF_ERROR(InOutTypesForNode(node_, op_->def(), &input_types_, &output_types_));
  DataTypeVector given;
  for (const InputInfo& input : inputs_) given.push_back(input.dtype);
  if (given != input_types_) {
    return errors::InvalidArgument("inputs must have types ", DataTypeVectorString(input_types_),
                                   ", but have ", DataTypeVectorString(given));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpKernel>> OpTester::CreateKernel() {
  GRADFLOW_RETURN_IF_ERROR(Finalize());
  GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* kernel, registry_.FindKernel(node_));
  return kernel->factory(KernelConstruction(node_, op_->def(), input_types_, output_types_));
}

absl::Status OpTester::MakeKernel() { return CreateKernel().status(); }

absl::StatusOr<std::vector<Tensor>> OpTester::RunOnThreads(int threads) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpKernel> kernel, CreateKernel());
  return RunKernel(*kernel, threads, /*own_inputs=*/false);
}

absl::StatusOr<std::vector<Tensor>> OpTester::RunKernel(const OpKernel& kernel, int threads,
                                                        bool own_inputs) {
  std::vector<Tensor> inputs;
  for (const InputInfo& input : inputs_) {
    if (own_inputs) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor copy, input.value.DeepCopy());
      inputs.push_back(std::move(copy));
    } else {
      inputs.push_back(input.value);
    }
  }
  std::vector<Tensor> outputs(output_types_.size());
  KernelContext context(absl::MakeSpan(inputs), absl::MakeSpan(outputs), output_types_,
                        SystemAllocator());
  absl::Status status;
  // More threads than processors, so that a test means the same on any machine.
  const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, 8);
  tbb::task_arena(threads).execute([&] { status = kernel.Compute(context); });
  if (!status.ok()) {
    EXPECT_NE(status.message(), "");
    return status;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(DataTypeString(outputs[i].dtype()), DataTypeString(output_types_[i]))
        << "output " << i;
    EXPECT_TRUE(outputs[i].IsInitialized()) << "output " << i;
  }
  return outputs;
}

absl::StatusOr<std::vector<Tensor>> OpTester::Run() {
  SCOPED_TRACE(absl::StrCat("OpTester(\"", node_.op(), "\")"));
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpKernel> kernel, CreateKernel());
  std::vector<Tensor> before;
  for (const InputInfo& input : inputs_) {
    if (!input.known) return errors::FailedPrecondition("Run() needs the value of every input");
    GRADFLOW_ASSIGN_OR_RETURN(Tensor copy, input.value.DeepCopy());
    before.push_back(std::move(copy));
  }
  absl::StatusOr<std::vector<Tensor>> outputs = RunKernel(*kernel, /*threads=*/1, false);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("input ", i, ", which the kernel must not change"));
    ExpectTensorEqual(inputs_[i].value, before[i]);
  }
  const absl::StatusOr<std::vector<Tensor>> again = RunKernel(*kernel, /*threads=*/4, true);
  EXPECT_EQ(outputs.status(), again.status());
  if (outputs.ok() && again.ok()) {
    for (size_t i = 0; i < outputs->size(); ++i) {
      SCOPED_TRACE(absl::StrCat("output ", i, " with 4 threads, in place where possible"));
      ExpectTensorEqual((*again)[i], (*outputs)[i]);
    }
  }
  CheckShapes(outputs);
  return outputs;
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
    return errors::Internal("op '", node_.op(), "' has no shape function");
  }
  std::vector<const PartialTensorShape*> shapes;
  shapes.reserve(knowledge.shapes.size());
  for (const PartialTensorShape& shape : knowledge.shapes) shapes.push_back(&shape);
  const auto constant = [&](int i) { return knowledge.values[i]; };
  ShapeContext context(node_, op_->def(), shapes, input_types_,
                       static_cast<int>(output_types_.size()), constant);
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
  EXPECT_OK(shapes);
  if (!shapes.ok()) return;
  for (size_t i = 0; i < outputs->size(); ++i) {
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
