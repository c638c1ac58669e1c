// ScatterNd, ScatterNdNonAliasingAdd and the TensorScatter ops.
#include <algorithm>
#include <string>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/array/nd_indices.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

absl::Status CheckScatterUpdates(const PartialTensorShape& indices,
                                 const PartialTensorShape& updates, absl::string_view name,
                                 const PartialTensorShape& output) {
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape expected,
                            NdSlicesShape(indices, name, output));
  if (updates.IsCompatibleWith(expected)) return absl::OkStatus();
  return errors::InvalidArgument("updates has shape ", updates.DebugString(), ", expected ",
                                 expected.DebugString(), ", by indices of shape ",
                                 indices.DebugString(), " and ", name, " of shape ",
                                 output.DebugString());
}

absl::Status CheckNdIndices(const RunContext& run, const Tensor& indices_tensor,
                            const TensorShape& output, absl::string_view name) {
  const NdIndices indices(indices_tensor, output);
  FirstBadIndex bad;
  ParallelFor(run, indices.size(), BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (indices.Offset(i) < 0) return bad.Found(i);
    }
  });
  if (bad.any()) return indices.Error(bad.first(), name);
  // Some blocks may have been skipped.
  return CheckStop(run.stop);
}

absl::Status ScatterSlices(const RunContext& run, AccumulateFn accumulate,
                           const Tensor& indices_tensor, const Tensor& updates,
                           bool ignores_bad_indices, absl::string_view name, Tensor* output) {
  // Tasks with fewer columns would spend more time on indices than on elements.
  constexpr int64_t kMinColumns = 256;
  const NdIndices indices(indices_tensor, output->shape());
  const int64_t columns = indices.slice_size();
  const int64_t element = ElementBytes(output->dtype());
  const int64_t step = updates.dims() == 0 ? 0 : 1;
  char* to = static_cast<char*>(output->raw_data());
  const char* from = static_cast<const char*>(updates.raw_data());
  FirstBadIndex bad;
  // Tasks process columns of slices, so that slices at the same position are accumulated in order.
  const auto scatter = [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < indices.size() && (i % 4096 != 0 || !run.ShouldStop()); ++i) {
      const int64_t offset = indices.Offset(i);
      if (offset < 0) {
        bad.Found(i);
        if (!ignores_bad_indices) return;
        continue;
      }
      if (begin == end) continue;
      accumulate(to + (offset + begin) * element, 1, from + step * (i * columns + begin) * element,
                 step, end - begin);
    }
  };
  if (columns == 0) {
    // Checks the indices even if there is nothing to move.
    scatter(0, 0);
  } else {
    const double cost =
        (2 + CopyNanoseconds(output->dtype())) * static_cast<double>(indices.size());
    ParallelFor(run, columns, std::max(kMinColumns, BlockSizeForCost(cost)), scatter);
  }
  if (bad.any() && !ignores_bad_indices) return indices.Error(bad.first(), name);
  return absl::OkStatus();
}

namespace scatter_nd {
namespace {

// ---- ScatterNd ----

absl::Status ScatterNdShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(2));
  GRADFLOW_RETURN_IF_ERROR(CheckScatterUpdates(c.input(0), c.input(1), "output", shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class ScatterNdKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    add_ = FindAccumulation(Accumulation::kAdd, construction.input_type(1));
    return ReadIgnoresBadIndices(construction, &ignores_bad_indices_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "shape"));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(2, "shape"));
    absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
    if (!shape.ok()) return errors::Prefix("shape: ", shape.status());
    GRADFLOW_RETURN_IF_ERROR(
        CheckScatterUpdates(ctx.input(0).shape(), ctx.input(1).shape(), "output", *shape));
    if (ctx.input_dtype(1) == DT_STRING) {
      ctx.ExpectStringBytes(static_cast<double>(ctx.input(1).StringBytes()));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, *shape, &output));
    if (DataTypeIsPlainBytes(output->dtype())) SetZero(ctx.run(), output);
    return ScatterSlices(ctx.run(), add_, ctx.input(0), ctx.input(1), ignores_bad_indices_,
                         "output", output);
  }

 private:
  AccumulateFn add_ = nullptr;
  bool ignores_bad_indices_ = false;
};

// ---- The TensorScatter ops and ScatterNdNonAliasingAdd ----

absl::Status TensorScatterShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(
      CheckScatterUpdates(c.input(1), c.input(2), c.input_name(0), c.input(0)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

template <Accumulation A>
class TensorScatterKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    accumulate_ = FindAccumulation(A, construction.input_type(0));
    name_ = construction.op_def().input_arg(0).name();
    return ReadIgnoresBadIndices(construction, &ignores_bad_indices_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckScatterUpdates(ctx.input(1).shape(), ctx.input(2).shape(), name_,
                                                 ctx.input(0).shape()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(OutputCopy(ctx, 0, &output));
    return ScatterSlices(ctx.run(), accumulate_, ctx.input(1), ctx.input(2), ignores_bad_indices_,
                         name_, output);
  }

 private:
  AccumulateFn accumulate_ = nullptr;
  std::string name_;
  bool ignores_bad_indices_ = false;
};

// Defines an op that scatters into its first input, `tensor`.
Registry::OpRegistrar TensorScatter(Registry& registry, absl::string_view op,
                                    absl::string_view index_types) {
  return std::move(registry.Op(op)
                       .Group("array_ops")
                       .Input("tensor: T")
                       .Input("indices: Tindices")
                       .Input("updates: T")
                       .Output("output: T")
                       .Attr("T: type")
                       .Attr(absl::StrCat("Tindices: ", index_types))
                       .Attr("bad_indices_policy: string = ''")
                       .Shape(TensorScatterShape));
}

// The documentation of the arguments of TensorScatter ops.
constexpr char kArguments[] = R"(

The last dimension of `indices` is the depth of its tuples of indices. A tuple selects the slice
`tensor[i0, i1, ...]`: one element if the depth is the rank of `tensor`. Updates of the same slice
are applied in their order.

tensor: The tensor. It is not changed.
indices: The tuples, in the last dimension.
updates: The updates, of the shape `indices.shape[:-1] + tensor.shape[depth:]`.
output: The updated tensor.
T: The type of `tensor`.
Tindices: The type of `indices`.
bad_indices_policy: The treatment of tuples out of range: an error for "", "DEFAULT" and "ERROR".
  "IGNORE" ignores their updates.)";

}  // namespace

