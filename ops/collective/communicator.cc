// CollectiveAssignGroupV2, and the collective ops of a communicator.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/collective/collective_call.h"

namespace gradflow::communicator {
namespace {

// ---- CollectiveAssignGroupV2 ----

absl::Status AssignShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  return ScalarShape(c);
}

// Finds `rank` in the rows of a matrix of ranks. Returns false if no row has it.
bool FindRank(const Tensor& assignment, int32_t rank, int* row, int* column) {
  const auto ranks = assignment.matrix<int32_t>();
  for (int64_t r = 0; r < assignment.dim_size(0); ++r) {
    for (int64_t c = 0; c < assignment.dim_size(1); ++c) {
      if (ranks(r, c) != rank) continue;
      *row = static_cast<int>(r);
      *column = static_cast<int>(c);
      return true;
    }
  }
  return false;
}

absl::Status ComputeAssign(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "group_assignment", 2));
  GRADFLOW_ASSIGN_OR_RETURN(const int32_t device, ScalarInt32(ctx, 1, "device_index"));
  GRADFLOW_ASSIGN_OR_RETURN(const int32_t base, ScalarInt32(ctx, 2, "base_key"));
  int row = 0;
  int column = 0;
  if (!FindRank(ctx.input(0), device, &row, &column)) {
    return errors::InvalidArgument("group_assignment must have device_index ", device);
  }
  // Wraps around.
  const auto key = static_cast<int32_t>(static_cast<uint32_t>(base) + static_cast<uint32_t>(row));
  if (key == 0) {
    return errors::InvalidArgument("base_key ", base, " gives group ", row,
                                   " the key 0, which is reserved");
  }
  ctx.set_output(0, Tensor(static_cast<int32_t>(ctx.input(0).dim_size(1))));
  ctx.set_output(1, Tensor(key));
  return absl::OkStatus();
}

// ---- Communicators ----

class Communicator final : public ResourceBase {
 public:
  Communicator(int64_t group_key, int rank, int group_size)
      : group_key_(group_key), rank_(rank), group_size_(group_size) {}

  int64_t group_key() const { return group_key_; }
  int rank() const { return rank_; }
  int group_size() const { return group_size_; }
  // Calls of a communicator are matched by their order.
  int64_t NextInstance() { return next_instance_.fetch_add(1, std::memory_order_relaxed); }

  std::string DebugString() const override {
    return absl::StrCat("communicator of group ", group_key_, ", rank ", rank_, " of ",
                        group_size_);
  }

 private:
  const int64_t group_key_;
  const int rank_;
  const int group_size_;
  std::atomic<int64_t> next_instance_{0};
};

// Keys of communicators are 32 bits. This keeps them apart from the groups of other ops.
constexpr int64_t kCommunicatorGroups = int64_t{1} << 32;
// The instance of the calls that make a communicator.
constexpr int64_t kInitialize = -1;

class InitializeKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadCollectiveAttrs(construction, CollectiveType::kBarrier, "", &call_);
  }

  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    CollectiveCall call = call_;
    if (absl::Status status = Prepare(ctx, &call); !status.ok() || call.group_size == 1) {
      done(std::move(status));
      return;
    }
    StartCollective(ctx, done, std::move(call));
  }

 private:
  static absl::Status Prepare(KernelContext& ctx, CollectiveCall* call) {
    GRADFLOW_ASSIGN_OR_RETURN(const int32_t key, ScalarInt32(ctx, 0, "group_key"));
    GRADFLOW_ASSIGN_OR_RETURN(call->group_rank, ScalarInt32(ctx, 1, "rank"));
    GRADFLOW_ASSIGN_OR_RETURN(call->group_size, ScalarInt32(ctx, 2, "group_size"));
    GRADFLOW_RETURN_IF_ERROR(CheckGroup(ctx, call->group_size));
    if (call->group_rank < 0 || call->group_rank >= call->group_size) {
      return errors::InvalidArgument("rank must be in [0, ", call->group_size, "), but is ",
                                     call->group_rank);
    }
    call->group_key = kCommunicatorGroups + key;
    call->instance_key = kInitialize;
    ResourceHandle handle(
        std::make_shared<Communicator>(call->group_key, call->group_rank, call->group_size),
        absl::StrCat("communicator ", key));
    ctx.set_output(0, Tensor(handle));
    return absl::OkStatus();
  }

  CollectiveCall call_;
};

