#include "gradflow/ops/collective/collective_call.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

// A call that waits for other ranks. It ends when the ranks have called, or when the run stops.
class WaitingCall {
 public:
  WaitingCall(KernelContext& ctx, const AsyncDone& done) : stop_(ctx.run().stop), done_(done) {}

  // Ends the kernel. Called once.
  void End(absl::Status status) {
    StopToken::CallbackId callback = 0;
    {
      MutexLock lock(&mutex_);
      has_ended_ = true;
      callback = std::exchange(callback_, 0);
    }
    if (callback != 0) stop_->RemoveCallback(callback);
    done_(std::move(status));
  }

  // Cancels call `id` when the run stops. Called after the call has been started.
  static void CancelOnStop(const std::shared_ptr<WaitingCall>& call, Collectives* collectives,
                           Collectives::CallId id) {
    StopToken* const stop = call->stop_;
    {
      MutexLock lock(&call->mutex_);
      if (call->has_ended_ || stop == nullptr) return;
    }
    // The callback keeps `call`, and so the run, alive until it is removed.
    const StopToken::CallbackId callback =
        stop->AddCallback([call, collectives, id] { collectives->Cancel(id); });
    // The run may have been stopped before.
    if (callback == 0) return collectives->Cancel(id);
    {
      MutexLock lock(&call->mutex_);
      if (!call->has_ended_) {
        call->callback_ = callback;
        return;
      }
    }
    // The call has ended in the meantime.
    stop->RemoveCallback(callback);
  }

 private:
  // Lives as long as `done_`.
  StopToken* const stop_;
  const AsyncDone done_;
  Mutex mutex_;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  StopToken::CallbackId callback_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::Status CheckRows(const KernelContext& ctx) {
  return CheckRankAtLeast("input", ctx.input(0).shape(), 1);
}

// Sets the tensors of `call`.
absl::Status SetTensors(KernelContext& ctx, const TensorShape* received, CollectiveCall* call) {
  Tensor* output = nullptr;
  if (received != nullptr) {
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, *received, &output));
    call->output = *output;
    return absl::OkStatus();
  }
  TensorShape shape = ctx.input(0).shape();
  switch (call->type) {
    case CollectiveType::kBroadcast:
    case CollectiveType::kReduce:
      break;
    case CollectiveType::kReduceScatter: {
      GRADFLOW_RETURN_IF_ERROR(CheckRows(ctx));
      const int64_t rows = shape.dim_size(0);
      if (rows % call->group_size != 0) {
        return errors::InvalidArgument("the first dimension of input must be a multiple of ",
                                       "group_size ", call->group_size, ", but is ", rows);
      }
      shape.set_dim(0, rows / call->group_size);
      break;
    }
    case CollectiveType::kGather: {
      GRADFLOW_RETURN_IF_ERROR(CheckRows(ctx));
      DimVector dims(shape.dims());
      for (int d = 0; d < shape.dims(); ++d) dims[d] = shape.dim_size(d);
      // The product cannot overflow if the other dimensions have elements, because the input
      // exists.
      if (dims[0] > std::numeric_limits<int64_t>::max() / call->group_size) {
        return errors::InvalidArgument("the output would have ", call->group_size, " times ",
                                       dims[0], " rows");
      }
      dims[0] *= call->group_size;
      GRADFLOW_ASSIGN_OR_RETURN(shape, TensorShape::Make(dims));
      break;
    }
    case CollectiveType::kAllToAll: {
      GRADFLOW_RETURN_IF_ERROR(CheckRows(ctx));
      if (shape.dim_size(0) != call->group_size) {
        return errors::InvalidArgument("the first dimension of input must be group_size ",
                                       call->group_size, ", but is ", shape.dim_size(0));
      }
      break;
    }
    case CollectiveType::kBarrier:
      return absl::OkStatus();
  }
  if (call->type == CollectiveType::kBroadcast || call->group_size == 1) {
    // The sender keeps its tensor, and the merged tensors of one rank are its tensor.
    call->input = ctx.input(0);
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }
  if (call->type == CollectiveType::kReduce) {
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, shape, &output));
  } else {
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  }
  call->input = ctx.input(0);
  call->output = *output;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadCollectiveAttrs(const KernelConstruction& construction, CollectiveType type,
                                 absl::string_view merge_attr, CollectiveCall* call) {
  call->op = construction.def().op();
  call->type = type;
  if (type == CollectiveType::kReduce || type == CollectiveType::kReduceScatter) {
    std::string merge;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr(merge_attr, &merge));
    call->merge = merge == "Add"   ? CollectiveMerge::kAdd
                  : merge == "Mul" ? CollectiveMerge::kMul
                  : merge == "Min" ? CollectiveMerge::kMin
                                   : CollectiveMerge::kMax;
    // CollectiveReduceV3 has no final op.
    std::string final = "Id";
    if (merge_attr == "merge_op") {
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("final_op", &final));
    }
    call->final = final == "Div" ? CollectiveFinal::kDiv : CollectiveFinal::kId;
  }
  float seconds = 0;
  GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("timeout_seconds", &seconds));
  // A year; more milliseconds might overflow in deadlines.
  constexpr float kMaxSeconds = 365.0f * 24 * 3600;
  if (!(seconds >= 0)) {
    return errors::InvalidArgument("timeout_seconds must be at least 0, but is ", seconds);
  }
  const double milliseconds = std::ceil(1000.0 * std::min(seconds, kMaxSeconds));
  call->timeout = std::chrono::milliseconds(static_cast<int64_t>(milliseconds));
  return absl::OkStatus();
}

