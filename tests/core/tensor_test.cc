#include "gradflow/core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "gradflow/testing/status_matchers.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInf;
using ::gradflow::testing::kNan;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

using StoredTypes = TypeList<bool, float8_e5m2, float8_e4m3fn, float8_e4m3fnuz, float8_e4m3b11fnuz,
                             float8_e5m2fnuz, int4, uint4, int2, uint2>;
using PlainTypes = ConcatTypes<ConcatTypes<NumberTypes, QuantizedTypes>::type, StoredTypes>::type;

template <typename T>
Tensor Make(const TensorShape& shape, const std::vector<T>& values) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  EXPECT_EQ(tensor.NumElements(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.flat<T>().begin());
  return tensor;
}

// Returns a tensor with elements 0, 1, 2, ...
Tensor Iota(const TensorShape& shape) {
  Tensor tensor(DT_INT32, shape);
  std::iota(tensor.flat<int32_t>().begin(), tensor.flat<int32_t>().end(), 0);
  return tensor;
}

std::vector<int32_t> Ints(const Tensor& tensor) {
  const auto flat = tensor.flat<int32_t>();
  return {flat.begin(), flat.end()};
}

// Allocates from the system up to a limit, and counts the bytes in use.
class LimitedAllocator final : public Allocator {
 public:
  explicit LimitedAllocator(size_t limit) : limit_(limit) {}
  void* Allocate(size_t bytes) override {
    if (bytes > limit_ - used_) return nullptr;
    used_ += bytes;
    return SystemAllocator()->Allocate(bytes);
  }
  void Deallocate(void* block, size_t bytes) override {
    used_ -= bytes;
    SystemAllocator()->Deallocate(block, bytes);
  }
  size_t used() const { return used_; }

 private:
  size_t limit_;
  size_t used_ = 0;
};

// ---- Construction ----

TEST(Tensor, DefaultIsAnEmptyFloatVector) {
  const Tensor tensor;
  EXPECT_EQ(tensor.dtype(), DT_FLOAT);
  EXPECT_EQ(tensor.shape(), TensorShape({0}));
  EXPECT_TRUE(tensor.IsInitialized());
  EXPECT_EQ(tensor.TotalBytes(), 0u);
  EXPECT_EQ(tensor.tensor_data(), "");
}

TEST(Tensor, ElementsOfEveryTypeAreAligned) {
  ForEachType(PlainTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor tensor(DataTypeToEnum<T>::value, {3, 5});
    ASSERT_TRUE(tensor.IsInitialized());
    EXPECT_TRUE(tensor.IsAligned());
    EXPECT_EQ(tensor.NumElements(), 15);
    EXPECT_EQ(tensor.TotalBytes(), 15 * sizeof(T));
    tensor.flat<T>().setZero();
    EXPECT_EQ(tensor.tensor_data(), std::string(15 * sizeof(T), '\0'));
    EXPECT_EQ(tensor.matrix<T>().data(), tensor.raw_data());
  });
}

TEST(Tensor, HoldsScalars) {
  EXPECT_EQ(Tensor(2.5f).scalar<float>()(), 2.5f);
  EXPECT_EQ(Tensor(int64_t{7}).dtype(), DT_INT64);
  EXPECT_EQ(Tensor(true).scalar<bool>()(), true);
  EXPECT_EQ(Tensor(complex64(1, 2)).scalar<complex64>()(), complex64(1, 2));
  EXPECT_EQ(float{Tensor(half(0.5)).scalar<half>()()}, 0.5f);
  const Tensor text("text");
  EXPECT_EQ(text.dtype(), DT_STRING);
  EXPECT_EQ(text.shape(), TensorShape());
  EXPECT_EQ(text.scalar<tstring>()(), "text");
  EXPECT_EQ(Tensor(tstring("a\0b", 3)).scalar<tstring>()(), tstring("a\0b", 3));
}

TEST(Tensor, EmptyTensorsAreInitialized) {
  for (const TensorShape& shape :
       {TensorShape({0}), TensorShape({3, 0}), TensorShape({0, int64_t{1} << 40, 5})}) {
    for (const DataType dtype : {DT_FLOAT, DT_STRING, DT_BOOL}) {
      const Tensor tensor(dtype, shape);
      EXPECT_TRUE(tensor.IsInitialized()) << shape.DebugString();
      EXPECT_EQ(tensor.NumElements(), 0);
      EXPECT_EQ(tensor.TotalBytes(), 0u);
      EXPECT_EQ(tensor.tensor_data(), "");
      EXPECT_THAT(tensor.DeepCopy(), IsOk());
    }
  }
}

