// The collective ops whose group and instance are attributes, and their second versions, whose
// group and instance are inputs.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/collective/collective_call.h"

namespace gradflow::collective {
namespace {

// ---- Kernels ----

// The kernel of the first versions.
template <CollectiveType Type, bool Receives = false>
class AttrKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(ReadCollectiveAttrs(construction, Type, "merge_op", &call_));
    call_.is_sender = !Receives;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("group_size", &group_size_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("group_key", &call_.group_key));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("instance_key", &call_.instance_key));
    if constexpr (Type == CollectiveType::kBroadcast) {
      PartialTensorShape shape;
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shape", &shape));
      if (!shape.AsTensorShape(&shape_)) {
        return errors::InvalidArgument("shape must be fully known, but is ", shape.DebugString());
      }
    }
    return absl::OkStatus();
  }

  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    if (absl::Status status = Check(ctx); !status.ok()) {
      done(std::move(status));
      return;
    }
    CollectiveCall call = call_;
    call.group_size = static_cast<int>(group_size_);
    RunCollective(ctx, done, std::move(call), Receives ? &shape_ : nullptr);
  }

 private:
  absl::Status Check(const KernelContext& ctx) const {
    GRADFLOW_RETURN_IF_ERROR(CheckGroup(ctx, group_size_));
    if (Type == CollectiveType::kBroadcast && !Receives && ctx.input(0).shape() != shape_) {
      return errors::InvalidArgument("input must have the shape of attribute shape, ",
                                     shape_.DebugString(), ", but has shape ",
                                     ctx.input(0).shape().DebugString());
    }
    return absl::OkStatus();
  }

  // Without tensors and group size.
  CollectiveCall call_;
  int64_t group_size_ = 0;
  TensorShape shape_;
};

// The kernel of the second versions. The inputs of a receiver are the group's size, its key, the
// key of the instance, and the shape; the other ops have the tensor before and no shape.
template <CollectiveType Type, bool Receives = false>
class InputKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    call_.is_sender = !Receives;
    return ReadCollectiveAttrs(construction, Type, "merge_op", &call_);
  }

  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    CollectiveCall call = call_;
    TensorShape shape;
    if (absl::Status status = ReadInputs(ctx, &call, &shape); !status.ok()) {
      done(std::move(status));
      return;
    }
    RunCollective(ctx, done, std::move(call), Receives ? &shape : nullptr);
  }

 private:
  static absl::Status ReadInputs(const KernelContext& ctx, CollectiveCall* call,
                                 TensorShape* shape) {
    const int first = Receives ? 0 : 1;
    GRADFLOW_ASSIGN_OR_RETURN(call->group_size, ScalarInt32(ctx, first, "group_size"));
    GRADFLOW_ASSIGN_OR_RETURN(call->group_key, ScalarInt32(ctx, first + 1, "group_key"));
    GRADFLOW_ASSIGN_OR_RETURN(call->instance_key, ScalarInt32(ctx, first + 2, "instance_key"));
    GRADFLOW_RETURN_IF_ERROR(CheckGroup(ctx, call->group_size));
    if constexpr (Receives) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(first + 3, "shape"));
      GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(first + 3, "shape"));
      GRADFLOW_ASSIGN_OR_RETURN(*shape, TensorShape::Make(dims));
    }
    return absl::OkStatus();
  }

  CollectiveCall call_;
};

// ---- Shape functions ----