absl::StatusOr<int32_t> ScalarInt32(const KernelContext& ctx, int i, absl::string_view name) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, name));
  if (ctx.input_dtype(i) != DT_INT32) {
    return errors::InvalidArgument(name, " must be int32, but is ",
                                   DataTypeString(ctx.input_dtype(i)));
  }
  return ctx.input(i).scalar<int32_t>()();
}

absl::Status CheckGroup(const KernelContext& ctx, int64_t group_size) {
  if (group_size < 1) {
    return errors::InvalidArgument("group_size must be at least 1, but is ", group_size);
  }
  if (group_size == 1) return absl::OkStatus();
  const Collectives* const collectives = ctx.run().collectives;
  if (collectives == nullptr) {
    return errors::FailedPrecondition(
        "a group of ", group_size,
        " ranks needs SessionOptions::collectives (docs/distributed.md): InProcessCollectives for ",
        "sessions of one program, GlooCollectives for several processes");
  }
  if (group_size > collectives->size()) {
    return errors::InvalidArgument("group_size is ", group_size, ", but there are ",
                                   collectives->size(), " ranks");
  }
  return absl::OkStatus();
}

void StartCollective(KernelContext& ctx, const AsyncDone& done, CollectiveCall call) {
  Collectives* const collectives = ctx.run().collectives;
  const Collectives::CallId id = collectives->NewCallId();
  auto waiting = std::make_shared<WaitingCall>(ctx, done);
  collectives->Start(id, std::move(call),
                     [waiting](absl::Status status) { waiting->End(std::move(status)); });
  WaitingCall::CancelOnStop(waiting, collectives, id);
}

void RunCollective(KernelContext& ctx, const AsyncDone& done, CollectiveCall call,
                   const TensorShape* received) {
  if (call.group_size == 1 && received != nullptr) {
    done(errors::InvalidArgument("group_size must be at least 2, because a group of one rank has ",
                                 "no sender"));
    return;
  }
  if (absl::Status status = SetTensors(ctx, received, &call); !status.ok()) {
    done(std::move(status));
  } else if (call.group_size == 1) {
    done(absl::OkStatus());
  } else {
    StartCollective(ctx, done, std::move(call));
  }
}

}  // namespace gradflow
