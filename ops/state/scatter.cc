// Ops that update slices of variables, selected by indices or by tuples of indices.
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/array/nd_indices.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::scatter {
namespace {

// Returns INVALID_ARGUMENT unless `updates` may be a scalar or has a slice for each index.
absl::Status CheckUpdates(const PartialTensorShape& indices, const PartialTensorShape& updates,
                          absl::string_view name, const PartialTensorShape& params) {
  if (!params.unknown_rank() && params.dims() == 0) {
    return errors::InvalidArgument(name, " must have at least 1 dimension, but is a scalar");
  }
  if (updates.unknown_rank() || updates.dims() == 0) return absl::OkStatus();
  if (indices.unknown_rank() || params.unknown_rank()) return absl::OkStatus();
  DimVector expected(indices.dim_sizes().begin(), indices.dim_sizes().end());
  expected.insert(expected.end(), params.dim_sizes().begin() + 1, params.dim_sizes().end());
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, PartialTensorShape::Make(expected));
  if (updates.IsCompatibleWith(shape)) return absl::OkStatus();
  // Programs may expect TensorFlow's wording.
  return errors::InvalidArgument(
      "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
      "updates.shape ",
      updates.DebugString(), ", indices.shape ", indices.DebugString(), ", params.shape ",
      params.DebugString(), " (of ", name, ")");
}

// The shape function of ops whose indices select slices along dimension 0. `updates` may be a
// scalar.
absl::Status ScatterShape(ShapeContext& c) {
  const PartialTensorShape variable = c.variable_shape(0);
  if (c.num_outputs() > 0) c.set_output(0, variable);
  return CheckUpdates(c.input(1), c.input(2), "the variable", variable);
}

absl::Status ScatterNdShape(ShapeContext& c) {
  const PartialTensorShape variable = c.variable_shape(0);
  if (c.num_outputs() > 0) c.set_output(0, variable);
  return CheckScatterUpdates(c.input(1), c.input(2), "the variable", variable);
}

// Returns INVALID_ARGUMENT if an integer divisor is 0.
absl::Status CheckDivisors(const Tensor& divisors) {
  bool has_zero = false;
  DispatchType(IntegerTypes(), divisors.dtype(), [&](auto tag) {
    for (const auto divisor : divisors.span<typename decltype(tag)::type>()) {
      has_zero |= divisor == 0;
    }
  });
  return has_zero ? errors::InvalidArgument("updates has a divisor of 0") : absl::OkStatus();
}

template <Accumulation A>
class ScatterKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    accumulate_ = FindAccumulation(A, construction.input_type(2));
    by_tuples_ = absl::StrContains(construction.op_def().name(), "Nd");
    if (!by_tuples_) return absl::OkStatus();
    return ReadIgnoresBadIndices(construction, &ignores_bad_indices_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& updates = ctx.input(2);
    Tensor indices = ctx.input(1);
    if (A == Accumulation::kDiv) GRADFLOW_RETURN_IF_ERROR(CheckDivisors(updates));
    VariableUpdate update;
    GRADFLOW_RETURN_IF_ERROR(update.Begin(ctx, {0}, updates.dtype()));
    const TensorShape shape = update.value(0).shape();
    const std::string name =
        absl::StrCat("variable '", errors::Printable(update.variable(0).name()), "'");
    // Checks everything before changing anything.
    if (by_tuples_) {
      GRADFLOW_RETURN_IF_ERROR(CheckScatterUpdates(indices.shape(), updates.shape(), name, shape));
      if (!ignores_bad_indices_) {
        GRADFLOW_RETURN_IF_ERROR(CheckNdIndices(ctx.run(), indices, shape, name));
      }
    } else {
      GRADFLOW_RETURN_IF_ERROR(CheckUpdates(indices.shape(), updates.shape(), name, shape));
      GRADFLOW_RETURN_IF_ERROR(CheckIndices(ctx.run(), indices, shape.dim_size(0)));
      TensorShape tuples = indices.shape();
      tuples.AddDim(1);
      GRADFLOW_ASSIGN_OR_RETURN(indices, indices.Reshaped(tuples));
    }
    GRADFLOW_RETURN_IF_ERROR(update.MakeWritable());
    Tensor& value = update.value(0);
    if (updates.dtype() == DT_STRING && value.NumElements() > 0) {
      const size_t repeats = updates.dims() == 0 ? value.NumElements() : 1;
      GRADFLOW_RETURN_IF_ERROR(
          value.ChargeStrings(value.StringBytes() + updates.StringBytes() * repeats));
    }
    GRADFLOW_RETURN_IF_ERROR(ScatterSlices(update.run(), accumulate_, indices, updates,
                                           ignores_bad_indices_, name, &value));
    if (value.NumElements() > 0) GRADFLOW_RETURN_IF_ERROR(value.ChargeStrings());
    if (ctx.num_outputs() > 0) ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }

 private:
  AccumulateFn accumulate_ = nullptr;
  bool by_tuples_ = false;
  bool ignores_bad_indices_ = false;
};

