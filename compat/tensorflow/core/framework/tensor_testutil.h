// Tensors from literals, and comparison of tensors, for tests.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TESTUTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TESTUTIL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace test {

// Fills a tensor with the given values, in row-major order.
template <typename T>
void FillValues(Tensor* tensor, gtl::ArraySlice<T> values) {
  auto flat = tensor->flat<T>();
  ASSERT_EQ(flat.size(), static_cast<int64>(values.size()))
      << "values for " << tensor->DebugString(0);
  for (int64 i = 0; i < flat.size(); ++i) flat(i) = values[i];
}
// Fills a tensor with values converted from another type.
template <typename T, typename SrcType>
void FillValues(Tensor* tensor, std::initializer_list<SrcType> values) {
  auto flat = tensor->flat<T>();
  ASSERT_EQ(flat.size(), static_cast<int64>(values.size()))
      << "values for " << tensor->DebugString(0);
  std::transform(values.begin(), values.end(), flat.data(),
                 [](const SrcType& value) { return static_cast<T>(value); });
}

// Sets element i to fn(i).
template <typename T>
void FillFn(Tensor* tensor, std::function<T(int)> fn) {
  auto flat = tensor->flat<T>();
  ASSERT_EQ(flat.size(), tensor->NumElements()) << tensor->DebugString(0);
  for (int64 i = 0; i < flat.size(); ++i) flat(i) = fn(static_cast<int>(i));
}

// Fills a tensor with start, start + 1, ...
template <typename T>
void FillIota(Tensor* tensor, const T& start) {
  auto flat = tensor->flat<T>();
  ASSERT_EQ(flat.size(), tensor->NumElements()) << tensor->DebugString(0);
  T value = start;
  for (int64 i = 0; i < flat.size(); ++i) {
    flat(i) = value;
    value = static_cast<T>(value + T(1));
  }
}

template <typename T>
Tensor AsTensor(gtl::ArraySlice<T> values, const TensorShape& shape) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  FillValues<T>(&tensor, values);
  return tensor;
}
template <typename T>
Tensor AsTensor(gtl::ArraySlice<T> values) {
  return AsTensor<T>(values, TensorShape({static_cast<int64>(values.size())}));
}
template <typename T>
Tensor AsScalar(const T& value) {
  Tensor tensor(DataTypeToEnum<T>::value, TensorShape());
  tensor.scalar<T>()() = value;
  return tensor;
}

namespace internal {

// Returns true if types and shapes are equal. Otherwise adds a failure.
inline bool ExpectSameKind(const Tensor& x, const Tensor& y) {
  EXPECT_EQ(DataTypeString(x.dtype()), DataTypeString(y.dtype()));
  EXPECT_EQ(x.shape().DebugString(), y.shape().DebugString());
  return x.dtype() == y.dtype() && x.shape() == y.shape();
}

inline std::string Both(const Tensor& x, const Tensor& y) {
  return "x = " + x.DebugString(100) + "\ny = " + y.DebugString(100);
}

template <typename T>
bool IsNan(const T& value) {
  return value != value;
}

// Expects same(x, y) for each pair of elements, and reports the first violation.
template <typename T, typename Same>
void ExpectElements(const Tensor& x, const Tensor& y, Same same) {
  if (!ExpectSameKind(x, y)) return;
  const auto a = x.flat<T>();
  const auto b = y.flat<T>();
  ASSERT_EQ(a.size(), x.NumElements()) << "the elements are of type " << DataTypeString(x.dtype());
  for (int64 i = 0; i < a.size(); ++i) {
    if (same(a(i), b(i))) continue;
    ADD_FAILURE() << "element " << i << " is " << ::testing::PrintToString(a(i)) << ", expected "
                  << ::testing::PrintToString(b(i)) << "\n"
                  << Both(x, y);
    return;
  }
}

}  // namespace internal