// The first dimension of output 0 is the first dimension of the input, multiplied or divided by the
// size of the group. A negative size is unknown.
absl::Status RowsShape(ShapeContext& c, int64_t group_size, bool multiplies) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  PartialTensorShape shape = c.input(0);
  if (shape.dims() < 0) return absl::OkStatus();
  const int64_t rows = shape.dim_size(0);
  int64_t result = -1;
  if (rows >= 0 && group_size >= 1) {
    if (!multiplies) {
      if (rows % group_size == 0) result = rows / group_size;
    } else if (rows <= std::numeric_limits<int64_t>::max() / group_size) {
      result = rows * group_size;
    }
  }
  DimVector dims(shape.dims());
  for (int d = 0; d < shape.dims(); ++d) dims[d] = shape.dim_size(d);
  dims[0] = result;
  GRADFLOW_ASSIGN_OR_RETURN(shape, PartialTensorShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status GatherShape(ShapeContext& c) {
  int64_t group_size = -1;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("group_size", &group_size));
  return RowsShape(c, group_size, /*multiplies=*/true);
}

// Gives output 0 the shape of attribute `shape`.
absl::Status BroadcastShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Checks that the inputs from `first` on are three scalars.
absl::Status CheckKeys(ShapeContext& c, int first) {
  for (int i = first; i < first + 3; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  return absl::OkStatus();
}

absl::Status UnchangedShapeV2(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckKeys(c, 1));
  return UnchangedShape(c);
}

template <bool Multiplies>
absl::Status RowsShapeV2(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckKeys(c, 1));
  std::vector<int64_t> group_size;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &group_size));
  return RowsShape(c, known && group_size.size() == 1 ? group_size[0] : -1, Multiplies);
}

absl::Status ReceiveShapeV2(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckKeys(c, 0));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(3));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- Definitions ----

constexpr char kMergedTypes[] = "T: {bfloat16, float, half, double, int32, int64}";
constexpr char kGatheredTypes[] = "T: {float, half, double, int32, int64}";
constexpr char kBroadcastTypes[] = "T: {bool, float, half, double, int32, int64}";

DataTypeVector MergedTypes() {
  return {DT_BFLOAT16, DT_FLOAT, DT_HALF, DT_DOUBLE, DT_INT32, DT_INT64};
}
DataTypeVector GatheredTypes() { return {DT_FLOAT, DT_HALF, DT_DOUBLE, DT_INT32, DT_INT64}; }
DataTypeVector BroadcastTypes() {
  return {DT_BOOL, DT_FLOAT, DT_HALF, DT_DOUBLE, DT_INT32, DT_INT64};
}

constexpr char kMatching[] =
    "\n\nThe ranks of a group call the op with the same group_key and instance_key, in any order. "
    "If their\ncalls disagree, or a rank does not call it in time, all ranks get an error.\n";
constexpr char kGroupDoc[] = R"(
group_size: The number of ranks of the group.
group_key: Identifies the group.
instance_key: Identifies the call within the group.)";
constexpr char kHintDoc[] = R"(
communication_hint: Not used.
timeout_seconds: The time to wait for the other ranks; 0 for the default of the session's
  Collectives.)";
constexpr char kTokenDoc[] = R"(
ordering_token: Not used: the keys match the calls.
is_stateless: Not used.
Nordering_token: The number of tokens.)";
constexpr char kMergeDoc[] = R"(
merge_op: The function that merges two elements.
final_op: "Div" divides the merged elements by group_size.)";
constexpr char kInputDoc[] = "\ninput: The tensor of this rank; all ranks have the same shape.";

struct CollectiveOp {
  const char* name;
  const char* types;
  DataTypeVector kernel_types;
  const char* summary;
  // The documentation of the output.
  const char* data;
  // The attributes between the keys and communication_hint.
  bool merges;
  ShapeFn shape;
  KernelFactory factory;
};

constexpr char kReduceSummary[] =
    "Merges the tensors of all ranks element-wise.\n\nElements are merged in the order of the "
    "ranks, so all ranks get the same bits in each run.";
constexpr char kGatherSummary[] =
    "Concatenates the tensors of all ranks along the first dimension, in the order of the ranks.";
constexpr char kSendSummary[] = "Sends a tensor to all other ranks of the group.";
constexpr char kReceiveSummary[] = "Receives the tensor that a rank of the group sends.";

