// Tensors for tests: by literal, counted, and random but always the same.
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

// What a literal element of type T is written as: half and bfloat16 as float, qint8 as int8_t.
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

// The values in row-major order: AsTensor<half>({1, 2.5, 3, 4}, {2, 2}). `values` is any container.
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
// A vector: AsTensor<int32_t>({1, 2}).
template <typename T, typename Container = std::initializer_list<typename Literal<T>::type>>
Tensor AsTensor(const Container& values) {
  return AsTensor<T, Container>(values, TensorShape({static_cast<int64_t>(values.size())}));
}
template <typename T>
Tensor AsScalar(typename Literal<T>::type value) {
  return AsTensor<T>({value}, TensorShape());
}
// start, start + 1, ...
template <typename T>
Tensor Iota(const TensorShape& shape, int64_t start = 0) {
  std::vector<typename Literal<T>::type> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(static_cast<typename Literal<T>::type>(start + i));
  }
  return AsTensor<T>(values, shape);
}

// How random elements are distributed. Integers are the nearest to what is drawn that their type
// has.
struct Distribution {
  // Which distribution it is. The default one is uniform in [-1, 1), of integers from -10 to 10, of
  // unsigned ones from 0 to 10.
  enum class Kind { kDefault, kUniform, kNormal };
  Kind kind = Kind::kDefault;
  // Of a uniform one the bounds, of a normal one the mean and the standard deviation.
  double a = -1;
  double b = 1;
};
// Uniform in [low, high).
inline Distribution Uniform(double low, double high) {
  return {Distribution::Kind::kUniform, low, high};
}
inline Distribution Normal(double mean, double stddev) {
  return {Distribution::Kind::kNormal, mean, stddev};
}

// Random elements, the same for the same arguments everywhere. For numeric types and bool.
Tensor RandomTensor(DataType dtype, const TensorShape& shape,
                    const Distribution& distribution = Distribution(), uint32_t seed = 1);
// Uniform in [low, high).
inline Tensor RandomTensor(DataType dtype, const TensorShape& shape, double low, double high = 1,
                           uint32_t seed = 1) {
  return RandomTensor(dtype, shape, Uniform(low, high), seed);
}

// A tensor of any type with elements that differ from each other, as far as the type goes.
Tensor DistinctTensor(DataType dtype, const TensorShape& shape);
// Every type that tensors have.
const DataTypeVector& TensorTypes();

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_TENSORS_H_
