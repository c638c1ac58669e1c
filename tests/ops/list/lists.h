// Lists of tensors, for tests of their ops.
#ifndef GRADFLOW_TESTS_OPS_LIST_LISTS_H_
#define GRADFLOW_TESTS_OPS_LIST_LISTS_H_

#include <gtest/gtest.h>

#include <vector>

#include "gradflow/core/tensor_list.h"
#include "gradflow/core/variant.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace testing {

// Returns a scalar, a list of `elements`. Those of type DT_INVALID are not set.
inline Tensor ListOf(DataType dtype, const PartialTensorShape& shape,
                     const std::vector<Tensor>& elements, int64_t max_num_elements = -1) {
  absl::StatusOr<TensorList> list = TensorList::Make(dtype, shape, max_num_elements);
  GRADFLOW_EXPECT_OK(list.status());
  GRADFLOW_EXPECT_OK(list->Resize(static_cast<int64_t>(elements.size())));
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].dtype() == DT_INVALID) continue;
    GRADFLOW_EXPECT_OK(list->Set(static_cast<int64_t>(i), elements[i]));
  }
  return Tensor(Variant(*std::move(list)));
}

// An element shape of unknown rank.
inline const Tensor kNoShape(int32_t{-1});

// An element that is not set.
inline Tensor Unset() { return Tensor(Tensor::Unset()); }

inline const TensorList& ListIn(const Tensor& tensor) {
  static const auto& none = *new TensorList;
  const auto variants = tensor.span<Variant>();
  const auto* const list = variants.empty() ? nullptr : variants[0].get<TensorList>();
  EXPECT_NE(list, nullptr);
  return list == nullptr ? none : *list;
}

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_LIST_LISTS_H_
