#include "gradflow/ops/common/variant_ops.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/optional_value.h"
#include "gradflow/core/ragged_value.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_list.h"
#include "gradflow/core/variant.h"
#include "gradflow/core/variant_registry.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {
namespace {

// Lists in lists and optional values recurse.
constexpr int kMaxDepth = 64;

absl::Status TooDeep() {
  return errors::InvalidArgument("expected at most ", kMaxDepth,
                                 " levels of lists in lists, but found more");
}

absl::Status HasNoFunction(absl::string_view what, const Variant& value) {
  return errors::Unimplemented("variants of type '", errors::Printable(value.TypeName()),
                               "' have no function ", what);
}

// Lists may share lists, so that a graph of a few nodes makes a number of paths that is exponential
// in its depth. Each list is therefore computed once.
class Zeros {
 public:
  explicit Zeros(KernelContext* ctx) : ctx_(*ctx) {}

  absl::Status Of(const Variant& value, Variant* zeros) {
    if (value.is_empty()) return absl::OkStatus();
    if (const auto* const list = value.get<TensorList>()) {
      GRADFLOW_ASSIGN_OR_RETURN(*zeros, Of(*list));
      return absl::OkStatus();
    }
    if (const auto* const optional = value.get<OptionalValue>()) {
      if (!optional->has_value()) {
        *zeros = OptionalValue();
        return absl::OkStatus();
      }
      if (depth_ == kMaxDepth) return TooDeep();
      ++depth_;
      std::vector<Tensor> components;
      for (const Tensor& component : optional->components()) {
        GRADFLOW_ASSIGN_OR_RETURN(Tensor zero, Of(component));
        components.push_back(std::move(zero));
      }
      --depth_;
      *zeros = OptionalValue(std::move(components));
      return absl::OkStatus();
    }
    if (const auto* const ragged = value.get<RaggedValue>()) {
      std::vector<Tensor> components(ragged->splits().begin(), ragged->splits().end());
      GRADFLOW_ASSIGN_OR_RETURN(Tensor zero, Of(ragged->values()));
      components.push_back(std::move(zero));
      *zeros = RaggedValue(std::move(components));
      return absl::OkStatus();
    }
    const auto* const fn = VariantRegistry::Global().FindZerosLike(value.TypeId());
    return fn == nullptr ? HasNoFunction("for zeros", value) : (*fn)(ctx_, value, zeros);
  }

 private:
  absl::StatusOr<TensorList> Of(const TensorList& list) {
    if (const auto found = made_.find(list.identity()); found != made_.end()) return found->second;
    if (depth_ == kMaxDepth) return TooDeep();
    ++depth_;
    GRADFLOW_ASSIGN_OR_RETURN(TensorList zeros,
                              TensorList::Make(list.element_dtype(), list.element_shape(),
                                               list.max_num_elements(), ctx_.allocator()));
    GRADFLOW_RETURN_IF_ERROR(zeros.Resize(list.size()));
    for (int64_t i = 0; i < list.size() && !ctx_.ShouldStop(); ++i) {
      if (!list.IsSet(i)) continue;
      GRADFLOW_ASSIGN_OR_RETURN(Tensor zero, Of(list.elements()[i]));
      GRADFLOW_RETURN_IF_ERROR(zeros.Set(i, std::move(zero)));
    }
    --depth_;
    made_.emplace(list.identity(), zeros);
    return zeros;
  }

  absl::StatusOr<Tensor> Of(const Tensor& element) {
    Tensor zero;
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateTemp(element.dtype(), element.shape(), &zero));
    if (element.dtype() == DT_VARIANT) {
      for (int64_t k = 0; k < element.NumElements(); ++k) {
        GRADFLOW_RETURN_IF_ERROR(Of(element.span<Variant>()[k], &zero.span<Variant>()[k]));
      }
    } else if (DataTypeIsPlainBytes(element.dtype())) {
      SetZero(ctx_.run(), &zero);
    } else {
      return errors::InvalidArgument("there are no zeros of type ",
                                     DataTypeString(element.dtype()));
    }
    return zero;
  }

  KernelContext& ctx_;
  int depth_ = 0;
  std::map<const void*, TensorList> made_;
};