TEST(Tensor, RejectsInvalidTypesAndShapes) {
  const struct {
    DataType dtype;
    TensorShape shape;
    const char* text;
  } cases[] = {
      {DT_VARIANT_REF, {0}, "no tensor can have type variant_ref"},
      {DT_FLOAT_REF, {0}, "no tensor can have type float_ref"},
      {DT_INVALID, {}, "no tensor can have type INVALID"},
      {static_cast<DataType>(77), {0}, "no tensor can have type DataType(77)"},
      {DT_FLOAT, {-2}, "shape [-2] is not valid"},
      {DT_STRING, {int64_t{1} << 40, int64_t{1} << 40}, "is not valid"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(Tensor::Allocate(c.dtype, c.shape),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)));
    const Tensor tensor(c.dtype, c.shape);
    EXPECT_FALSE(tensor.IsInitialized());
    EXPECT_EQ(tensor.TotalBytes(), 0u);
    EXPECT_EQ(tensor.tensor_data(), "");
    EXPECT_EQ(tensor.flat<float>().size(), 0);
    EXPECT_FALSE(tensor.DeepCopy().ok());
    Tensor other;
    EXPECT_FALSE(other.CopyFrom(tensor, TensorShape({0})));
  }
}

TEST(Tensor, ReportsMissingMemory) {
  const auto allocator = std::make_shared<LimitedAllocator>(4096);
  EXPECT_THAT(Tensor::Allocate(allocator, DT_FLOAT, {1024}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("type float"), HasSubstr("shape [1024]"))));
  EXPECT_FALSE(Tensor(allocator, DT_FLOAT, {1024}).IsInitialized());
  EXPECT_EQ(allocator->used(), 0u);
  // The sizes exceed int64 or the address space.
  for (const DataType dtype : {DT_FLOAT, DT_STRING, DT_COMPLEX128}) {
    const TensorShape shape({std::numeric_limits<int64_t>::max() / 2});
    EXPECT_THAT(Tensor::Allocate(dtype, shape), StatusIs(absl::StatusCode::kResourceExhausted));
  }
}

TEST(Tensor, LastHandleFreesTheMemory) {
  auto allocator = std::make_shared<LimitedAllocator>(4096);
  LimitedAllocator* const raw = allocator.get();
  for (const DataType dtype : {DT_INT32, DT_STRING}) {
    absl::StatusOr<Tensor> tensor = Tensor::Allocate(allocator, dtype, {10});
    GRADFLOW_ASSERT_OK(tensor);
    Tensor slice = tensor->Slice(2, 4);
    EXPECT_GT(raw->used(), 0u);
    *tensor = Tensor();
    EXPECT_GT(raw->used(), 0u);
    slice = Tensor();
    EXPECT_EQ(raw->used(), 0u);
  }
  // The tensor keeps the allocator alive.
  const Tensor tensor(allocator, DT_INT32, {10});
  allocator.reset();
  EXPECT_GT(raw->used(), 0u);
}

TEST(Tensor, CopiesShareAndMovesDoNot) {
  Tensor a = Iota({4});
  Tensor b = a;
  EXPECT_TRUE(a.SharesBufferWith(b));
  b.vec<int32_t>()(0) = 9;
  EXPECT_EQ(a.vec<int32_t>()(0), 9);
  const Tensor c = std::move(b);
  EXPECT_TRUE(a.SharesBufferWith(c));
  EXPECT_EQ(c.raw_data(), a.raw_data());
  const Tensor& alias = a;
  a = alias;  // to itself
  EXPECT_THAT(Ints(a), ElementsAre(9, 1, 2, 3));
  EXPECT_FALSE(Tensor().SharesBufferWith(Tensor()));
}

TEST(Tensor, CanBeReusedByItsOnlyHandle) {
  Tensor a = Iota({4});
  EXPECT_TRUE(a.CanBeReused());
  {
    const std::vector<Tensor> copies = {a};
    EXPECT_FALSE(a.CanBeReused());
    EXPECT_FALSE(copies[0].CanBeReused());
  }
  EXPECT_TRUE(a.CanBeReused());
  {
    const Tensor slice = a.Slice(0, 1);
    EXPECT_FALSE(a.CanBeReused());
  }
  EXPECT_TRUE(a.CanBeReused());
  EXPECT_FALSE(Tensor().CanBeReused());
}

