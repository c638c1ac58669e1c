// SerializeSparse, SerializeManySparse, DeserializeSparse and DeserializeManySparse: sparse tensors
// as three strings or variants, which hold the indices, the values and the shape.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/core/variant.h"
#include "gradflow/ops/common/element_copy.h"
#include "gradflow/ops/common/tensor_message.h"
#include "gradflow/ops/sparse/sparse_inputs.h"

namespace gradflow::sparse_serialize {
namespace {

// The tensors of a sparse tensor, in the order of its strings or variants.
constexpr int kParts = 3;
constexpr const char* kPartNames[kParts] = {"indices", "values", "shape"};
// The bytes of a message without the elements of its tensor.
constexpr double kMessageBytes = 64;

// Writes `tensor` to element i of the output, a tensor of strings or variants.
absl::Status Write(KernelContext& ctx, Tensor tensor, Tensor* output, int64_t i) {
  if (output->dtype() == DT_VARIANT) {
    output->span<Variant>()[i] = std::move(tensor);
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(output->span<tstring>()[i],
                            SerializedTensor(tensor, ctx.allocator(), /*strings_as_bytes=*/true));
  return absl::OkStatus();
}

double StringsOf(const Tensor& values) {
  // Each string has a length.
  constexpr double kLengthBytes = 6;
  return values.dtype() == DT_STRING ? static_cast<double>(values.StringBytes()) +
                                           kLengthBytes * static_cast<double>(values.NumElements())
                                     : static_cast<double>(values.TotalBytes());
}

// ---- SerializeSparse ----

absl::Status SerializeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  c.set_output(0, TensorShape({kParts}));
  return absl::OkStatus();
}

absl::Status Serialize(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "sparse_indices", 2));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "sparse_values"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "sparse_shape"));
  double bytes = kParts * kMessageBytes;
  for (int i = 0; i < kParts; ++i) bytes += StringsOf(ctx.input(i));
  ctx.ExpectStringBytes(bytes);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {kParts}, &output));
  for (int i = 0; i < kParts; ++i) {
    GRADFLOW_RETURN_IF_ERROR(Write(ctx, ctx.input(i), output, i));
  }
  return absl::OkStatus();
}

// ---- SerializeManySparse ----

absl::Status SerializeManyShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  const PartialTensorShape shape = c.input_as_shape(2);
  const bool known = !shape.unknown_rank() && shape.dims() > 0;
  c.set_output(0, PartialTensorShape({known ? shape.dim_size(0) : -1, kParts}));
  return absl::OkStatus();
}

absl::Status SerializeMany(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                            ReadSparse(ctx, "sparse_", SparseOrder::kSorted, 0, 1, 2));
  if (in.rank < 2) {
    return errors::InvalidArgument("sparse_shape must have at least 2 elements, but has ", in.rank);
  }
  const int64_t rows = in.shape.dim_size(0);
  const int rank = in.rank - 1;
  Tensor shape;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {rank}, &shape));
  for (int d = 0; d < rank; ++d) shape.span<int64_t>()[d] = in.shape.dim_size(d + 1);
  ctx.ExpectStringBytes(static_cast<double>(rows) *
                            (kParts * kMessageBytes + static_cast<double>(shape.TotalBytes())) +
                        static_cast<double>(ctx.input(0).TotalBytes()) + StringsOf(*in.values));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {rows, kParts}, &output));
  int64_t begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if ((row & 0xff) == 0xff && ctx.ShouldStop()) return StoppedError();
    int64_t end = begin;
    while (end < in.size && in.index(end)[0] == row) ++end;
    Tensor indices;
    Tensor values;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {end - begin, rank}, &indices));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(in.values->dtype(), {end - begin}, &values));
    auto to = indices.span<int64_t>().begin();
    for (int64_t i = begin; i < end; ++i) {
      const auto index = in.index(i).subspan(1);
      to = std::copy(index.begin(), index.end(), to);
    }
    CopyElements(*in.values, begin, end - begin, &values, 0);
    GRADFLOW_RETURN_IF_ERROR(Write(ctx, std::move(indices), output, kParts * row));
    GRADFLOW_RETURN_IF_ERROR(Write(ctx, std::move(values), output, kParts * row + 1));
    GRADFLOW_RETURN_IF_ERROR(Write(ctx, shape, output, kParts * row + 2));
    begin = end;
  }
  return absl::OkStatus();
}

// ---- DeserializeSparse, DeserializeManySparse ----

absl::Status CheckParts(int64_t parts, const std::string& shape) {
  if (parts < 0 || parts == kParts) return absl::OkStatus();
  return errors::InvalidArgument("the last dimension of serialized_sparse must be ", kParts,
                                 ", but the shape is ", shape);
}