// Returns true if two tensors have the same type, shape and bytes.
bool HaveSameBytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && DataTypeIsPlainBytes(a.dtype()) &&
         (a.TotalBytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.TotalBytes()) == 0);
}

class Sums {
 public:
  explicit Sums(KernelContext* ctx) : ctx_(*ctx) {}

  absl::Status Of(const Variant& a, const Variant& b, Variant* sum) {
    if (a.is_empty() || b.is_empty()) {
      *sum = a.is_empty() ? b : a;
      return absl::OkStatus();
    }
    if (a.TypeId() != b.TypeId()) {
      return errors::InvalidArgument("variants of types '", errors::Printable(a.TypeName()),
                                     "' and '", errors::Printable(b.TypeName()),
                                     "' cannot be added");
    }
    if (const auto* const list = a.get<TensorList>()) {
      GRADFLOW_ASSIGN_OR_RETURN(*sum, Of(*list, *b.get<TensorList>()));
      return absl::OkStatus();
    }
    if (const auto* const optional = a.get<OptionalValue>()) {
      GRADFLOW_ASSIGN_OR_RETURN(*sum, Of(*optional, *b.get<OptionalValue>()));
      return absl::OkStatus();
    }
    if (const auto* const ragged = a.get<RaggedValue>()) {
      GRADFLOW_ASSIGN_OR_RETURN(*sum, Of(*ragged, *b.get<RaggedValue>()));
      return absl::OkStatus();
    }
    const auto* const fn = VariantRegistry::Global().FindAdd(a.TypeId());
    if (fn == nullptr) return HasNoFunction("for addition", a);
    Variant result;
    GRADFLOW_RETURN_IF_ERROR((*fn)(ctx_, a, b, &result));
    *sum = std::move(result);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<TensorList> Of(const TensorList& a, const TensorList& b) {
    const std::pair<const void*, const void*> key(a.identity(), b.identity());
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    if (depth_ == kMaxDepth) return TooDeep();
    ++depth_;
    if (a.element_dtype() != b.element_dtype() || a.size() != b.size() ||
        !a.element_shape().IsCompatibleWith(b.element_shape())) {
      return errors::InvalidArgument(
          "lists of ", a.DebugString(), " and shape ", a.element_shape().DebugString(), " and of ",
          b.DebugString(), " and shape ", b.element_shape().DebugString(), " cannot be added");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              a.element_shape().MergeWith(b.element_shape()));
    GRADFLOW_ASSIGN_OR_RETURN(TensorList sum,
                              TensorList::Make(a.element_dtype(), shape, -1, ctx_.allocator()));
    GRADFLOW_RETURN_IF_ERROR(sum.Resize(a.size()));
    for (int64_t i = 0; i < a.size() && !ctx_.ShouldStop(); ++i) {
      if (a.IsSet(i) && b.IsSet(i)) {
        GRADFLOW_ASSIGN_OR_RETURN(Tensor element, Add(a.elements()[i], b.elements()[i], i));
        GRADFLOW_RETURN_IF_ERROR(sum.Set(i, std::move(element)));
      } else if (a.IsSet(i) || b.IsSet(i)) {
        GRADFLOW_RETURN_IF_ERROR(sum.Set(i, (a.IsSet(i) ? a : b).elements()[i]));
      }
    }
    --depth_;
    // The lists are kept: another list could have the id of a list that is gone.
    kept_.push_back(a);
    kept_.push_back(b);
    made_.emplace(key, sum);
    return sum;
  }

  absl::StatusOr<OptionalValue> Of(const OptionalValue& a, const OptionalValue& b) {
    if (a.has_value() != b.has_value()) {
      return errors::InvalidArgument(
          "optional values cannot be added if only one of them holds tensors");
    }
    if (!a.has_value()) return a;
    if (a.components().size() != b.components().size()) {
      return errors::InvalidArgument("optional values of ", a.components().size(), " and of ",
                                     b.components().size(), " tensors cannot be added");
    }
    if (depth_ == kMaxDepth) return TooDeep();
    ++depth_;
    std::vector<Tensor> sums;
    for (size_t i = 0; i < a.components().size(); ++i) {
      GRADFLOW_ASSIGN_OR_RETURN(Tensor sum,
                                Add(a.components()[i], b.components()[i], static_cast<int64_t>(i)));
      sums.push_back(std::move(sum));
    }
    --depth_;
    return OptionalValue(std::move(sums));
  }

  absl::StatusOr<RaggedValue> Of(const RaggedValue& a, const RaggedValue& b) {
    bool same = a.splits().size() == b.splits().size();
    for (size_t i = 0; same && i < a.splits().size(); ++i) {
      same = HaveSameBytes(a.splits()[i], b.splits()[i]);
    }
    if (!same) return errors::InvalidArgument("ragged tensors of different splits cannot be added");
    std::vector<Tensor> components(a.splits().begin(), a.splits().end());
    GRADFLOW_ASSIGN_OR_RETURN(Tensor sum, Add(a.values(), b.values(), 0));
    components.push_back(std::move(sum));
    return RaggedValue(std::move(components));
  }

  // Adds elements i of two lists or optional values.
  absl::StatusOr<Tensor> Add(const Tensor& a, const Tensor& b, int64_t i) {
    if (a.dtype() != b.dtype()) {
      return errors::InvalidArgument("elements ", i, " have types ", DataTypeString(a.dtype()),
                                     " and ", DataTypeString(b.dtype()), " and cannot be added");
    }
    if (a.shape() != b.shape()) {
      return errors::InvalidArgument("elements ", i, " of two lists have shapes ",
                                     a.shape().DebugString(), " and ", b.shape().DebugString(),
                                     " and cannot be added");
    }
    const AccumulateFn add =
        DataTypeIsPlainBytes(a.dtype()) ? FindAccumulation(Accumulation::kAdd, a.dtype()) : nullptr;
    if (add == nullptr && a.dtype() != DT_VARIANT) {
      return errors::Unimplemented("lists of elements of type ", DataTypeString(a.dtype()),
                                   " cannot be added");
    }
    Tensor sum;
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateTemp(a.dtype(), a.shape(), &sum));
    if (a.dtype() == DT_VARIANT) {
      for (int64_t k = 0; k < a.NumElements(); ++k) {
        GRADFLOW_RETURN_IF_ERROR(
            Of(a.span<Variant>()[k], b.span<Variant>()[k], &sum.span<Variant>()[k]));
      }
      return sum;
    }
    const absl::Span<const int64_t> dims = a.shape().dim_sizes();
    const DimVector strides = RowMajorStrides(dims);
    CopyStrided(ctx_.run(), dims, a, {0, strides}, &sum, {0, strides});
    AccumulateStrided(ctx_.run(), add, dims, b, {0, strides}, &sum, {0, strides});
    return sum;
  }