// An accumulation and its documentation.
struct Update {
  const char* name;
  const char* summary;
  KernelFactory factory;
  // The accumulation that determines the supported types.
  Accumulation accumulation;
};

constexpr char kIndexDoc[] = R"(

An index selects the slice `[index, ...]` of the variable. Updates of the same slice are applied in
their order. If an index is out of range, nothing changes.
)";
constexpr char kTupleDoc[] = R"(

The last dimension of `indices` is the depth of its tuples of indices. A tuple selects the slice
`[i0, i1, ...]` of the variable. Updates of the same slice are applied in their order. If a tuple is
out of range and this is an error, nothing changes.
)";
constexpr char kBoolDoc[] =
    "\nThe sum of two bools is true if either is true. Their difference is true if they differ.\n";
constexpr char kTupleArguments[] = R"(indices: The tuples, in the last dimension.
updates: The updates, of the shape `indices.shape[:-1] + shape[depth:]`, where `shape` is the shape
  of the variable.
T: The type of the variable.
Tindices: The type of `indices`.
use_locking: Has no effect: concurrent updates are applied one after the other.
bad_indices_policy: The treatment of tuples out of range: an error for "", "DEFAULT" and "ERROR".
  "IGNORE" ignores their updates.)";
constexpr char kRefArguments[] = R"(
ref: The variable.
output_ref: The variable, for nodes that use it after the update.
)";

}  // namespace

