// Queues of tensors: FIFOQueue, RandomShuffleQueue, PaddingFIFOQueue, PriorityQueue, and the ops
// that use them.
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
#include "gradflow/ops/data_flow/tensor_queue.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::queue {
namespace {

using Kind = TensorQueue::Kind;

// ---- Making queues ----

// The handle is a scalar. A reference stands for two strings, the container and the name.
absl::Status MakeShape(ShapeContext& c) {
  c.set_output(0, c.op_def().output_arg(0).is_ref() ? TensorShape({2}) : TensorShape());
  return absl::OkStatus();
}

template <Kind K>
class QueueKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    TensorQueue::Spec spec;
    spec.kind = K;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("component_types", &spec.dtypes));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shapes", &spec.shapes));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("capacity", &spec.capacity));
    if constexpr (K == Kind::kShuffle) {
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("min_after_dequeue", &spec.min_after_dequeue));
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("seed", &spec.seed));
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("seed2", &spec.seed2));
    }
    if constexpr (K == Kind::kPriority) {
      // The priority precedes the components of the attributes.
      spec.dtypes.insert(spec.dtypes.begin(), DT_INT64);
      if (!spec.shapes.empty()) spec.shapes.insert(spec.shapes.begin(), TensorShape());
    }
    return queue_.Init(construction, std::move(spec));
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(queue_.Get(ctx).status());
    ctx.set_output(0, queue_.handle());
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  NamedQueue queue_;
};

// ---- Using queues ----

absl::StatusOr<std::shared_ptr<TensorQueue>> QueueOf(const KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(ctx, 0));
  if (handle.resource() != nullptr || ctx.resource_manager() == nullptr) {
    auto queue = std::dynamic_pointer_cast<TensorQueue>(handle.resource());
    if (queue != nullptr) return queue;
    return errors::InvalidArgument("handle must be a queue, but is ", handle.DebugString());
  }
  return ctx.resource_manager()->Lookup<TensorQueue>(handle.container(), handle.name());
}

enum class Use { kEnqueue, kEnqueueMany, kDequeue, kDequeueMany, kDequeueUpTo, kClose };

template <Use U>
class UseKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    if constexpr (U == Use::kClose) {
      return construction.GetAttr("cancel_pending_enqueues", &cancels_);
    } else {
      int64_t timeout = -1;
      GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("timeout_ms", &timeout));
      if (timeout == -1) return absl::OkStatus();
      return errors::InvalidArgument("timeout_ms must be -1, but is ", timeout);
    }
  }

  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    absl::StatusOr<std::shared_ptr<TensorQueue>> queue = QueueOf(ctx);
    if (!queue.ok()) {
      done(queue.status());
    } else if constexpr (U == Use::kEnqueue || U == Use::kEnqueueMany) {
      (*queue)->Enqueue(ctx, std::move(done), /*first=*/1, U == Use::kEnqueueMany);
    } else if constexpr (U == Use::kDequeue) {
      (*queue)->Dequeue(ctx, std::move(done));
    } else if constexpr (U == Use::kClose) {
      (*queue)->Close(ctx, std::move(done), cancels_);
    } else {
      const absl::StatusOr<int64_t> count = ctx.ScalarInt(1, "n");
      if (!count.ok()) {
        done(count.status());
      } else {
        (*queue)->DequeueMany(ctx, std::move(done), *count, U == Use::kDequeueUpTo);
      }
    }
  }

 private:
  bool cancels_ = false;
};

absl::Status ComputeSize(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue, QueueOf(ctx));
  ctx.set_output(0, Tensor(static_cast<int32_t>(queue->size())));
  return absl::OkStatus();
}

absl::Status ComputeIsClosed(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorQueue> queue, QueueOf(ctx));
  ctx.set_output(0, Tensor(queue->is_closed()));
  return absl::OkStatus();
}

absl::Status DequeueManyShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  return UnknownShape(c);
}

// ---- Definitions ----

struct QueueOp {
  const char* name;
  KernelFactory factory;
  // The first line of the documentation, and its text.
  const char* summary;
  const char* description;
  const char* types;
  const char* shapes;
};