// Expects equal types, shapes and elements. Floating-point elements may differ by 4 units in the
// last place, as with GoogleTest's EXPECT_FLOAT_EQ, and NaN equals NaN.
template <typename T>
void ExpectTensorEqual(const Tensor& x, const Tensor& y) {
  internal::ExpectElements<T>(x, y, [](const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>) {
      return (a != a && b != b) || ::testing::internal::FloatingPoint<T>(a).AlmostEquals(
                                       ::testing::internal::FloatingPoint<T>(b));
    } else if constexpr (gradflow::kIsFloat16<T>) {
      return (a != a && b != b) || static_cast<float>(a) == static_cast<float>(b);
    } else {
      return a == b;
    }
  });
}

// Expects equal types and shapes, and is_equal(a, b) for each pair of elements.
template <typename T>
void ExpectTensorEqual(const Tensor& x, const Tensor& y,
                       std::function<bool(const T&, const T&)> is_equal) {
  internal::ExpectElements<T>(x, y, is_equal);
}

// Expects |x - y| <= abs_err for each pair of elements.
template <typename T>
void ExpectTensorNear(const Tensor& x, const Tensor& y, double abs_err) {
  internal::ExpectElements<T>(x, y, [abs_err](const T& a, const T& b) {
    if (a == b || (internal::IsNan(a) && internal::IsNan(b))) return true;
    if constexpr (gradflow::kIsComplex<T>) {
      return std::abs(a - b) <= abs_err;
    } else {
      return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= abs_err;
    }
  });
}

// Expects equal types, shapes and bits. Compares strings by their characters.
inline void ExpectEqual(const Tensor& x, const Tensor& y) {
  if (!internal::ExpectSameKind(x, y)) return;
  using Types = gradflow::TypeList<float, double, half, bfloat16, int8, int16, int32, int64, uint8,
                                   uint16, uint32, uint64, bool, complex64, complex128, tstring,
                                   qint8, quint8, qint16, quint16, qint32>;
  const bool known = gradflow::DispatchType(
      Types(), x.dtype(), [&](auto tag) { ExpectTensorEqual<typename decltype(tag)::type>(x, y); });
  EXPECT_TRUE(known) << "tensors of type " << DataTypeString(x.dtype()) << " cannot be compared";
}

namespace internal_test {

// Returns true if |x - y| <= atol + rtol * |x|. NaN is close to NaN. Negative tolerances mean a few
// units in the last place.
template <typename T>
bool IsClose(const T& x, const T& y, double atol = -1, double rtol = -1) {
  if (x == y || (internal::IsNan(x) && internal::IsNan(y))) return true;
  double size, difference, tolerance;
  if constexpr (gradflow::kIsComplex<T>) {
    size = static_cast<double>(std::abs(x));
    difference = static_cast<double>(std::abs(x - y));
    tolerance = 5 * std::numeric_limits<typename T::value_type>::epsilon();
  } else {
    size = std::abs(static_cast<double>(x));
    difference = std::abs(static_cast<double>(x) - static_cast<double>(y));
    tolerance = 5 * static_cast<double>(std::numeric_limits<T>::epsilon());
  }
  const double bound = (atol < 0 ? tolerance : atol) + (rtol < 0 ? tolerance : rtol) * size;
  // Infinity is only close to itself, although its bound is infinite.
  return std::isfinite(size) && difference <= bound;
}

}  // namespace internal_test

// Expects |x - y| <= atol + rtol * |x| for each pair of elements. Negative tolerances mean a few
// units in the last place. For floating-point and complex types.
inline void ExpectClose(const Tensor& x, const Tensor& y, double atol = -1, double rtol = -1) {
  using Types = gradflow::TypeList<float, double, half, bfloat16, complex64, complex128>;
  const bool known = gradflow::DispatchType(Types(), x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    internal::ExpectElements<T>(
        x, y, [=](const T& a, const T& b) { return internal_test::IsClose<T>(a, b, atol, rtol); });
  });
  EXPECT_TRUE(known) << "tensors of type " << DataTypeString(x.dtype())
                     << " have no tolerance; use ExpectEqual";
}

}  // namespace test
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TESTUTIL_H_