void Register(Registry& registry) {
  const Update updates[] = {
      {"Update", "Replaces slices of a variable", MakeKernel<ScatterKernel<Accumulation::kUpdate>>,
       Accumulation::kUpdate},
      {"Add", "Adds to slices of a variable", MakeKernel<ScatterKernel<Accumulation::kAdd>>,
       Accumulation::kAdd},
      {"Sub", "Subtracts from slices of a variable", MakeKernel<ScatterKernel<Accumulation::kSub>>,
       Accumulation::kSub},
      {"Mul", "Multiplies slices of a variable", MakeKernel<ScatterKernel<Accumulation::kMul>>,
       Accumulation::kMul},
      {"Div", "Divides slices of a variable", MakeKernel<ScatterKernel<Accumulation::kDiv>>,
       Accumulation::kDiv},
      {"Min", "Takes minima with slices of a variable",
       MakeKernel<ScatterKernel<Accumulation::kMin>>, Accumulation::kMin},
      {"Max", "Takes maxima with slices of a variable",
       MakeKernel<ScatterKernel<Accumulation::kMax>>, Accumulation::kMax},
  };
  for (const Update& update : updates) {
    const bool is_update = update.accumulation == Accumulation::kUpdate;
    const bool is_order =
        update.accumulation == Accumulation::kMin || update.accumulation == Accumulation::kMax;
    const bool by_tuples =
        update.accumulation != Accumulation::kMul && update.accumulation != Accumulation::kDiv;
    DataTypeVector types = AccumulationTypes(update.accumulation);
    if (is_update) {
      types.push_back(DT_BOOL);
      types.push_back(DT_STRING);
      types.push_back(DT_RESOURCE);
      types.push_back(DT_VARIANT);
    }
    const std::string locking = absl::StrCat("use_locking: bool = ", is_update ? "true" : "false");

    const std::string op = absl::StrCat("Scatter", update.name);
    registry.Op(op)
        .Group("state_ops")
        .Input("ref: Ref(T)")
        .Input("indices: Tindices")
        .Input("updates: T")
        .Output("output_ref: Ref(T)")
        .Attr(is_update  ? "T: type"
              : is_order ? "T: {half, bfloat16, float, double, int32, int64}"
                         : "T: numbertype")
        .Attr("Tindices: {int32, int64}")
        .Attr(locking)
        .Shape(ScatterShape)
        .Doc(absl::StrCat(update.summary, ", by indices.", kIndexDoc, kRefArguments,
                          R"(indices: The indices.
updates: The updates, of the shape `indices.shape + shape[1:]`, where `shape` is the shape of the
  variable; or a scalar for all slices.
T: The type of the variable.
Tindices: The type of `indices`.
use_locking: Has no effect: concurrent updates are applied one after the other.)"));
    registry.Kernel(op, update.factory).Types("T", types);

    const std::string resource_op = absl::StrCat("ResourceScatter", update.name);
    registry.Op(resource_op)
        .Group("resource_variable_ops")
        .Input("resource: resource")
        .Input("indices: Tindices")
        .Input("updates: dtype")
        .Attr(is_update ? "dtype: type" : "dtype: numbertype")
        .Attr("Tindices: {int32, int64}")
        .Shape(ScatterShape)
        .Doc(absl::StrCat(update.summary, ", by indices.", kIndexDoc, R"(
resource: The variable.
indices: The indices.
updates: The updates, of the shape `indices.shape + shape[1:]`, where `shape` is the shape of the
  variable; or a scalar for all slices.
dtype: The type of the variable.
Tindices: The type of `indices`.)"));
    registry.Kernel(resource_op, update.factory).Types("dtype", types);
    if (!by_tuples) continue;

    const std::string nd_op = absl::StrCat("ScatterNd", update.name);
    registry.Op(nd_op)
        .Group("state_ops")
        .Input("ref: Ref(T)")
        .Input("indices: Tindices")
        .Input("updates: T")
        .Output("output_ref: Ref(T)")
        .Attr(is_update ? "T: type" : "T: numbertype")
        .Attr("Tindices: {int32, int64}")
        .Attr(locking)
        .Attr("bad_indices_policy: string = ''")
        .Shape(ScatterNdShape)
        .Doc(absl::StrCat(update.summary, ", by tuples of indices.", kTupleDoc, kRefArguments,
                          kTupleArguments));
    registry.Kernel(nd_op, update.factory).Types("T", types);

    // As in TensorFlow, bools have addition and subtraction only.
    if (update.accumulation == Accumulation::kAdd || update.accumulation == Accumulation::kSub) {
      types.push_back(DT_BOOL);
    }
    const std::string resource_nd_op = absl::StrCat("ResourceScatterNd", update.name);
    registry.Op(resource_nd_op)
        .Group("state_ops")
        .Input("ref: resource")
        .Input("indices: Tindices")
        .Input("updates: T")
        .Attr("T: type")
        .Attr("Tindices: {int32, int64}")
        .Attr("use_locking: bool = true")
        .Attr("bad_indices_policy: string = ''")
        .Shape(ScatterNdShape)
        .Doc(absl::StrCat(update.summary, ", by tuples of indices.", kTupleDoc, kBoolDoc,
                          "\nref: The variable.\n", kTupleArguments));
    registry.Kernel(resource_nd_op, update.factory).Types("T", types);
  }
}

}  // namespace gradflow::scatter
