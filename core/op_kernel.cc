#include "gradflow/core/op_kernel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "gradflow/core/out_parameter.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"

namespace gradflow {

size_t KernelContext::LongestString() {
  if (longest_string_ < 0) {
    longest_string_ = 0;
    for (const Tensor& input : inputs_) {
      for (const tstring& s : input.span<tstring>()) {
        longest_string_ = std::max(longest_string_, static_cast<int64_t>(s.size()));
      }
    }
  }
  return static_cast<size_t>(longest_string_);
}

absl::Status KernelContext::AllocateOutput(int i, const TensorShape& shape, Tensor** out) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(out, "KernelContext::AllocateOutput", "out"));
  const auto fault = [i](const absl::Status& status) {
    return errors::Prefix(absl::StrCat("output ", i, ": "), status);
  };
  absl::StatusOr<Tensor> tensor = Tensor::Allocate(*run_.allocator, output_types_[i], shape);
  if (!tensor.ok()) return fault(tensor.status());
  double bytes = std::exchange(expected_string_bytes_, -1);
  if (output_types_[i] == DT_STRING) {
    if (bytes < 0) {
      bytes = static_cast<double>(LongestString()) * static_cast<double>(shape.num_elements());
    }
    // No allocator has more bytes.
    constexpr double kMax = 1e18;
    const absl::Status status = tensor->ChargeStrings(static_cast<size_t>(std::min(bytes, kMax)));
    if (!status.ok()) return fault(status);
  }
  outputs_[i] = *std::move(tensor);
  if (allocated_bytes_ != nullptr) *allocated_bytes_ += outputs_[i].TotalBytes();
  *out = &outputs_[i];
  return absl::OkStatus();
}

absl::Status KernelContext::ForwardInputOrAllocateOutput(int input, int i, const TensorShape& shape,
                                                         Tensor** out) {
  GRADFLOW_RETURN_IF_ERROR(
      internal::CheckOut(out, "KernelContext::ForwardInputOrAllocateOutput", "out"));
  Tensor& in = inputs_[input];
  // Reuse saves nothing for strings, because their characters are allocated in any case.
  if (in.dtype() == output_types_[i] && in.dtype() != DT_STRING && in.CanBeReused() &&
      outputs_[i].TakeFrom(&in, shape)) {
    *out = &outputs_[i];
    return absl::OkStatus();
  }
  return AllocateOutput(i, shape, out);
}

absl::Status KernelContext::AllocateTemp(DataType dtype, const TensorShape& shape, Tensor* out) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(out, "KernelContext::AllocateTemp", "out"));
  GRADFLOW_ASSIGN_OR_RETURN(*out, Tensor::Allocate(*run_.allocator, dtype, shape));
  if (allocated_bytes_ != nullptr) *allocated_bytes_ += out->TotalBytes();
  return absl::OkStatus();
}

namespace {

// Lets the thread that runs an asynchronous kernel wait for the kernel's end.
class Waiter final : public AsyncDone::Target {
 public:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::Status> status;
  };
  explicit Waiter(State* state) : state_(*state) {}
  ~Waiter() override { Done(errors::Internal("the kernel dropped its callback without a call")); }

  bool Done(absl::Status status) override {
    if (done_.exchange(true)) return false;
    const std::lock_guard<std::mutex> lock(state_.mutex);
    state_.status = std::move(status);
    state_.changed.notify_one();
    return true;
  }

 private:
  State& state_;
  std::atomic<bool> done_{false};
};

}  // namespace

absl::Status AsyncOpKernel::Compute(KernelContext& ctx) const {
  Waiter::State state;
  ComputeAsync(ctx, AsyncDone(std::make_shared<Waiter>(&state)));
  std::unique_lock<std::mutex> lock(state.mutex);
  state.changed.wait(lock, [&] { return state.status.has_value(); });
  return *std::move(state.status);
}

absl::Status KernelContext::CheckScalar(int i, absl::string_view name) const {
  return CheckRank(i, name, 0);
}

absl::Status KernelContext::CheckVector(int i, absl::string_view name) const {
  return CheckRank(i, name, 1);
}

absl::Status KernelContext::CheckRank(int i, absl::string_view name, int rank) const {
  if (inputs_[i].dims() == rank) return absl::OkStatus();
  return gradflow::CheckRank(name, inputs_[i].shape(), rank);
}

absl::Status KernelContext::CheckShape(int i, absl::string_view name,
                                       const TensorShape& expected) const {
  if (inputs_[i].shape() == expected) return absl::OkStatus();
  return errors::InvalidArgument(name, " must have shape ", expected.DebugString(),
                                 ", but has shape ", inputs_[i].shape().DebugString());
}

absl::Status KernelContext::CheckSameShape(int i, absl::string_view name_i, int j,
                                           absl::string_view name_j) const {
  if (inputs_[i].shape() == inputs_[j].shape()) return absl::OkStatus();
  return MergeShapes(name_i, inputs_[i].shape(), name_j, inputs_[j].shape()).status();
}

absl::StatusOr<DimVector> KernelContext::Ints(int i, absl::string_view name) const {
  DimVector values;
  const Tensor& tensor = inputs_[i];
  // Checks the number of elements before they are copied.
  if (tensor.NumElements() > kMaxDims) {
    return errors::InvalidArgument(name, " must have at most ", kMaxDims, " elements, but has ",
                                   tensor.NumElements());
  }
  const bool known =
      DispatchType(TypeList<int16_t, int32_t, int64_t>(), tensor.dtype(), [&](auto tag) {
        const auto flat = tensor.flat<typename decltype(tag)::type>();
        values.assign(flat.begin(), flat.end());
      });
  if (!known) {
    return errors::InvalidArgument(name, " must be of type int16, int32 or int64, but is ",
                                   DataTypeString(tensor.dtype()));
  }
  return values;
}

absl::StatusOr<int64_t> KernelContext::ScalarInt(int i, absl::string_view name) const {
  GRADFLOW_RETURN_IF_ERROR(CheckScalar(i, name));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector values, Ints(i, name));
  return values[0];
}

}  // namespace gradflow