  KernelContext& ctx_;
  int depth_ = 0;
  std::vector<TensorList> kept_;
  std::map<std::pair<const void*, const void*>, TensorList> made_;
};

}  // namespace

absl::Status ZerosLikeVariants(KernelContext& ctx) {
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
  Zeros zeros(&ctx);
  for (int64_t i = 0; i < output->NumElements() && !ctx.ShouldStop(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(
        zeros.Of(ctx.input(0).span<Variant>()[i], &output->span<Variant>()[i]));
  }
  return absl::OkStatus();
}

absl::Status AddVariants(KernelContext& ctx) {
  const int n = ctx.num_inputs();
  if (n == 0) return errors::InvalidArgument("inputs must not be an empty list");
  const TensorShape& shape = ctx.input(0).shape();
  for (int i = 0; i < n; ++i) {
    const Tensor& input = ctx.input(i);
    if (input.dtype() != DT_VARIANT || input.shape() != shape) {
      return errors::InvalidArgument("inputs must be of type variant and have one shape, ",
                                     shape.DebugString(), ", but input ", i, " is ",
                                     DataTypeString(input.dtype()), " and has ",
                                     input.shape().DebugString());
    }
  }
  if (n == 1) {
    ctx.set_output(0, ctx.input(0));
    return absl::OkStatus();
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  Sums sums(&ctx);
  for (int64_t k = 0; k < shape.num_elements() && !ctx.ShouldStop(); ++k) {
    Variant& sum = output->span<Variant>()[k];
    sum = ctx.input(0).span<Variant>()[k];
    for (int i = 1; i < n; ++i) {
      GRADFLOW_RETURN_IF_ERROR(sums.Of(sum, ctx.input(i).span<Variant>()[k], &sum));
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow
