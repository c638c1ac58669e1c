// ParseExample, ParseExampleV2 and ParseSingleExample.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/parsing/feature_columns.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::parse_example {
namespace {

// ---- The kernel ----

// The attributes that the three ops share, except that the keys may be inputs.
struct Attributes {
  absl::Status Init(const NodeDef& node) {
    const std::string& op = node.op();
    is_v2 = op == "ParseExampleV2";
    is_single = op == "ParseSingleExample";
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "sparse_types", &sparse_types));
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "Tdense", &dense_types));
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "dense_shapes", &dense_shapes));
    int64_t sparse = static_cast<int64_t>(sparse_types.size());
    int64_t dense = static_cast<int64_t>(dense_types.size());
    if (is_v2 || is_single) {
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "num_sparse", &sparse));
    } else {
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "Nsparse", &sparse));
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "Ndense", &dense));
    }
    if (is_single) {
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "sparse_keys", &sparse_keys));
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "dense_keys", &dense_keys));
      GRADFLOW_RETURN_IF_ERROR(CheckLength("sparse_keys", sparse_keys.size(), sparse));
      GRADFLOW_RETURN_IF_ERROR(CheckLength("dense_keys", dense_keys.size(), dense));
    }
    if (is_v2) {
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "ragged_value_types", &ragged_types));
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "ragged_split_types", &split_types));
      GRADFLOW_RETURN_IF_ERROR(CheckLength("ragged_split_types", split_types.size(),
                                           static_cast<int64_t>(ragged_types.size())));
    }
    GRADFLOW_RETURN_IF_ERROR(CheckLength("sparse_types", sparse_types.size(), sparse));
    GRADFLOW_RETURN_IF_ERROR(CheckLength("Tdense", dense_types.size(), dense));
    GRADFLOW_RETURN_IF_ERROR(CheckLength("dense_shapes", dense_shapes.size(), dense));
    for (const PartialTensorShape& shape : dense_shapes) {
      bool valid = !shape.unknown_rank();
      for (int d = 1; valid && d < shape.dims(); ++d) valid = shape.dim_size(d) >= 0;
      if (!valid) {
        return errors::InvalidArgument(
            "dense_shapes[", &shape - dense_shapes.data(),
            "] has unknown rank or unknown inner dimensions: ", shape.DebugString());
      }
    }
    return absl::OkStatus();
  }

  static absl::Status CheckLength(absl::string_view name, size_t size, int64_t expected) {
    if (static_cast<int64_t>(size) == expected) return absl::OkStatus();
    return errors::InvalidArgument(name, " must have ", expected, " elements, but has ", size);
  }
  int sparse() const { return static_cast<int>(sparse_types.size()); }
  int dense() const { return static_cast<int>(dense_types.size()); }
  int ragged() const { return static_cast<int>(ragged_types.size()); }
  // The index of the first input with a default value.
  int first_default() const { return is_single ? 1 : is_v2 ? 5 : 2 + sparse() + dense(); }

  bool is_v2 = false;
  bool is_single = false;
  DataTypeVector sparse_types;
  DataTypeVector dense_types;
  DataTypeVector ragged_types;
  DataTypeVector split_types;
  std::vector<PartialTensorShape> dense_shapes;
  std::vector<std::string> sparse_keys;
  std::vector<std::string> dense_keys;
};

class ParseKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return attributes_.Init(construction.def());
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Attributes& a = attributes_;
    const Tensor& serialized = ctx.input(0);
    if (a.is_single) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "serialized"));
    } else if (!a.is_v2 || serialized.dims() > 1) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "serialized"));
    }
    for (int i = 0; i < a.first_default(); ++i) {
      if (ctx.input_dtype(i) != DT_STRING) {
        return errors::InvalidArgument("serialized, names and keys must be strings");
      }
    }
    const Tensor* names = nullptr;
    if (!a.is_single) {
      names = &ctx.input(1);
      if (names->NumElements() > 0 && names->shape() != serialized.shape()) {
        return errors::InvalidArgument("names must be empty or have the shape of serialized, ",
                                       serialized.shape().DebugString(), ", but have shape ",
                                       names->shape().DebugString());
      }
    }
    std::vector<FeatureColumn> columns;
    GRADFLOW_RETURN_IF_ERROR(AddColumns(ctx, FeatureKind::kSparse, &columns));
    GRADFLOW_RETURN_IF_ERROR(AddColumns(ctx, FeatureKind::kDense, &columns));
    GRADFLOW_RETURN_IF_ERROR(AddColumns(ctx, FeatureKind::kRagged, &columns));
    return ParseFeatures(ctx, serialized, names, std::move(columns));
  }

 private:
  // Returns the key of column k of a kind.
  absl::StatusOr<tstring> Key(const KernelContext& ctx, FeatureKind kind, int k, int count) const {
    const Attributes& a = attributes_;
    if (a.is_single) return kind == FeatureKind::kSparse ? a.sparse_keys[k] : a.dense_keys[k];
    const char* const name = kind == FeatureKind::kSparse  ? "sparse_keys"
                             : kind == FeatureKind::kDense ? "dense_keys"
                                                           : "ragged_keys";
    if (!a.is_v2) {
      const int i = 2 + (kind == FeatureKind::kSparse ? 0 : a.sparse()) + k;
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, name));
      return ctx.input(i).span<tstring>()[0];
    }
    const int i = 2 + static_cast<int>(kind);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(i, name, TensorShape({count})));
    return ctx.input(i).span<tstring>()[k];
  }

  absl::Status AddColumns(const KernelContext& ctx, FeatureKind kind,
                          std::vector<FeatureColumn>* columns) const {
    const Attributes& a = attributes_;
    const DataTypeVector& types = kind == FeatureKind::kSparse  ? a.sparse_types
                                  : kind == FeatureKind::kDense ? a.dense_types
                                                                : a.ragged_types;
    const int count = static_cast<int>(types.size());
    for (int k = 0; k < count; ++k) {
      FeatureColumn column;
      column.kind = kind;
      column.dtype = types[k];
      GRADFLOW_ASSIGN_OR_RETURN(column.key, Key(ctx, kind, k, count));
      if (kind == FeatureKind::kDense) {
        GRADFLOW_RETURN_IF_ERROR(SetShape(a.dense_shapes[k], &column));
        column.default_value = &ctx.input(a.first_default() + k);
        GRADFLOW_RETURN_IF_ERROR(CheckDefault("dense_defaults", column, k));
      }
      columns->push_back(std::move(column));
    }
    return absl::OkStatus();
  }

  Attributes attributes_;
};