TEST(Tensor, HandlesAreCountedAcrossThreads) {
  const auto allocator = std::make_shared<LimitedAllocator>(4096);
  {
    const Tensor tensor(allocator, DT_INT32, {8});
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([tensor] {
        for (int j = 0; j < 1000; ++j) {
          Tensor copy = tensor;
          copy = copy.Slice(0, 4);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(tensor.IsInitialized());
  }
  EXPECT_EQ(allocator->used(), 0u);
}

// ---- External memory ----

TEST(TensorFromMemory, UsesTheMemoryAndReleasesItOnce) {
  int released = 0;
  float values[] = {1, 2, 3, 4};
  {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        Tensor tensor, Tensor::FromMemory(DT_FLOAT, {2, 2}, values, true, [&] { ++released; }));
    EXPECT_EQ(tensor.raw_data(), values);
    EXPECT_TRUE(tensor.CanBeReused());
    tensor.matrix<float>()(1, 1) = 5;
    const Tensor slice = tensor.Slice(1, 2);
    tensor = Tensor();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(slice.matrix<float>()(0, 1), 5);
  }
  EXPECT_EQ(values[3], 5);
  EXPECT_EQ(released, 1);
}

TEST(TensorFromMemory, IsNotReusedUnlessWritable) {
  double value = 1;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                Tensor::FromMemory(DT_DOUBLE, {}, &value, false, nullptr));
  EXPECT_FALSE(tensor.CanBeReused());
  EXPECT_EQ(tensor.scalar<double>()(), 1);
}

TEST(TensorFromMemory, EmptyTensorNeedsNoMemory) {
  int released = 0;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, Tensor::FromMemory(DT_FLOAT, {0, 3}, nullptr,
                                                                        true, [&] { ++released; }));
  EXPECT_TRUE(tensor.IsInitialized());
  EXPECT_EQ(released, 1);
}

TEST(TensorFromMemory, RefusesAndReleases) {
  alignas(64) char memory[64] = {};
  const struct {
    DataType dtype;
    TensorShape shape;
    void* data;
    const char* text;
  } cases[] = {
      {DT_STRING, {1}, memory, "type string cannot be made over plain memory"},
      {DT_RESOURCE, {1}, memory, "type resource cannot be made over plain memory"},
      {DT_FLOAT, {-1}, memory, "is not valid"},
      {DT_FLOAT, {std::numeric_limits<int64_t>::max()}, memory, "more bytes than memory"},
      {DT_FLOAT, {2}, memory + 2, "type float must start at a multiple of 4 bytes"},
      {DT_INT16, {2}, memory + 1, "type int16 must start at a multiple of 2 bytes"},
      {DT_COMPLEX128, {1}, memory + 4, "type complex128 must start at a multiple of 8 bytes"},
      {DT_FLOAT, {2}, nullptr, "must start at a multiple"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    int released = 0;
    EXPECT_THAT(Tensor::FromMemory(c.dtype, c.shape, c.data, true, [&] { ++released; }),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text)));
    EXPECT_EQ(released, 1);
  }
  EXPECT_THAT(Tensor::FromMemory(DT_COMPLEX128, {1}, memory + 8, true, nullptr), IsOk());
  EXPECT_THAT(Tensor::FromMemory(DT_UINT8, {1}, memory + 1, true, nullptr), IsOk());
}

// ---- Views ----

TEST(TensorViews, IndexRowMajor) {
  Tensor tensor = Iota({2, 3, 4});
  const auto view = tensor.tensor<int32_t, 3>();
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) EXPECT_EQ(view(i, j, k), (i * 3 + j) * 4 + k);
    }
  }
  EXPECT_THAT(view.dimensions(), ElementsAre(2, 3, 4));
  EXPECT_EQ(view.dimension(1), 3);
  EXPECT_EQ(view.size(), 24);
  EXPECT_EQ(view[23], 23);
  const Tensor& constant = tensor;
  EXPECT_TRUE((std::is_same_v<decltype(constant.flat<int32_t>()(0)), const int32_t&>));
  EXPECT_EQ((constant.tensor<int32_t, 3>()(1, 2, 3)), 23);
  EXPECT_EQ(Iota({5}).vec<int32_t>()(4), 4);
  EXPECT_EQ(Iota({2, 2}).matrix<int32_t>()(1, 0), 2);
  EXPECT_EQ((tensor.shaped<int32_t, 2>({4, 6})(3, 5)), 23);
  EXPECT_EQ((constant.shaped<int32_t, 1>({24})(7)), 7);
}

TEST(TensorViews, OneElementOfAnyRankIsAScalar) {
  for (const TensorShape& shape : {TensorShape(), TensorShape({1}), TensorShape({1, 1, 1})}) {
    Tensor tensor(DT_FLOAT, shape);
    tensor.scalar<float>()() = 3;
    EXPECT_EQ(tensor.flat<float>()(0), 3);
  }
}

TEST(TensorViews, CollapseDimensions) {
  const struct {
    TensorShape shape;
    std::vector<int64_t> inner2, outer2, inner3, outer3;
  } cases[] = {
      {{}, {1, 1}, {1, 1}, {1, 1, 1}, {1, 1, 1}},
      {{5}, {1, 5}, {5, 1}, {1, 1, 5}, {5, 1, 1}},
      {{2, 3}, {2, 3}, {2, 3}, {1, 2, 3}, {2, 3, 1}},
      {{2, 3, 4, 5}, {24, 5}, {2, 60}, {6, 4, 5}, {2, 3, 20}},
      {{2, 0, 4}, {0, 4}, {2, 0}, {2, 0, 4}, {2, 0, 4}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.shape.DebugString());
    Tensor tensor = Iota(c.shape);
    const Tensor& constant = tensor;
    const auto dims = [](const auto& view) {
      return std::vector<int64_t>(view.dimensions().begin(), view.dimensions().end());
    };
    EXPECT_EQ(dims(tensor.flat_inner_dims<int32_t>()), c.inner2);
    EXPECT_EQ(dims(constant.flat_inner_dims<int32_t>()), c.inner2);
    EXPECT_EQ(dims(tensor.flat_outer_dims<int32_t>()), c.outer2);
    EXPECT_EQ(dims(constant.flat_outer_dims<int32_t>()), c.outer2);
    EXPECT_EQ(dims(tensor.flat_inner_dims<int32_t, 3>()), c.inner3);
    EXPECT_EQ(dims(constant.flat_outer_dims<int32_t, 3>()), c.outer3);
  }
}

TEST(TensorViews, KeepDimensionsInTheMiddle) {
  const struct {
    TensorShape shape;
    int64_t begin;
    std::vector<int64_t> dims3;
  } cases[] = {
      {{2, 3, 4, 5, 6}, 0, {2, 3, 120}},
      {{2, 3, 4, 5, 6}, 1, {6, 4, 30}},
      {{2, 3, 4, 5, 6}, 2, {24, 5, 6}},
      {{2, 3, 4, 5, 6}, 3, {120, 6, 1}},
      {{2, 3, 4, 5, 6}, -1, {1, 2, 360}},
      {{2, 3, 4, 5, 6}, -2, {1, 1, 720}},
      {{2, 3, 4, 5, 6}, 10, {720, 1, 1}},
      {{2, 3, 4, 5, 6}, -10, {1, 1, 720}},
      {{}, 0, {1, 1, 1}},
      {{2, 0, 4}, 1, {0, 4, 1}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.shape.DebugString());
    Tensor tensor = Iota(c.shape);
    const Tensor& constant = tensor;
    const auto view = tensor.flat_inner_outer_dims<int32_t>(c.begin);
    EXPECT_THAT(view.dimensions(), ElementsAreArray(c.dims3));
    EXPECT_EQ(view.data(), tensor.raw_data());
    EXPECT_THAT(constant.flat_inner_outer_dims<int32_t>(c.begin).dimensions(),
                ElementsAreArray(c.dims3));
  }
}

TEST(TensorViews, CastBits) {
  Tensor tensor(DT_FLOAT, {2, 3});
  tensor.flat<float>().setConstant(1);
  const Tensor& constant = tensor;
  const auto bits = tensor.bit_casted_tensor<int32_t, 2>();
  EXPECT_THAT(bits.dimensions(), ElementsAre(2, 3));
  EXPECT_EQ(bits(1, 2), 0x3f800000);
  bits(1, 2) = 0x40000000;
  EXPECT_EQ(tensor.matrix<float>()(1, 2), 2);
  EXPECT_EQ((constant.bit_casted_tensor<uint32_t, 2>()(1, 2)), 0x40000000u);
  const auto bytes = constant.bit_casted_shaped<uint8_t, 3>({2, 3, 4});
  EXPECT_EQ(bytes(1, 2, 3), 0x40);
  EXPECT_EQ((tensor.bit_casted_shaped<int64_t, 1>({3})(0)), 0x3f8000003f800000);

  // The size differs, the rank differs, a size is negative, or a type is not plain bytes.
  EXPECT_EQ((tensor.bit_casted_tensor<double, 2>().data()), nullptr);
  EXPECT_EQ((tensor.bit_casted_tensor<int32_t, 1>().data()), nullptr);
  EXPECT_EQ((tensor.bit_casted_shaped<int32_t, 2>({-2, -3}).data()), nullptr);
  EXPECT_EQ((tensor.bit_casted_shaped<tstring, 1>({1}).data()), nullptr);
  Tensor text(DT_STRING, {1});
  EXPECT_EQ((text.bit_casted_shaped<int32_t, 1>({8}).data()), nullptr);
  // The view has no elements.
  Tensor empty(DT_FLOAT, {0});
  EXPECT_EQ((empty.bit_casted_tensor<int32_t, 1>().size()), 0);
}

TEST(TensorViews, AreEmptyForMismatches) {
  Tensor tensor = Iota({2, 3});
  const Tensor& constant = tensor;
  const auto expect_empty = [](const auto& view) {
    EXPECT_EQ(view.size(), 0);
    EXPECT_EQ(view.data(), nullptr);
    EXPECT_EQ(view.begin(), view.end());
  };
  expect_empty(tensor.matrix<float>());  // another type
  expect_empty(constant.flat<int64_t>());
  expect_empty(tensor.flat<qint32>());  // another type of the same width
  expect_empty(tensor.vec<int32_t>());  // another rank
  expect_empty(constant.tensor<int32_t, 3>());
  expect_empty(tensor.scalar<int32_t>());  // another number of elements
  expect_empty(Iota({0}).scalar<int32_t>());
  expect_empty(tensor.shaped<int32_t, 2>({2, 4}));
  expect_empty(tensor.shaped<int32_t, 2>({-2, -3}));
  expect_empty(constant.shaped<int32_t, 2>({6}));
  EXPECT_TRUE(constant.span<float>().empty());
  // Writes through a mismatched view do not change the tensor.
  tensor.matrix<float>()(1, 2) = 7;
  tensor.scalar<int32_t>()() = 7;
  tensor.vec<int32_t>()[5] = 7;
  tensor.flat<float>().setZero();
  EXPECT_EQ(tensor.matrix<float>()(100, 100), 0);
  EXPECT_THAT(Ints(tensor), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TensorViews, HaveSpansAndFill) {
  Tensor tensor(DT_FLOAT, {2, 2});
  tensor.flat<float>().setConstant(1.5f);
  EXPECT_THAT(tensor.span<float>(), ElementsAre(1.5f, 1.5f, 1.5f, 1.5f));
  tensor.span<float>()[3] = 2;
  const absl::Span<const float> span = std::as_const(tensor).matrix<float>();
  EXPECT_THAT(span, ElementsAre(1.5f, 1.5f, 1.5f, 2.0f));
  tensor.matrix<float>().setZero();
  EXPECT_THAT(tensor.span<float>(), ElementsAre(0, 0, 0, 0));
}

// ---- Slices and shapes ----

TEST(TensorSlice, SharesRows) {
  const Tensor tensor = Iota({4, 2});
  const struct {
    int64_t start, limit;
    std::vector<int32_t> values;
  } cases[] = {{0, 4, {0, 1, 2, 3, 4, 5, 6, 7}},
               {1, 3, {2, 3, 4, 5}},
               {3, 4, {6, 7}},
               {2, 2, {}},
               {3, 1, {}},
               {-5, 1, {0, 1}},
               {3, 99, {6, 7}},
               {99, 100, {}},
               {std::numeric_limits<int64_t>::min(),
                std::numeric_limits<int64_t>::max(),
                {0, 1, 2, 3, 4, 5, 6, 7}}};
  for (const auto& c : cases) {
    const Tensor slice = tensor.Slice(c.start, c.limit);
    SCOPED_TRACE(slice.DebugString());
    EXPECT_TRUE(slice.IsInitialized());
    EXPECT_EQ(slice.shape(), TensorShape({static_cast<int64_t>(c.values.size()) / 2, 2}));
    EXPECT_EQ(Ints(slice), c.values);
    EXPECT_TRUE(slice.SharesBufferWith(tensor));
  }
}

TEST(TensorSlice, TakesSlicesScalarsAndEmptyTensors) {
  const Tensor slice = Iota({4, 2}).Slice(1, 4).Slice(1, 2);
  EXPECT_THAT(Ints(slice), ElementsAre(4, 5));
  EXPECT_FALSE(slice.IsAligned());
  EXPECT_EQ(slice.tensor_data().size(), 8u);
  EXPECT_THAT(Ints(Tensor(int32_t{3}).Slice(0, 1)), ElementsAre(3));
  EXPECT_EQ(Iota({0, 2}).Slice(0, 5).shape(), TensorShape({0, 2}));
  EXPECT_EQ(Iota({3, 0}).Slice(1, 2).shape(), TensorShape({1, 0}));
}

TEST(TensorSlice, SubSliceDropsTheDimension) {
  const Tensor tensor = Iota({3, 2, 2});
  const Tensor row = tensor.SubSlice(2);
  EXPECT_EQ(row.shape(), TensorShape({2, 2}));
  EXPECT_THAT(Ints(row), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(Ints(row.SubSlice(1).SubSlice(0)), ElementsAre(10));
  for (const int64_t index : {-1, 3}) EXPECT_FALSE(tensor.SubSlice(index).IsInitialized());
  EXPECT_FALSE(Tensor(1.0f).SubSlice(0).IsInitialized());
  EXPECT_FALSE(Iota({0, 2}).SubSlice(0).IsInitialized());
}

TEST(TensorReshape, BitcastFromSharesBytes) {
  const Tensor tensor = Make<float>({2}, {1, -2});
  Tensor other;
  ASSERT_THAT(other.BitcastFrom(tensor, DT_UINT16, {2, 2}), IsOk());
  EXPECT_EQ(other.dtype(), DT_UINT16);
  EXPECT_EQ(other.matrix<uint16_t>()(0, 1), 0x3f80);
  EXPECT_TRUE(other.SharesBufferWith(tensor));
  ASSERT_THAT(other.BitcastFrom(other, DT_INT32, {2}), IsOk());
  EXPECT_EQ(other.vec<int32_t>()(0), 0x3f800000);
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(other.BitcastFrom(tensor, DT_UINT16, {3}),
              StatusIs(kInvalid, "a tensor of 8 bytes cannot be bitcast to uint16 of shape [3]"));
  EXPECT_THAT(other.BitcastFrom(tensor, DT_STRING, {2}),
              StatusIs(kInvalid, "a tensor of type float cannot be bitcast to string"));
  EXPECT_THAT(other.BitcastFrom(Make<uint8_t>({5}, {1, 2, 3, 4, 5}).Slice(1, 5), DT_INT32, {1}),
              StatusIs(kInvalid, "the elements are not aligned for int32"));
  EXPECT_EQ(other.dtype(), DT_INT32);
}

TEST(TensorReshape, CopyFromSharesElements) {
  const Tensor tensor = Iota({2, 3});
  Tensor other = Tensor(1.0f);
  ASSERT_TRUE(other.CopyFrom(tensor, {3, 2}));
  EXPECT_TRUE(other.SharesBufferWith(tensor));
  EXPECT_EQ(other.dtype(), DT_INT32);
  EXPECT_EQ(other.matrix<int32_t>()(2, 1), 5);
  for (const TensorShape& shape :
       {TensorShape({7}), TensorShape({-2, -3}), TensorShape(), TensorShape({0})}) {
    EXPECT_FALSE(other.CopyFrom(Iota({6}), shape));
    EXPECT_TRUE(other.SharesBufferWith(tensor));
    EXPECT_EQ(other.shape(), TensorShape({3, 2}));
  }
  ASSERT_TRUE(other.CopyFrom(other, {6, 1, 1}));
  EXPECT_EQ(other.shape(), TensorShape({6, 1, 1}));
  EXPECT_TRUE(other.CopyFrom(Iota({0, 4}), {7, 0}));
}

TEST(TensorReshape, ReshapedNamesMismatches) {
  const Tensor tensor = Iota({2, 3});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor flat, tensor.Reshaped({6}));
  EXPECT_TRUE(flat.SharesBufferWith(tensor));
  EXPECT_THAT(Ints(flat), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(tensor.Reshaped({5}), StatusIs(absl::StatusCode::kInvalidArgument,
                                             "a tensor of shape [2,3] cannot be reshaped to [5]"));
}

TEST(TensorDeepCopy, SharesNoElements) {
  const Tensor tensor = Iota({4, 2});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(Tensor copy, tensor.Slice(1, 3).DeepCopy());
  EXPECT_FALSE(copy.SharesBufferWith(tensor));
  EXPECT_TRUE(copy.IsAligned());
  EXPECT_EQ(copy.shape(), TensorShape({2, 2}));
  copy.flat<int32_t>()(0) = 99;
  EXPECT_THAT(Ints(copy), ElementsAre(99, 3, 4, 5));
  EXPECT_EQ(tensor.matrix<int32_t>()(1, 0), 2);
}

// For UndefinedBehaviorSanitizer: a copy without elements has no memory.
TEST(TensorDeepCopy, CopiesAnEmptyPart) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor copy, Iota({4, 2}).Slice(1, 1).DeepCopy());
  EXPECT_EQ(copy.shape(), TensorShape({0, 2}));
}

TEST(TensorStrings, AreOrdinaryElements) {
  const std::string long_text(1000, 'x');
  Tensor tensor(DT_STRING, {2, 2});
  for (const tstring& s : tensor.flat<tstring>()) EXPECT_EQ(s, "");
  tensor.matrix<tstring>()(1, 0) = long_text;
  EXPECT_EQ(tensor.TotalBytes(), 4 * sizeof(tstring) + 1000);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(Tensor copy, tensor.DeepCopy());
  copy.matrix<tstring>()(1, 0) = "other";
  EXPECT_EQ(tensor.matrix<tstring>()(1, 0), long_text);
  EXPECT_EQ(tensor.SubSlice(1).vec<tstring>()(0), long_text);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor flat, tensor.Reshaped({4}));
  EXPECT_EQ(flat.vec<tstring>()(2), long_text);
}

// ---- Printing ----

TEST(TensorPrinting, SummarizesValues) {
  const auto values = [](int64_t count) {
    std::vector<int32_t> v(count);
    std::iota(v.begin(), v.end(), 1);
    return v;
  };
  const struct {
    TensorShape shape;
    int64_t max_entries;
    const char* text;
  } cases[] = {
      {{5}, 16, "1 2 3 4 5"},
      {{5}, 3, "1 2 3..."},
      {{5}, 5, "1 2 3 4 5"},
      {{2, 2}, 16, "[1 2][3 4]"},
      {{2, 2, 1, 1}, 16, "[[[1]][[2]]][[[3]][[4]]]"},
      {{}, 16, "1"},
      {{0}, 16, ""},
      {{3, 0}, 16, ""},
  };
  for (const auto& c : cases) {
    const Tensor tensor = Make<int32_t>(c.shape, values(c.shape.num_elements()));
    EXPECT_EQ(tensor.SummarizeValue(c.max_entries), c.text) << c.shape.DebugString();
  }
}

