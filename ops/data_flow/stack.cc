// Stack, StackV2 and the ops that push and pop.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/common/tensor_holder.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::stack {
namespace {

// A stack of tensors. Lives as long as a tensor holds its handle. Thread-safe.
class TensorStack final : public TensorHolder {
 public:
  // `max_size` is the largest number of tensors; negative for any number. Charges its memory to
  // `allocator`.
  static absl::StatusOr<std::shared_ptr<TensorStack>> Make(
      std::string name, DataType dtype, int64_t max_size,
      const std::shared_ptr<Allocator>& allocator) {
    std::shared_ptr<TensorStack> stack(
        new TensorStack(std::move(name), dtype, max_size, allocator));
    MutexLock lock(&stack->mutex_);
    GRADFLOW_RETURN_IF_ERROR(stack->Charge(0));
    return stack;
  }

  absl::Status Push(const Tensor& tensor) {
    GRADFLOW_RETURN_IF_ERROR(CheckHandles(tensor));
    MutexLock lock(&mutex_);
    GRADFLOW_RETURN_IF_ERROR(CheckOpen());
    if (max_size_ >= 0 && static_cast<int64_t>(tensors_.size()) >= max_size_) {
      return errors::InvalidArgument(Name(), " overflowed its max_size (", max_size_, ")");
    }
    if (tensors_.size() == tensors_.capacity()) {
      const size_t capacity = std::max<size_t>(8, 2 * tensors_.size());
      GRADFLOW_RETURN_IF_ERROR(Charge(capacity));
      tensors_.reserve(capacity);
    }
    tensors_.push_back(tensor);
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Pop() {
    MutexLock lock(&mutex_);
    GRADFLOW_RETURN_IF_ERROR(CheckOpen());
    if (tensors_.empty()) {
      return errors::InvalidArgument(Name(), " is empty when calling Pop().");
    }
    Tensor last = std::move(tensors_.back());
    tensors_.pop_back();
    return last;
  }

  void Close() {
    MutexLock lock(&mutex_);
    tensors_.clear();
    is_closed_ = true;
  }

  absl::Status CheckType(DataType dtype) const {
    if (dtype == dtype_) return absl::OkStatus();
    return errors::InvalidArgument("Must have type ", DataTypeString(dtype_), " but got ",
                                   DataTypeString(dtype));
  }

  std::string DebugString() const override { return Name(); }

 private:
  TensorStack(std::string name, DataType dtype, int64_t max_size,
              const std::shared_ptr<Allocator>& allocator)
      : name_(std::move(name)),
        dtype_(dtype),
        max_size_(max_size),
        allocator_(allocator),
        reservation_(allocator.get()) {}

  // Charges the memory of the stack with room for `capacity` tensors.
  absl::Status Charge(size_t capacity) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Stands for the handle.
    constexpr size_t kOverhead = 256;
    const size_t bytes = sizeof(TensorStack) + kOverhead + name_.size() + capacity * sizeof(Tensor);
    return reservation_.Set(static_cast<double>(bytes), "a stack of tensors");
  }
  std::string Name() const { return absl::StrCat("Stack[", name_, "]"); }
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!is_closed_) return absl::OkStatus();
    return errors::InvalidArgument(Name(), " has already been closed.");
  }

  const std::string name_;
  const DataType dtype_;
  const int64_t max_size_;
  const std::shared_ptr<Allocator> allocator_;
  mutable Mutex mutex_;
  MemoryReservation reservation_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> tensors_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::StatusOr<std::shared_ptr<TensorStack>> StackOf(const KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(ctx, 0));
  auto stack = std::dynamic_pointer_cast<TensorStack>(handle.resource());
  if (stack == nullptr) {
    return errors::InvalidArgument("handle must be a stack, but is ", handle.DebugString());
  }
  return stack;
}

absl::Status MakeShape(ShapeContext& c) {
  if (c.num_inputs() > 0) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

// Stack has no input, StackV2 has max_size.
class StackKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("elem_type", &dtype_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("stack_name", &name_));
    // For errors. Each stack has a copy.
    name_ = errors::Printable(name_.empty() ? construction.def().name() : name_);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    int64_t max_size = -1;
    if (ctx.num_inputs() > 0) {
      GRADFLOW_ASSIGN_OR_RETURN(max_size, ctx.ScalarInt(0, "max_size"));
    }
    GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<TensorStack> stack,
                              TensorStack::Make(name_, dtype_, max_size, ctx.allocator()));
    ctx.set_output(0, Tensor(ResourceHandle(std::move(stack), name_)));
    return absl::OkStatus();
  }

 private:
  DataType dtype_ = DT_INVALID;
  std::string name_;
};