constexpr QueueOp kQueueOps[] = {
    {"FIFOQueue", MakeKernel<QueueKernel<Kind::kFifo>>, "Makes a queue: first in, first out.", "",
     "component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []"},
    {"PaddingFIFOQueue", MakeKernel<QueueKernel<Kind::kPadding>>,
     "Makes a queue of elements that may differ in some dimensions: first in, first out.",
     "An op that dequeues several elements pads them with zeros or empty strings to one shape.\n\n",
     "component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []"},
    {"RandomShuffleQueue", MakeKernel<QueueKernel<Kind::kShuffle>>,
     "Makes a queue whose elements are dequeued in a random order.", "",
     "component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []"},
    {"PriorityQueue", MakeKernel<QueueKernel<Kind::kPriority>>,
     "Makes a queue whose elements are dequeued in the order of their priorities.",
     "An element has one more component, the first: its priority, an int64. The element with the "
     "smallest\nnumber is dequeued first.\n\n",
     "component_types: list(type) >= 0 = []", "shapes: list(shape) >= 0"},
};

struct UseOp {
  const char* name;
  KernelFactory factory;
  ShapeFn shape;
  const char* summary;
  const char* inputs;
  const char* outputs;
  const char* doc;
};

constexpr const char* kComponents = "components: Tcomponents";
constexpr const char* kOutputs = "components: component_types";
constexpr const char* kTimeoutDoc = "timeout_ms: Must be -1.";

constexpr const char* kEnqueueDoc =
    "components: The components of the element.\n"
    "Tcomponents: Their types.\n";
constexpr const char* kDequeueDoc = "component_types: The types of the components.\n";

const UseOp kUseOps[] = {
    {"QueueEnqueue", MakeKernel<UseKernel<Use::kEnqueue>>, UnknownShape,
     "Adds an element to a queue. Waits while the queue is full.", kComponents, "", kEnqueueDoc},
    {"QueueEnqueueMany", MakeKernel<UseKernel<Use::kEnqueueMany>>, UnknownShape,
     "Adds elements to a queue. Waits while the queue is full.", kComponents, "",
     "components: The stacked components of the elements, of one size in dimension 0.\n"
     "Tcomponents: Their types.\n"},
    {"QueueDequeue", MakeKernel<UseKernel<Use::kDequeue>>, UnknownShape,
     "Removes an element from a queue. Waits while the queue is empty and not closed.", "",
     kOutputs, "components: The components of the element.\n"},
    {"QueueDequeueMany", MakeKernel<UseKernel<Use::kDequeueMany>>, DequeueManyShape,
     "Removes elements from a queue. Waits while there are fewer and the queue is not closed.",
     "n: int32", kOutputs,
     "n: The number of elements, a scalar.\n"
     "components: The stacked components of the elements.\n"},
    {"QueueDequeueUpTo", MakeKernel<UseKernel<Use::kDequeueUpTo>>, DequeueManyShape,
     "Removes elements from a queue, or the rest of a closed queue that has fewer elements.",
     "n: int32", kOutputs,
     "n: The number of elements, a scalar.\n"
     "components: The stacked components of the elements.\n"},
};

// Begins the definition of op `name`, whose handle is a reference, or of its second form.
Registry::OpRegistrar Begin(Registry& registry, const char* name, bool is_v2) {
  Registry::OpRegistrar op = registry.Op(absl::StrCat(name, is_v2 ? "V2" : ""));
  op.Group("data_flow_ops");
  // TensorFlow has a C++ class for the second form only.
  if (is_v2) {
    op.Stateful().Alias(name);
  } else {
    op.HandWritten();
  }
  return op;
}

const char* HandleSpec(bool is_v2) { return is_v2 ? "handle: resource" : "handle: Ref(string)"; }