TEST(TensorPrinting, FormatsEachType) {
  const std::pair<Tensor, const char*> cases[] = {
      {Make<bool>({3}, {false, true, true}), "0 1 1"},
      {Make<float>({4}, {1, 0.1f, -1e20f, 1e-7f}), "1 0.1 -1e+20 1e-07"},
      {Make<float>({3}, {kNan, kInf, -kInf}), "nan inf -inf"},
      {Make<double>({2}, {0.1, 1.0 / 3}), "0.1 0.3333333333333333"},
      {Make<half>({2}, {half(0.5), half(-2)}), "0.5 -2"},
      {Make<bfloat16>({1}, {bfloat16(3.140625)}), "3.14062"},
      {Make<int8_t>({2}, {-128, 65}), "-128 65"},
      {Make<uint8_t>({2}, {255, 65}), "255 65"},
      {Make<uint64_t>({1}, {std::numeric_limits<uint64_t>::max()}), "18446744073709551615"},
      {Make<qint8>({1}, {qint8{-3}}), "-3"},
      {Make<uint4>({1}, {uint4{15}}), "15"},
      {Make<complex64>({1}, {complex64(1, -2.5f)}), "(1,-2.5)"},
      {Make<tstring>({2}, {"one", "a\n"}), "one a\\n"},
  };
  for (const auto& [tensor, text] : cases) {
    EXPECT_EQ(tensor.SummarizeValue(10), text) << DataTypeString(tensor.dtype());
  }
}

