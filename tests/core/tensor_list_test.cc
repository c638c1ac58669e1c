#include "gradflow/core/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::StatusIs;

TEST(TensorList, HoldsElementsOfOneTypeAndShape) {
  TensorList list = *TensorList::Make(DT_FLOAT, {-1, 2}, 2);
  GRADFLOW_ASSERT_OK(list.PushBack(Tensor(DT_FLOAT, {1, 2})));
  EXPECT_THAT(list.PushBack(Tensor(DT_INT32, {1, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the list has elements of type float, but the tensor has type int32"));
  EXPECT_THAT(list.Set(0, Tensor(DT_FLOAT, {2, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the list has elements of shape [?,2], but the tensor has shape [2,1]"));
  EXPECT_EQ(list.elements()[0].shape(), TensorShape({1, 2}));
  GRADFLOW_ASSERT_OK(list.PushBack(Tensor(DT_FLOAT, {3, 2})));
  EXPECT_THAT(list.PushBack(Tensor(DT_FLOAT, {3, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the list is full: it has 2 elements, at most 2"));
  GRADFLOW_ASSERT_OK(list.PopBack());
  GRADFLOW_ASSERT_OK(list.Resize(3));
  EXPECT_TRUE(list.IsSet(0));
  EXPECT_FALSE(list.IsSet(2));
  EXPECT_EQ(list.DebugString(), "3 elements of type float");
  EXPECT_THAT(TensorList::Make(DT_INVALID, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "no tensor can have type INVALID"));
}

TEST(TensorList, StaysEmptyWithoutAType) {
  TensorList list;
  EXPECT_EQ(list.size(), 0);
  EXPECT_EQ(list.element_dtype(), DT_INVALID);
  EXPECT_TRUE(list.element_shape().unknown_rank());
  EXPECT_THAT(list.Resize(1),
              StatusIs(absl::StatusCode::kInvalidArgument, "the list has no element type"));
  EXPECT_THAT(list.PushBack(Tensor(DT_FLOAT, {})), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TensorList, CopiesShareElementsUntilOneChanges) {
  TensorList a = *TensorList::Make(DT_INT32, {});
  GRADFLOW_ASSERT_OK(a.PushBack(Tensor(1)));
  const void* const identity = a.identity();
  GRADFLOW_ASSERT_OK(a.PushBack(Tensor(2)));
  EXPECT_EQ(a.identity(), identity);
  EXPECT_TRUE(a.IsUnique());
  {
    TensorList b = a;
    EXPECT_FALSE(a.IsUnique());
    EXPECT_EQ(b.identity(), identity);
    GRADFLOW_ASSERT_OK(b.Set(0, Tensor(3)));
    EXPECT_NE(b.identity(), identity);
    EXPECT_EQ(a.elements()[0].span<int>()[0], 1);
    EXPECT_EQ(b.elements()[0].span<int>()[0], 3);
    EXPECT_TRUE(b.elements()[1].SharesBufferWith(a.elements()[1]));
  }
  EXPECT_TRUE(a.IsUnique());
  GRADFLOW_ASSERT_OK(a.Set(0, Tensor(4)));
  EXPECT_EQ(a.identity(), identity);
}

// Counts the bytes that are allocated.
class CountingAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    if (bytes > left) return nullptr;
    total += bytes;
    used += bytes;
    return SystemAllocator()->Allocate(bytes);
  }
  void Deallocate(void* block, size_t bytes) override {
    used -= bytes;
    SystemAllocator()->Deallocate(block, bytes);
  }

  size_t left = size_t{1} << 40;
  size_t used = 0;
  size_t total = 0;
};

TEST(TensorList, TakesTheMemoryOfItsAllocator) {
  const auto allocator = std::make_shared<CountingAllocator>();
  {
    TensorList list = *TensorList::Make(DT_FLOAT, {}, -1, allocator);
    const Tensor element(1.f);
    constexpr int kCount = 100'000;
    for (int i = 0; i < kCount; ++i) GRADFLOW_ASSERT_OK(list.PushBack(element));
    EXPECT_GE(allocator->used, kCount * sizeof(Tensor));
    // Memory doubles: all of it together is at most twice the last.
    EXPECT_LE(allocator->total, 4 * kCount * sizeof(Tensor) + 1024);

    TensorList copy = list;
    const size_t used = allocator->used;
    allocator->left = 1000;
    EXPECT_THAT(copy.PopBack(), StatusIs(absl::StatusCode::kResourceExhausted,
                                         "out of memory for a list of 100000 tensors"));
    EXPECT_EQ(copy.size(), kCount);
    EXPECT_THAT(list.Resize(int64_t{1} << 60), StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_EQ(list.size(), kCount);
    EXPECT_EQ(allocator->used, used);
  }
  EXPECT_EQ(allocator->used, 0);
}

}  // namespace
}  // namespace gradflow
