// Tensors for tests: tensors from literals, ascending tensors, and deterministic random tensors.
#ifndef GRADFLOW_TESTING_TENSORS_H_
#define GRADFLOW_TESTING_TENSORS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {
namespace testing {

// The type of literals for elements of type T: float for half and bfloat16, int8_t for qint8.
template <typename T>
struct Literal {
  // The type of the literals.
  using type = std::conditional_t<kIsFloat16<T>, float, T>;
};
template <typename Storage, DataType Id>
struct Literal<StorageType<Storage, Id>> {
  // The type of the literals.
  using type = Storage;
};

// Returns a tensor with the given values in row-major order: AsTensor<half>({1, 2.5, 3, 4}, {2,
// 2}). `values` is any container.
template <typename T, typename Container = std::initializer_list<typename Literal<T>::type>>
Tensor AsTensor(const Container& values, const TensorShape& shape) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  EXPECT_EQ(tensor.NumElements(), static_cast<int64_t>(values.size()))
      << "values for a tensor of shape " << shape.DebugString();
  if (tensor.NumElements() != static_cast<int64_t>(values.size())) return tensor;
  const auto flat = tensor.flat<T>();
  int64_t i = 0;
  for (const auto& value : values) flat(i++) = T{static_cast<typename Literal<T>::type>(value)};
  return tensor;
}
// Returns a vector: AsTensor<int32_t>({1, 2}).
template <typename T, typename Container = std::initializer_list<typename Literal<T>::type>>
Tensor AsTensor(const Container& values) {
  return AsTensor<T, Container>(values, TensorShape({static_cast<int64_t>(values.size())}));
}
template <typename T>
Tensor AsScalar(typename Literal<T>::type value) {
  return AsTensor<T>({value}, TensorShape());
}
// Returns a tensor with elements start, start + 1, ...
template <typename T>
Tensor Iota(const TensorShape& shape, int64_t start = 0) {
  std::vector<typename Literal<T>::type> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(static_cast<typename Literal<T>::type>(start + i));
  }
  return AsTensor<T>(values, shape);
}

// A distribution of random elements. Integers are rounded to nearest and clamped to their type.
struct Distribution {
  // The default is uniform in [-1, 1). For integers, it is from -10 to 10 (signed) or from 0 to 10
  // (unsigned).
  enum class Kind { kDefault, kUniform, kNormal };
  Kind kind = Kind::kDefault;
  // The bounds of a uniform distribution; the mean and stddev of a normal distribution.
  double a = -1;
  double b = 1;
};
// Returns the uniform distribution on [low, high).
inline Distribution Uniform(double low, double high) {
  return {Distribution::Kind::kUniform, low, high};
}
inline Distribution Normal(double mean, double stddev) {
  return {Distribution::Kind::kNormal, mean, stddev};
}

// Returns a random tensor that depends only on the arguments, on every platform.
// REQUIRES: `dtype` is numeric or bool
Tensor RandomTensor(DataType dtype, const TensorShape& shape,
                    const Distribution& distribution = Distribution(), uint32_t seed = 1);
// Returns a random tensor with elements uniform in [low, high).
inline Tensor RandomTensor(DataType dtype, const TensorShape& shape, double low, double high = 1,
                           uint32_t seed = 1) {
  return RandomTensor(dtype, shape, Uniform(low, high), seed);
}

// Returns a tensor of any type. Its elements are distinct if the type has enough values.
Tensor DistinctTensor(DataType dtype, const TensorShape& shape);
// Returns all types that tensors can have.
const DataTypeVector& TensorTypes();

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_TENSORS_H_