void RegisterFirst(Registry& registry) {
  const auto begin = [&](const char* name, const char* types, bool has_input) {
    Registry::OpRegistrar op = registry.Op(name);
    op.Group("collective_ops").Stateful();
    if (has_input) op.Input("input: T");
    op.Output("data: T").Attr(types);
    op.Attr("group_size: int").Attr("group_key: int").Attr("instance_key: int");
    return op;
  };
  const auto end = [](Registry::OpRegistrar& op) {
    op.Attr("communication_hint: string = 'auto'").Attr("timeout_seconds: float = 0");
  };
  {
    Registry::OpRegistrar op = begin("CollectiveReduce", kMergedTypes, true);
    op.Attr("merge_op: {'Min', 'Max', 'Mul', 'Add'}")
        .Attr("final_op: {'Id', 'Div'}")
        .Attr("subdiv_offsets: list(int)")
        .Attr("wait_for: list(int) = []");
    end(op);
    op.Shape(UnchangedShape)
        .Doc(absl::StrCat(kReduceSummary, kMatching, kInputDoc,
                          "\ndata: The merged tensor.\nT: The type of the tensors.", kGroupDoc,
                          kMergeDoc, "\nsubdiv_offsets: Not used.\nwait_for: Not used.", kHintDoc));
  }
  registry.Kernel("CollectiveReduce", MakeKernel<AttrKernel<CollectiveType::kReduce>>)
      .Types("T", MergedTypes());
  {
    Registry::OpRegistrar op = begin("CollectiveGather", kGatheredTypes, true);
    op.Attr("shape: shape");
    end(op);
    op.Shape(GatherShape)
        .Doc(absl::StrCat(kGatherSummary, kMatching, kInputDoc,
                          "\ndata: The tensors of all ranks.\nT: The type of the tensors.",
                          kGroupDoc, "\nshape: Not used.", kHintDoc));
  }
  registry.Kernel("CollectiveGather", MakeKernel<AttrKernel<CollectiveType::kGather>>)
      .Types("T", GatheredTypes());
  {
    Registry::OpRegistrar op = begin("CollectiveBcastSend", kBroadcastTypes, true);
    op.Attr("shape: shape");
    end(op);
    op.Shape(BroadcastShape)
        .Doc(absl::StrCat(kSendSummary, kMatching, "\ninput: The tensor to send.",
                          "\ndata: The same tensor.\nT: The type of the tensor.", kGroupDoc,
                          "\nshape: The shape of the tensor.", kHintDoc));
  }
  registry.Kernel("CollectiveBcastSend", MakeKernel<AttrKernel<CollectiveType::kBroadcast>>)
      .Types("T", BroadcastTypes());
  {
    Registry::OpRegistrar op = begin("CollectiveBcastRecv", kBroadcastTypes, false);
    op.Attr("shape: shape");
    end(op);
    op.Shape(BroadcastShape)
        .Doc(absl::StrCat(kReceiveSummary, kMatching,
                          "\ndata: The tensor of the sender.\nT: The type of the tensor.",
                          kGroupDoc, "\nshape: The shape of the tensor.", kHintDoc));
  }
  registry.Kernel("CollectiveBcastRecv", MakeKernel<AttrKernel<CollectiveType::kBroadcast, true>>)
      .Types("T", BroadcastTypes());
}

void RegisterSecond(Registry& registry) {
  const CollectiveOp ops[] = {
      {"CollectiveReduceV2", kMergedTypes, MergedTypes(), kReduceSummary, "The merged tensor.",
       true, UnchangedShapeV2, MakeKernel<InputKernel<CollectiveType::kReduce>>},
      {"CollectiveReduceScatterV2", kMergedTypes, MergedTypes(),
       "Merges the tensors of all ranks element-wise, and gives each rank a part.\n\nRank i gets "
       "the i-th of group_size parts along the first dimension. Elements are merged in the order\n"
       "of the ranks.",
       "The part of this rank.", true, RowsShapeV2<false>,
       MakeKernel<InputKernel<CollectiveType::kReduceScatter>>},
      {"CollectiveGatherV2", kGatheredTypes, GatheredTypes(), kGatherSummary,
       "The tensors of all ranks.", false, RowsShapeV2<true>,
       MakeKernel<InputKernel<CollectiveType::kGather>>},
      {"CollectiveAllToAllV2", kMergedTypes, MergedTypes(),
       "Sends row i of the tensor to rank i.\n\nThe tensor has a row for each rank.",
       "Row i is the row that rank i sent to this rank.", false, UnchangedShapeV2,
       MakeKernel<InputKernel<CollectiveType::kAllToAll>>},
  };
  for (const CollectiveOp& op : ops) {
    {
      Registry::OpRegistrar definition = registry.Op(op.name);
      definition.Group("collective_ops")
          .Stateful()
          .Input("input: T")
          .Input("group_size: int32")
          .Input("group_key: int32")
          .Input("instance_key: int32")
          .Input("ordering_token: Nordering_token * resource")
          .Output("data: T")
          .Attr(op.types);
      if (op.merges) {
        definition.Attr("merge_op: {'Min', 'Max', 'Mul', 'Add'}").Attr("final_op: {'Id', 'Div'}");
      }
      definition.Attr("communication_hint: string = 'auto'")
          .Attr("timeout_seconds: float = 0")
          .Attr("is_stateless: bool = false")
          .Attr("Nordering_token: int >= 0 = 0");
      if (op.merges) definition.Attr("max_subdivs_per_device: int = -1");
      definition.Shape(op.shape).Doc(absl::StrCat(
          op.summary, kMatching, kInputDoc, "\ndata: ", op.data, "\nT: The type of the tensors.",
          kGroupDoc, op.merges ? kMergeDoc : "", kHintDoc, kTokenDoc,
          op.merges ? "\nmax_subdivs_per_device: Not used." : ""));
    }
    registry.Kernel(op.name, op.factory).Types("T", op.kernel_types);
  }
  registry.Op("CollectiveBcastSendV2")
      .Group("collective_ops")
      .Stateful()
      .Input("input: T")
      .Input("group_size: int32")
      .Input("group_key: int32")
      .Input("instance_key: int32")
      .Output("data: T")
      .Attr(kBroadcastTypes)
      .Attr("communication_hint: string = 'auto'")
      .Attr("timeout_seconds: float = 0")
      .Shape(UnchangedShapeV2)
      .Doc(absl::StrCat(kSendSummary, kMatching, "\ninput: The tensor to send.",
                        "\ndata: The same tensor.\nT: The type of the tensor.", kGroupDoc,
                        kHintDoc));
  registry.Kernel("CollectiveBcastSendV2", MakeKernel<InputKernel<CollectiveType::kBroadcast>>)
      .Types("T", BroadcastTypes());
  registry.Op("CollectiveBcastRecvV2")
      .Group("collective_ops")
      .Stateful()
      .Input("group_size: int32")
      .Input("group_key: int32")
      .Input("instance_key: int32")
      .Input("shape: Tshape")
      .Output("data: T")
      .Attr(kBroadcastTypes)
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Attr("communication_hint: string = 'auto'")
      .Attr("timeout_seconds: float = 0")
      .Shape(ReceiveShapeV2)
      .Doc(absl::StrCat(kReceiveSummary, kMatching,
                        "\nshape: The shape of the tensor.\ndata: The tensor of the sender.",
                        "\nT: The type of the tensor.\nTshape: The type of `shape`.", kGroupDoc,
                        kHintDoc));
  registry
      .Kernel("CollectiveBcastRecvV2", MakeKernel<InputKernel<CollectiveType::kBroadcast, true>>)
      .Types("T", BroadcastTypes());
}

}  // namespace

void Register(Registry& registry) {
  RegisterFirst(registry);
  RegisterSecond(registry);
}

}  // namespace gradflow::collective