TEST(TensorPrinting, PrintsLikeNumPy) {
  const Tensor numbers = Make<int32_t>({5}, {1, 2, 3, 4, 0});
  EXPECT_EQ(numbers.SummarizeValue(16, true), "[1 2 3 4 0]");
  EXPECT_EQ(numbers.SummarizeValue(-1, true), "[1 2 3 4 0]");
  EXPECT_EQ(numbers.SummarizeValue(2, true), "[1 2 ... 4 0]");
  EXPECT_EQ(numbers.SummarizeValue(0, true), "[...]");
  EXPECT_EQ(numbers.SummarizeValue(-1), "1 2 3 4 0");
  const Tensor rows = Make<int32_t>({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(rows.SummarizeValue(1, true), "[[1 ... 4]\n ...\n [9 ... 12]]");
  EXPECT_EQ(rows.SummarizeValue(9, true), "[[1 2 3 4]\n [5 6 7 8]\n [9 10 11 12]]");
  EXPECT_EQ(Make<int32_t>({2, 2, 1}, {1, 2, 3, 4}).SummarizeValue(9, true),
            "[[[1]\n  [2]]\n\n [[3]\n  [4]]]");
  EXPECT_EQ(Make<tstring>({2}, {"one", "two"}).SummarizeValue(9, true), "[\"one\" \"two\"]");
  EXPECT_EQ(Tensor(3.5f).SummarizeValue(9, true), "3.5");
  // A loop over this size would not end.
  EXPECT_EQ(Tensor(DT_FLOAT, TensorShape({1 << 30, 1 << 30, 0})).SummarizeValue(-1, true), "[]");
  EXPECT_EQ(numbers.DeviceSafeDebugString(), "Tensor<type: int32 shape: [5]>");
}

TEST(Tensor, HasTensorFlowsNames) {
  Tensor tensor;
  EXPECT_THAT(Tensor::BuildTensor(DT_INT32, TensorShape({2, 4}), &tensor), IsOk());
  EXPECT_EQ(tensor.AllocatedBytes(), 32u);
  EXPECT_TRUE(tensor.RefCountIsOne());
  EXPECT_EQ(Tensor::BuildTensor(DT_INVALID, TensorShape({2}), &tensor).code(),
            absl::StatusCode::kInvalidArgument);
  Tensor cast;
  cast.UnsafeCopyFromInternal(tensor, DT_FLOAT, TensorShape({8}));
  EXPECT_TRUE(cast.SharesBufferWith(tensor));
  EXPECT_FALSE(tensor.RefCountIsOne());
  EXPECT_EQ(cast.dtype(), DT_FLOAT);
  cast.UnsafeCopyFromInternal(tensor, DT_FLOAT, TensorShape({9}));
  EXPECT_FALSE(cast.IsInitialized());
}

TEST(Tensor, ReinterpretsTheLastDimension) {
  Tensor bytes(DT_INT8, TensorShape({3, 4}));
  for (int i = 0; i < 12; ++i) bytes.flat<int8_t>()(i) = i < 4 ? 0 : 1;
  const auto rows = bytes.reinterpret_last_dimension<int32_t, 1>();
  EXPECT_EQ(rows.size(), 3);
  EXPECT_EQ(rows(0), 0);
  EXPECT_EQ(rows(2), 0x01010101);
  const Tensor& constant = bytes;
  EXPECT_EQ((constant.reinterpret_last_dimension<int32_t, 1>()(1)), 0x01010101);
  // A row is smaller than an int64.
  EXPECT_EQ((bytes.reinterpret_last_dimension<int64_t, 1>().size()), 0);
}

TEST(Tensor, TakesOverElementsOfAnotherTensor) {
  Tensor from = Iota({6});
  const void* const data = from.raw_data();
  Tensor to;
  EXPECT_FALSE(to.TakeFrom(&from, {7}));
  EXPECT_TRUE(from.CanBeReused());
  ASSERT_TRUE(to.TakeFrom(&from, {2, 3}));
  EXPECT_EQ(to.shape(), TensorShape({2, 3}));
  EXPECT_EQ(to.raw_data(), data);
  EXPECT_TRUE(to.CanBeReused());
  // The first tensor stays readable, but must not be written.
  EXPECT_EQ(from.flat<int32_t>()(5), 5);
  EXPECT_FALSE(from.CanBeReused());
  // Copies hold the elements like other tensors.
  const Tensor copy = from;
  EXPECT_FALSE(to.CanBeReused());
  from = Tensor();
  to = Tensor();
  EXPECT_TRUE(copy.CanBeReused());
  EXPECT_EQ(copy.flat<int32_t>()(5), 5);
}

TEST(Tensor, BorrowsElementsWithoutAReference) {
  Tensor lender = Iota({4});
  {
    Tensor borrowed(Tensor::Borrow(), lender);
    EXPECT_EQ(borrowed.shape(), lender.shape());
    EXPECT_TRUE(borrowed.SharesBufferWith(lender));
    EXPECT_FALSE(borrowed.CanBeReused());
    EXPECT_TRUE(lender.CanBeReused());
    const Tensor copy = borrowed;
    EXPECT_FALSE(lender.CanBeReused());
  }
  EXPECT_TRUE(lender.CanBeReused());
  // Moving a borrowed tensor makes an ordinary tensor.
  Tensor borrowed(Tensor::Borrow(), lender);
  const Tensor moved = std::move(borrowed);
  EXPECT_FALSE(lender.CanBeReused());
  Tensor assigned(Tensor::Borrow(), lender);
  assigned = Iota({2});
  EXPECT_TRUE(assigned.CanBeReused());
  lender = Tensor();
  EXPECT_TRUE(moved.CanBeReused());
  EXPECT_EQ(moved.flat<int32_t>()(3), 3);
}

TEST(TensorPrinting, DebugStringHasTypeShapeAndFirstValues) {
  EXPECT_EQ(Make<float>({2}, {1, 2}).DebugString(), "Tensor<type: float shape: [2] values: 1 2>");
  EXPECT_EQ(Iota({5}).DebugString(), "Tensor<type: int32 shape: [5] values: 0 1 2...>");
  EXPECT_EQ(Iota({5}).DebugString(4), "Tensor<type: int32 shape: [5] values: 0 1 2 3...>");
  EXPECT_EQ(Tensor().DebugString(), "Tensor<type: float shape: [0] values: >");
}

TEST(TensorPrinting, PrintsTensorsWithoutElements) {
  const auto nothing = std::make_shared<LimitedAllocator>(0);
  const Tensor tensor(nothing, DT_FLOAT, {4, 4});
  EXPECT_THAT(tensor.SummarizeValue(3),
              AllOf(HasSubstr("uninitialized"), HasSubstr("float"), HasSubstr("[4,4]")));
  EXPECT_THAT(Tensor(DT_FLOAT_REF, {2}).DebugString(), HasSubstr("uninitialized"));
}

}  // namespace
}  // namespace gradflow