void RegisterQueue(Registry& registry, const QueueOp& queue, bool is_v2) {
  const bool is_shuffle = absl::string_view(queue.name) == "RandomShuffleQueue";
  {
    Registry::OpRegistrar op = Begin(registry, queue.name, is_v2);
    op.Stateful()
        .Output(HandleSpec(is_v2))
        .Attr(queue.types)
        .Attr(queue.shapes)
        .Attr("capacity: int = -1");
    if (is_shuffle) {
      op.Attr("min_after_dequeue: int = 0").Attr("seed: int = 0").Attr("seed2: int = 0");
    }
    op.Attr("container: string = ''").Attr("shared_name: string = ''").Shape(MakeShape);
    op.Doc(absl::StrCat(
        queue.summary, "\n\n", queue.description,
        "handle: The queue.\n"
        "component_types: The types of the components of an element.\n"
        "shapes: Their shapes. Without shapes, elements must be dequeued one at a time.\n"
        "capacity: The largest number of elements. Negative for any number.\n",
        is_shuffle
            ? "min_after_dequeue: The number of elements that remain in the queue until it is "
              "closed.\n"
              "seed: The seed of the order. If both seeds are 0, the order is different in "
              "each process.\n"
              "seed2: A second seed.\n"
            : "",
        "container: The container of the queue. The default is the session's.\n"
        "shared_name: The name of the queue. The default is the name of the node."));
  }
  registry.Kernel(absl::StrCat(queue.name, is_v2 ? "V2" : ""), queue.factory);
}

void RegisterVersion(Registry& registry, bool is_v2) {
  const char* const version = is_v2 ? "V2" : "";
  for (const QueueOp& queue : kQueueOps) RegisterQueue(registry, queue, is_v2);
  for (const UseOp& use : kUseOps) {
    const bool enqueues = absl::string_view(use.outputs).empty();
    {
      Registry::OpRegistrar op = Begin(registry, use.name, is_v2);
      op.Input(HandleSpec(is_v2));
      if (!absl::string_view(use.inputs).empty()) op.Input(use.inputs);
      if (!enqueues) op.Output(use.outputs);
      op.Attr(enqueues ? "Tcomponents: list(type) >= 1" : "component_types: list(type) >= 1")
          .Attr("timeout_ms: int = -1")
          .Shape(use.shape)
          .Doc(absl::StrCat(use.summary, "\n\nhandle: The queue.\n", use.doc,
                            enqueues ? "" : kDequeueDoc, kTimeoutDoc));
    }
    registry.Kernel(absl::StrCat(use.name, version), use.factory);
  }
  {
    Registry::OpRegistrar op = Begin(registry, "QueueClose", is_v2);
    op.Input(HandleSpec(is_v2))
        .Attr("cancel_pending_enqueues: bool = false")
        .Shape(UnknownShape)
        .Doc(R"(Closes a queue.

Later enqueues fail. Elements in the queue can be dequeued.

handle: The queue.
cancel_pending_enqueues: If true, enqueues that wait fail. If false, the queue closes after them.)");
  }
  registry.Kernel(absl::StrCat("QueueClose", version), MakeKernel<UseKernel<Use::kClose>>);
  {
    Registry::OpRegistrar op = Begin(registry, "QueueIsClosed", is_v2);
    op.Input(HandleSpec(is_v2))
        .Output("is_closed: bool")
        .Shape(ScalarShape)
        .Doc(R"(Returns true if a queue is closed.

handle: The queue.
is_closed: A scalar.)");
  }
  registry.Kernel(absl::StrCat("QueueIsClosed", version), MakeFunctionKernel<ComputeIsClosed>);
  {
    Registry::OpRegistrar op = Begin(registry, "QueueSize", is_v2);
    op.Input(HandleSpec(is_v2))
        .Output("size: int32")
        .Shape(ScalarShape)
        .Doc(R"(Returns the number of elements of a queue.

handle: The queue.
size: A scalar.)");
  }
  registry.Kernel(absl::StrCat("QueueSize", version), MakeFunctionKernel<ComputeSize>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterVersion(registry, /*is_v2=*/false);
  RegisterVersion(registry, /*is_v2=*/true);
}

}  // namespace gradflow::queue