template <CollectiveType Type>
class CommunicatorKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadCollectiveAttrs(construction, Type, "reduction", &call_);
  }

  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    CollectiveCall call = call_;
    if (absl::Status status = SetGroup(ctx, &call); !status.ok()) {
      done(std::move(status));
      return;
    }
    RunCollective(ctx, done, std::move(call));
  }

 private:
  static absl::Status SetGroup(const KernelContext& ctx, CollectiveCall* call) {
    GRADFLOW_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(ctx, 1));
    const auto communicator = std::dynamic_pointer_cast<Communicator>(handle.resource());
    if (communicator == nullptr) {
      return errors::InvalidArgument("communicator must be a communicator, but is ",
                                     handle.DebugString());
    }
    call->group_key = communicator->group_key();
    call->group_size = communicator->group_size();
    call->group_rank = communicator->rank();
    const Tensor& assignment = ctx.input(2);
    if (assignment.NumElements() > 0) {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(2, "group_assignment", 2));
      // Row r is subgroup r; subgroup 0 is the whole group.
      if (!FindRank(assignment, communicator->rank(), &call->subgroup, &call->group_rank)) {
        return errors::InvalidArgument("group_assignment must have rank ", communicator->rank());
      }
      ++call->subgroup;
      if (assignment.dim_size(1) > communicator->group_size()) {
        return errors::InvalidArgument("group_assignment must have at most ",
                                       communicator->group_size(), " columns, but has ",
                                       assignment.dim_size(1));
      }
      call->group_size = static_cast<int>(assignment.dim_size(1));
    }
    GRADFLOW_RETURN_IF_ERROR(CheckGroup(ctx, call->group_size));
    // Invalid calls take no number, so that the ranks stay in step if all of them are invalid.
    call->instance_key = communicator->NextInstance();
    return absl::OkStatus();
  }

  CollectiveCall call_;
};

absl::Status InitializeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  return ScalarShape(c);
}

absl::Status CommunicatorShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  return UnchangedShape(c);
}

constexpr char kCommunicatorDoc[] = R"(
communicator: The result of CollectiveInitializeCommunicator. Calls with the same communicator are
  matched by their order.
group_assignment: An empty tensor for the whole group, or a matrix of ranks, in which each row is a
  group of its own.
T: The type of the tensors.)";
constexpr char kTimeoutDoc[] = R"(
timeout_seconds: The time to wait for the other ranks; 0 for the default of the session's
  Collectives.)";

}  // namespace

void Register(Registry& registry) {
  const DataTypeVector types = {DT_BFLOAT16, DT_FLOAT, DT_HALF, DT_DOUBLE, DT_INT32, DT_INT64};
  registry.Op("CollectiveAssignGroupV2")
      .Group("collective_ops")
      .Stateful()
      .Input("group_assignment: int32")
      .Input("device_index: int32")
      .Input("base_key: int32")
      .Output("group_size: int32")
      .Output("group_key: int32")
      .Shape(AssignShape)
      .Doc(R"(Returns the group of a device.

group_assignment: A matrix of device indices; each row is a group.
device_index: The index of the device, a scalar.
base_key: The key of the group in row 0, a scalar. The key of each next row is 1 larger.
group_size: The number of columns of `group_assignment`.
group_key: The key of the row that has `device_index`.)");
  registry.Kernel("CollectiveAssignGroupV2", MakeFunctionKernel<ComputeAssign>);
  registry.Op("CollectiveInitializeCommunicator")
      .Group("collective_ops")
      .Stateful()
      .Input("group_key: int32")
      .Input("rank: int32")
      .Input("group_size: int32")
      .Output("communicator: resource")
      .Attr("communication_hint: string = 'auto'")
      .Attr("timeout_seconds: float = 0")
      .Shape(InitializeShape)
      .Doc(absl::StrCat(R"(Makes a communicator of a group, and waits for all ranks of the group.

group_key: Identifies the group.
rank: The rank within the group.
group_size: The number of ranks of the group.
communicator: The communicator, for CollectiveReduceV3 and CollectiveAllToAllV3.
communication_hint: Not used.)",
                        kTimeoutDoc));
  registry.Kernel("CollectiveInitializeCommunicator", MakeKernel<InitializeKernel>);
  registry.Op("CollectiveReduceV3")
      .Group("collective_ops")
      .Stateful()
      .Input("input: T")
      .Input("communicator: resource")
      .Input("group_assignment: int32")
      .Output("data: T")
      .Attr("T: {bfloat16, float, half, double, int32, int64}")
      .Attr("reduction: {'Min', 'Max', 'Mul', 'Add'}")
      .Attr("timeout_seconds: float = 0")
      .Shape(CommunicatorShape)
      .Doc(absl::StrCat(R"(Merges the tensors of all ranks of a communicator element-wise.

Elements are merged in the order of the ranks, so all ranks get the same bits in each run.

input: The tensor of this rank; all ranks have the same shape.
data: The merged tensor.)",
                        kCommunicatorDoc, "\nreduction: The function that merges two elements.",
                        kTimeoutDoc));
  registry.Kernel("CollectiveReduceV3", MakeKernel<CommunicatorKernel<CollectiveType::kReduce>>)
      .Types("T", types);
  registry.Op("CollectiveAllToAllV3")
      .Group("collective_ops")
      .Stateful()
      .Input("input: T")
      .Input("communicator: resource")
      .Input("group_assignment: int32")
      .Output("data: T")
      .Attr("T: {bfloat16, float, half, double, int32, int64}")
      .Attr("timeout_seconds: float = 0")
      .Shape(CommunicatorShape)
      .Doc(absl::StrCat(R"(Sends row i of the tensor to rank i of a communicator.

input: The tensor, which has a row for each rank of the group.
data: Row i is the row that rank i sent to this rank.)",
                        kCommunicatorDoc, kTimeoutDoc));
  registry.Kernel("CollectiveAllToAllV3", MakeKernel<CommunicatorKernel<CollectiveType::kAllToAll>>)
      .Types("T", types);
}

}  // namespace gradflow::communicator