absl::Status PushShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

absl::Status ComputePush(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorStack> stack, StackOf(ctx));
  GRADFLOW_RETURN_IF_ERROR(stack->CheckType(ctx.input_dtype(1)));
  GRADFLOW_RETURN_IF_ERROR(stack->Push(ctx.input(1)));
  ctx.set_output(0, ctx.input(1));
  return absl::OkStatus();
}

absl::Status ComputePop(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorStack> stack, StackOf(ctx));
  GRADFLOW_RETURN_IF_ERROR(stack->CheckType(ctx.expected_output_dtype(0)));
  GRADFLOW_ASSIGN_OR_RETURN(Tensor last, stack->Pop());
  ctx.set_output(0, std::move(last));
  return absl::OkStatus();
}

absl::Status ComputeClose(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<TensorStack> stack, StackOf(ctx));
  stack->Close();
  return absl::OkStatus();
}

// Registers the ops whose names end in `version`. The type of handles is `handle`.
void RegisterVersion(Registry& registry, absl::string_view version, const char* handle) {
  const bool is_new = !version.empty();
  const auto name = [&](absl::string_view base) { return absl::StrCat(base, version); };
  const std::string handle_spec = absl::StrCat("handle: ", handle);
  const auto stateful = [&](Registry::OpRegistrar& op) {
    if (is_new) op.Stateful();
  };
  {
    Registry::OpRegistrar op = registry.Op(name("Stack"));
    op.Group("data_flow_ops").Stateful();
    if (is_new) {
      op.Input("max_size: int32");
    } else {
      // The class ops::Stack is Pack.
      op.HandWritten();
    }
    op.Output(handle_spec)
        .Attr("elem_type: type")
        .Attr("stack_name: string = ''")
        .Shape(MakeShape)
        .Doc(absl::StrCat("Makes a stack of tensors, which lives until the end of the run.\n\n",
                          is_new
                              ? "max_size: A scalar: the largest number of tensors. Negative for "
                                "any number.\n"
                              : "",
                          R"(handle: The stack.
elem_type: The type of the tensors.
stack_name: The name of the stack in errors. The default is the name of the node.)"));
  }
  registry.Kernel(name("Stack"), MakeKernel<StackKernel>).Types("elem_type", AllDataTypes());
  {
    Registry::OpRegistrar op = registry.Op(name("StackPush"));
    stateful(op);
    op.Group("data_flow_ops")
        .Input(handle_spec)
        .Input("elem: T")
        .Output("output: T")
        .Attr("T: type")
        .Attr("swap_memory: bool = false")
        .Shape(PushShape)
        .Doc(R"(Pushes a tensor onto a stack.

handle: The stack.
elem: The tensor.
output: The same tensor.
T: The type of the tensor.
swap_memory: Not used.)");
  }
  registry.Kernel(name("StackPush"), MakeFunctionKernel<ComputePush>).Types("T", AllDataTypes());
  {
    Registry::OpRegistrar op = registry.Op(name("StackPop"));
    stateful(op);
    op.Group("data_flow_ops")
        .Input(handle_spec)
        .Output("elem: elem_type")
        .Attr("elem_type: type")
        .Shape(UnknownShape)
        .Doc(R"(Pops a tensor from a stack.

handle: The stack.
elem: The tensor that was pushed last.
elem_type: The type of the tensor.)");
  }
  registry.Kernel(name("StackPop"), MakeFunctionKernel<ComputePop>)
      .Types("elem_type", AllDataTypes());
  {
    Registry::OpRegistrar op = registry.Op(name("StackClose"));
    stateful(op);
    op.Group("data_flow_ops")
        .Input(handle_spec)
        .Shape(UnknownShape)
        .Doc(
            R"(Drops the tensors of a stack, which can then not be used any more.

handle: The stack.)");
  }
  registry.Kernel(name("StackClose"), MakeFunctionKernel<ComputeClose>);
}

}  // namespace

void Register(Registry& registry) {
  RegisterVersion(registry, "", "Ref(string)");
  RegisterVersion(registry, "V2", "resource");
}

}  // namespace gradflow::stack