void Register(Registry& registry) {
  DataTypeVector add_types = AccumulationTypes(Accumulation::kAdd);
  const DataTypeVector number_types = add_types;
  add_types.push_back(DT_BOOL);
  const DataTypeVector non_aliasing_types = add_types;
  add_types.push_back(DT_STRING);

  registry.Op("ScatterNd")
      .Group("array_ops")
      .Input("indices: Tindices")
      .Input("updates: T")
      .Input("shape: Tindices")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tindices: {int16, int32, int64}")
      .Attr("bad_indices_policy: string = ''")
      .Shape(ScatterNdShape)
      .Doc(R"(Adds slices to zeros, at tuples of indices.

The last dimension of `indices` is the depth of its tuples of indices. A tuple selects the slice
`output[i0, i1, ...]`: one element if the depth is the rank of the result. Updates of the same slice
are added in their order: bools with "or", strings by concatenation.

indices: The tuples, in the last dimension.
updates: The updates, of the shape `indices.shape[:-1] + shape[depth:]`.
shape: A vector: the shape of the result.
output: The sums.
T: The type of `updates`.
Tindices: The type of `indices` and `shape`.
bad_indices_policy: The treatment of tuples out of range: an error for "", "DEFAULT" and "ERROR".
  "IGNORE" ignores their updates.)");
  registry.Kernel("ScatterNd", MakeKernel<ScatterNdKernel>).Types("T", add_types);

  TensorScatter(registry, "TensorScatterUpdate", "{int16, int32, int64, uint16}")
      .Doc(absl::StrCat("Replaces slices of a tensor, at tuples of indices.", kArguments));
  registry.Kernel("TensorScatterUpdate", MakeKernel<TensorScatterKernel<Accumulation::kUpdate>>);
  TensorScatter(registry, "TensorScatterAdd", "{int32, int64}")
      .Doc(absl::StrCat("Adds to slices of a tensor, at tuples of indices.", kArguments));
  registry.Kernel("TensorScatterAdd", MakeKernel<TensorScatterKernel<Accumulation::kAdd>>)
      .Types("T", number_types);
  TensorScatter(registry, "TensorScatterSub", "{int32, int64}")
      .Doc(absl::StrCat("Subtracts from slices of a tensor, at tuples of indices.", kArguments));
  registry.Kernel("TensorScatterSub", MakeKernel<TensorScatterKernel<Accumulation::kSub>>)
      .Types("T", number_types);
  TensorScatter(registry, "TensorScatterMin", "{int32, int64}")
      .Doc(absl::StrCat("Takes minima with slices of a tensor, at tuples of indices.", kArguments));
  registry.Kernel("TensorScatterMin", MakeKernel<TensorScatterKernel<Accumulation::kMin>>)
      .Types("T", AccumulationTypes(Accumulation::kMin));
  TensorScatter(registry, "TensorScatterMax", "{int32, int64}")
      .Doc(absl::StrCat("Takes maxima with slices of a tensor, at tuples of indices.", kArguments));
  registry.Kernel("TensorScatterMax", MakeKernel<TensorScatterKernel<Accumulation::kMax>>)
      .Types("T", AccumulationTypes(Accumulation::kMax));

  registry.Op("ScatterNdNonAliasingAdd")
      .Group("array_ops")
      .Input("input: T")
      .Input("indices: Tindices")
      .Input("updates: T")
      .Output("output: T")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
          "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool}")
      .Attr("Tindices: {int32, int64}")
      .Attr("bad_indices_policy: string = ''")
      .Shape(TensorScatterShape)
      .Doc(R"(Adds to slices of a tensor, at tuples of indices.

Like `TensorScatterAdd`, but also supports bool, whose elements are combined with "or".

input: The tensor. It is not changed.
indices: The tuples, in the last dimension.
updates: The updates, of the shape `indices.shape[:-1] + input.shape[depth:]`.
output: The updated tensor.
T: The type of `input`.
Tindices: The type of `indices`.
bad_indices_policy: The treatment of tuples out of range: an error for "", "DEFAULT" and "ERROR".
  "IGNORE" ignores their updates.)");
  registry.Kernel("ScatterNdNonAliasingAdd", MakeKernel<TensorScatterKernel<Accumulation::kAdd>>)
      .Types("T", non_aliasing_types);
}

}  // namespace scatter_nd
}  // namespace gradflow