absl::Status ParseShape(ShapeContext& c) {
  Attributes a;
  GRADFLOW_RETURN_IF_ERROR(a.Init(c.def()));
  PartialTensorShape batch;
  GRADFLOW_RETURN_IF_ERROR(BatchShape(c, a.is_single, a.is_v2, &batch));
  if (!a.is_single) {
    GRADFLOW_RETURN_IF_ERROR(a.is_v2 ? CheckRankAtMost(c, 1, 1) : c.CheckRank(1, 1));
  }
  const int64_t rank = batch.unknown_rank() ? -1 : batch.dims() + 1;
  for (int k = 0; k < a.sparse(); ++k) {
    c.set_output(k, PartialTensorShape({-1, rank}));
    c.set_output(a.sparse() + k, PartialTensorShape({-1}));
    c.set_output(2 * a.sparse() + k, PartialTensorShape({rank}));
  }
  for (int k = 0; k < a.dense(); ++k) {
    if (!batch.unknown_rank()) {
      c.set_output(3 * a.sparse() + k, batch.Concatenate(a.dense_shapes[k]));
    }
  }
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t splits, NumSplits(batch));
  for (int k = 0; k < a.ragged(); ++k) {
    const int at = 3 * a.sparse() + a.dense() + k;
    c.set_output(at, PartialTensorShape({-1}));
    c.set_output(at + a.ragged(), PartialTensorShape({splits}));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ParseExample")
      .Group("parsing_ops")
      .Input("serialized: string")
      .Input("names: string")
      .Input("sparse_keys: Nsparse * string")
      .Input("dense_keys: Ndense * string")
      .Input("dense_defaults: Tdense")
      .Output("sparse_indices: Nsparse * int64")
      .Output("sparse_values: sparse_types")
      .Output("sparse_shapes: Nsparse * int64")
      .Output("dense_values: Tdense")
      .Attr("Nsparse: int >= 0")
      .Attr("Ndense: int >= 0")
      .Attr("sparse_types: list({float, int64, string}) >= 0")
      .Attr("Tdense: list({float, int64, string}) >= 0")
      .Attr("dense_shapes: list(shape) >= 0")
      .Shape(ParseShape)
      .Doc(R"(Reads features of tf.Example messages.

serialized: A vector of messages.
names: Names of the messages for errors, or an empty vector.
sparse_keys: The keys of features with any number of values.
dense_keys: The keys of features with values of one shape.
dense_defaults: The values of features that a message lacks. An empty tensor stands for a feature
  that each message must have. If the first dimension of the shape is not known, the one element
  that fills up values.
sparse_indices: The message and the index of each value, for each of `sparse_keys`.
sparse_values: The values.
sparse_shapes: The number of messages and the largest number of values.
dense_values: The values of each of `dense_keys`, a row for each message.
Nsparse: The number of `sparse_keys`.
Ndense: The number of `dense_keys`.
sparse_types: The types of `sparse_values`.
Tdense: The types of `dense_values`.
dense_shapes: The shapes of the values of a message. The first dimension may be unknown.)");
  registry.Op("ParseExampleV2")
      .Group("parsing_ops")
      .Input("serialized: string")
      .Input("names: string")
      .Input("sparse_keys: string")
      .Input("dense_keys: string")
      .Input("ragged_keys: string")
      .Input("dense_defaults: Tdense")
      .Output("sparse_indices: num_sparse * int64")
      .Output("sparse_values: sparse_types")
      .Output("sparse_shapes: num_sparse * int64")
      .Output("dense_values: Tdense")
      .Output("ragged_values: ragged_value_types")
      .Output("ragged_row_splits: ragged_split_types")
      .Attr("Tdense: list({float, int64, string}) >= 0")
      .Attr("num_sparse: int >= 0")
      .Attr("sparse_types: list({float, int64, string}) >= 0")
      .Attr("ragged_value_types: list({float, int64, string}) >= 0")
      .Attr("ragged_split_types: list({int32, int64}) >= 0")
      .Attr("dense_shapes: list(shape) >= 0")
      .Shape(ParseShape)
      .Doc(R"(Reads features of tf.Example messages.

serialized: A message or a vector of messages.
names: Names of the messages for errors, or an empty vector.
sparse_keys: The keys of features with any number of values.
dense_keys: The keys of features with values of one shape.
ragged_keys: The keys of features with any number of values, which become ragged tensors.
dense_defaults: The values of features that a message lacks. An empty tensor stands for a feature
  that each message must have. If the first dimension of the shape is not known, the one element
  that fills up values.
sparse_indices: The message and the index of each value, for each of `sparse_keys`. Only the index
  if `serialized` is one message.
sparse_values: The values.
sparse_shapes: The number of messages and the largest number of values.
dense_values: The values of each of `dense_keys`, a row for each message.
ragged_values: The values of each of `ragged_keys`.
ragged_row_splits: The first value of each message, and the number of values. Empty if `serialized`
  is one message.
Tdense: The types of `dense_values`.
num_sparse: The number of `sparse_keys`.
sparse_types: The types of `sparse_values`.
ragged_value_types: The types of `ragged_values`.
ragged_split_types: The types of `ragged_row_splits`.
dense_shapes: The shapes of the values of a message. The first dimension may be unknown.)");
  registry.Op("ParseSingleExample")
      .Group("parsing_ops")
      .Input("serialized: string")
      .Input("dense_defaults: Tdense")
      .Output("sparse_indices: num_sparse * int64")
      .Output("sparse_values: sparse_types")
      .Output("sparse_shapes: num_sparse * int64")
      .Output("dense_values: Tdense")
      .Attr("num_sparse: int >= 0")
      .Attr("sparse_keys: list(string) >= 0")
      .Attr("dense_keys: list(string) >= 0")
      .Attr("sparse_types: list({float, int64, string}) >= 0")
      .Attr("Tdense: list({float, int64, string}) >= 0")
      .Attr("dense_shapes: list(shape) >= 0")
      .Shape(ParseShape)
      .Doc(R"(Reads features of a tf.Example message.

serialized: The message, a scalar.
dense_defaults: The values of features that the message lacks. An empty tensor stands for a feature
  that the message must have. If the first dimension of the shape is not known, any one element.
sparse_indices: The index of each value, for each of `sparse_keys`.
sparse_values: The values.
sparse_shapes: The number of values.
dense_values: The value of each of `dense_keys`.
num_sparse: The number of `sparse_keys`.
sparse_keys: The keys of features with any number of values.
dense_keys: The keys of features with values of one shape.
sparse_types: The types of `sparse_values`.
Tdense: The types of `dense_values`.
dense_shapes: The shapes of `dense_values`. The first dimension may be unknown.)");
  for (const char* op : {"ParseExample", "ParseExampleV2", "ParseSingleExample"}) {
    registry.Kernel(op, MakeKernel<ParseKernel>);
  }
}

}  // namespace gradflow::parse_example
