// Stage and Unstage: tuples of tensors that wait for a later run, first in, first out.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/data_flow/tensor_queue.h"

namespace gradflow::stage {
namespace {

template <bool IsStage>
class StageKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    TensorQueue::Spec spec;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("dtypes", &spec.dtypes));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("capacity", &spec.capacity));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("memory_limit", &spec.memory_limit));
    // A queue has any capacity if the number is negative.
    if (spec.capacity == 0) spec.capacity = -1;
    return queue_.Init(construction, std::move(spec));
  }
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    const absl::StatusOr<std::shared_ptr<TensorQueue>> queue = queue_.Get(ctx);
    if (!queue.ok()) {
      done(queue.status());
    } else if constexpr (IsStage) {
      (*queue)->Enqueue(ctx, std::move(done), /*first=*/0, /*many=*/false);
    } else {
      (*queue)->Dequeue(ctx, std::move(done));
    }
  }

 private:
  NamedQueue queue_;
};

void AddAttrs(Registry::OpRegistrar& op) {
  op.Attr("capacity: int >= 0 = 0")
      .Attr("memory_limit: int >= 0 = 0")
      .Attr("dtypes: list(type) >= 1")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Shape(UnknownShape);
}

constexpr const char* kAttrsDoc =
    "capacity: The largest number of tuples, or 0 for any number.\n"
    "memory_limit: The largest number of bytes of all tuples, or 0 for any number.\n"
    "dtypes: The types of the tensors.\n"
    "container: The container of the tuples. The default is the session's.\n"
    "shared_name: The name under which the ops find the tuples. The default is the name of the "
    "node.";

}  // namespace

void Register(Registry& registry) {
  {
    Registry::OpRegistrar op = registry.Op("Stage");
    op.Group("data_flow_ops").Stateful().Input("values: dtypes");
    AddAttrs(op);
    op.Doc(absl::StrCat("Stores a tuple of tensors. Waits while there is no room.\n\n",
                        "values: The tensors.\n", kAttrsDoc));
  }
  registry.Kernel("Stage", MakeKernel<StageKernel<true>>);
  {
    Registry::OpRegistrar op = registry.Op("Unstage");
    op.Group("data_flow_ops").Stateful().Output("values: dtypes");
    AddAttrs(op);
    op.Doc(absl::StrCat("Removes the tuple that was stored first. Waits while there is none.\n\n",
                        "values: The tensors.\n", kAttrsDoc));
  }
  registry.Kernel("Unstage", MakeKernel<StageKernel<false>>);
}

}  // namespace gradflow::stage