absl::Status DeserializeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(CheckParts(c.Dim(0, -1), c.input(0).DebugString()));
  c.set_output(0, PartialTensorShape({-1, -1}));
  c.set_output(1, PartialTensorShape({-1}));
  c.set_output(2, PartialTensorShape({-1}));
  return absl::OkStatus();
}

absl::Status DeserializeManyShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  return DeserializeShape(c);
}

// One of the sparse tensors that are joined.
struct Element {
  // The indices, the values and the shape.
  Tensor parts[kParts];

  int64_t size() const { return parts[1].NumElements(); }
  int64_t rank() const { return parts[2].NumElements(); }
};

// Returns the tensor in element i of input 0.
absl::StatusOr<Tensor> Read(const KernelContext& ctx, int64_t i, DataType dtype) {
  const Tensor& serialized = ctx.input(0);
  const std::string name = absl::StrCat("serialized_sparse[", i / kParts, ",", i % kParts, "]");
  if (serialized.dtype() == DT_STRING) {
    return ParsedTensor(name, serialized.span<tstring>()[i], dtype, ctx.allocator());
  }
  const Tensor* const tensor = serialized.span<Variant>()[i].get<Tensor>();
  if (tensor == nullptr) {
    return errors::InvalidArgument(name, " must hold a tensor");
  }
  if (tensor->dtype() != dtype) {
    return errors::InvalidArgument(name, " has type ", DataTypeString(tensor->dtype()),
                                   ", expected ", DataTypeString(dtype));
  }
  return *tensor;
}

absl::StatusOr<Element> ReadElement(const KernelContext& ctx, int64_t k) {
  Element element;
  for (int part = 0; part < kParts; ++part) {
    const DataType dtype = part == 1 ? ctx.expected_output_dtype(1) : DT_INT64;
    GRADFLOW_ASSIGN_OR_RETURN(element.parts[part], Read(ctx, kParts * k + part, dtype));
    const int rank = part == 0 ? 2 : 1;
    if (element.parts[part].dims() == rank) continue;
    return errors::InvalidArgument("the ", kPartNames[part], " of serialized_sparse[", k,
                                   "] must have rank ", rank, ", but have shape ",
                                   element.parts[part].shape().DebugString());
  }
  if (element.rank() > kMaxDims) {
    return errors::InvalidArgument("serialized_sparse[", k, "] has ", element.rank(),
                                   " dimensions, expected at most ", kMaxDims);
  }
  const TensorShape expected({element.size(), element.rank()});
  if (element.parts[0].shape() != expected) {
    return errors::InvalidArgument("the indices of serialized_sparse[", k, "] must have shape ",
                                   expected.DebugString(), ", but have shape ",
                                   element.parts[0].shape().DebugString());
  }
  return element;
}

template <bool Many>
absl::Status Deserialize(KernelContext& ctx) {
  if (Many) GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "serialized_sparse", 2));
  const Tensor& serialized = ctx.input(0);
  if (serialized.dims() == 0) {
    return errors::InvalidArgument("serialized_sparse must not be a scalar");
  }
  // The dimensions in front of the shapes of the sparse tensors.
  const int stacked = serialized.dims() - 1;
  GRADFLOW_RETURN_IF_ERROR(
      CheckParts(serialized.dim_size(stacked), serialized.shape().DebugString()));
  const int64_t count = serialized.NumElements() / kParts;
  if (count == 0) {
    return errors::InvalidArgument("serialized_sparse must not be empty, but has shape ",
                                   serialized.shape().DebugString());
  }
  MemoryReservation memory(ctx.allocator().get());
  GRADFLOW_RETURN_IF_ERROR(
      memory.Set(static_cast<double>(count) * sizeof(Element), "sparse tensors"));
  std::vector<Element> elements;
  elements.reserve(count);
  int64_t size = 0;
  double bytes = 0;
  for (int64_t k = 0; k < count; ++k) {
    if ((k & 0xff) == 0xff && ctx.ShouldStop()) return StoppedError();
    GRADFLOW_ASSIGN_OR_RETURN(Element element, ReadElement(ctx, k));
    if (k > 0 && element.rank() != elements[0].rank()) {
      return errors::InvalidArgument("all sparse tensors must have the same rank, but ",
                                     "serialized_sparse[0] has rank ", elements[0].rank(),
                                     " and serialized_sparse[", k, "] has rank ", element.rank());
    }
    size += element.size();
    if (element.parts[1].dtype() == DT_STRING) {
      bytes += static_cast<double>(element.parts[1].StringBytes());
    }
    elements.push_back(std::move(element));
  }
  if (stacked == 0) {
    for (int i = 0; i < kParts; ++i) ctx.set_output(i, std::move(elements[0].parts[i]));
    return absl::OkStatus();
  }
  const auto rank = static_cast<int>(elements[0].rank());
  Tensor* indices = nullptr;
  Tensor* values = nullptr;
  Tensor* shape = nullptr;
  GRADFLOW_RETURN_IF_ERROR(
      AllocateSparse(ctx, 0, 1, size, stacked + rank, bytes, &indices, &values));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(2, {stacked + rank}, &shape));
  const auto dims = shape->span<int64_t>();
  for (int d = 0; d < stacked; ++d) dims[d] = serialized.dim_size(d);
  std::fill(dims.begin() + stacked, dims.end(), 0);
  // The position of the current sparse tensor.
  DimVector position(stacked, 0);
  auto to = indices->span<int64_t>().begin();
  int64_t next = 0;
  for (const Element& element : elements) {
    const auto own = element.parts[2].span<int64_t>();
    for (int d = 0; d < rank; ++d) dims[stacked + d] = std::max(dims[stacked + d], own[d]);
    const auto from = element.parts[0].span<int64_t>();
    for (int64_t i = 0; i < element.size(); ++i) {
      to = std::copy(position.begin(), position.end(), to);
      to = std::copy_n(from.begin() + i * rank, rank, to);
    }
    CopyElements(element.parts[1], 0, element.size(), values, next);
    next += element.size();
    for (int d = stacked - 1; d >= 0 && ++position[d] == dims[d]; --d) position[d] = 0;
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  const DataTypeVector forms = {DT_STRING, DT_VARIANT};
  // The types that sparse tensors have in TensorFlow, and its quantized types.
  DataTypeVector types = AllDataTypes();
  if (std::find(types.begin(), types.end(), DT_RESOURCE) == types.end()) {
    types.push_back(DT_RESOURCE);
  }
  for (const bool many : {false, true}) {
    const char* const op = many ? "SerializeManySparse" : "SerializeSparse";
    registry.Op(op)
        .Group("sparse_ops")
        .Input("sparse_indices: int64")
        .Input("sparse_values: T")
        .Input("sparse_shape: int64")
        .Output("serialized_sparse: out_type")
        .Attr("T: type")
        .Attr("out_type: {string, variant} = DT_STRING")
        .Shape(many ? SerializeManyShape : SerializeShape)
        .Doc(absl::StrCat(
            many ? "Serializes the sparse tensors that a sparse tensor has along its first "
                   "dimension."
                 : "Serializes a sparse tensor.",
            R"(

sparse_indices: The index of each value, a row of a matrix)",
            many ? ", in row-major order" : "", R"(.
sparse_values: The values, a vector.
sparse_shape: The shape.
serialized_sparse: )",
            many ? "The indices, values and shape of each sparse tensor, a row of a matrix."
                 : "The indices, the values and the shape.",
            R"(
T: The type of the values.
out_type: Strings with serialized tensors, or variants with tensors.)"));
    registry.Kernel(op, many ? MakeFunctionKernel<SerializeMany> : MakeFunctionKernel<Serialize>)
        .Types("T", types)
        .Types("out_type", forms);
  }
  for (const bool many : {false, true}) {
    const char* const name = many ? "DeserializeManySparse" : "DeserializeSparse";
    {
      Registry::OpRegistrar op = registry.Op(name);
      op.Group("sparse_ops")
          .Input(many ? "serialized_sparse: string" : "serialized_sparse: Tserialized")
          .Output("sparse_indices: int64")
          .Output("sparse_values: dtype")
          .Output("sparse_shape: int64")
          .Attr("dtype: type");
      if (!many) op.Attr("Tserialized: {string, variant} = DT_STRING");
      op.Shape(many ? DeserializeManyShape : DeserializeShape)
          .Doc(absl::StrCat(
              R"(Stacks serialized sparse tensors to a sparse tensor.

The sizes of its last dimensions are the largest sizes of the sparse tensors.

serialized_sparse: The indices, values and shape of each sparse tensor, along the last dimension. )",
              many ? "A matrix.\n"
                   : "The other dimensions are the first dimensions of the result.\n",
              R"(sparse_indices: The index of each value, a row of a matrix.
sparse_values: The values, a vector.
sparse_shape: The shape.
dtype: The type of the values.)",
              many ? "" : "\nTserialized: Strings or variants."));
    }
    if (many) {
      registry.Kernel(name, MakeFunctionKernel<Deserialize<true>>);
    } else {
      registry.Kernel(name, MakeFunctionKernel<Deserialize<false>>).Types("Tserialized", forms);
    }
  }
}

}  // namespace gradflow::sparse_serialize
