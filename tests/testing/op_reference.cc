#include "tests/testing/op_reference.h"

#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/str_join.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/testing/tensor_diff.h"

namespace gradflow {
namespace testing {

Tensor FromDoubles(DataType dtype, const TensorShape& shape, const std::vector<double>& values) {
  Tensor tensor(dtype, shape);
  using Types = ConcatTypes<RealTypes, TypeList<bool>>::type;
  EXPECT_TRUE(DispatchType(Types(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto flat = tensor.flat<T>();
    for (size_t i = 0; i < values.size(); ++i) flat(i) = static_cast<T>(values[i]);
  }));
  return tensor;
}

Tensor UnaryReference(const Tensor& x, absl::FunctionRef<double(double)> f) {
  std::vector<double> values = AsDoubles(x);
  for (double& value : values) value = f(value);
  return FromDoubles(x.dtype(), x.shape(), values);
}

Tensor BinaryReference(const Tensor& x, const Tensor& y, DataType dtype,
                       absl::FunctionRef<double(double, double)> f) {
  const TensorShape shape = BroadcastShapes(x.shape(), y.shape()).value();
  const std::vector<double> xs = AsDoubles(x);
  const std::vector<double> ys = AsDoubles(y);
  const auto offset = [&](const TensorShape& of, int64_t index) {
    int64_t result = 0;
    int64_t stride = 1;
    for (int d = 1; d <= shape.dims(); ++d) {
      const int64_t size = shape.dim_size(shape.dims() - d);
      const int64_t i = index % size;
      index /= size;
      if (d > of.dims()) continue;
      const int64_t own = of.dim_size(of.dims() - d);
      result += (own == 1 ? 0 : i) * stride;
      stride *= own;
    }
    return result;
  };
  std::vector<double> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(f(xs[offset(x.shape(), i)], ys[offset(y.shape(), i)]));
  }
  return FromDoubles(dtype, shape, values);
}

Tensor Rearranged(const Tensor& source, const TensorShape& shape,
                  const std::function<int64_t(const std::vector<int64_t>& index)>& source_index) {
  Tensor result(source.dtype(), shape);
  std::vector<int64_t> index(shape.dims());
  const size_t size = DataTypeSize(source.dtype());
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    int64_t rest = i;
    for (int d = shape.dims() - 1; d >= 0; --d) {
      index[d] = rest % shape.dim_size(d);
      rest /= shape.dim_size(d);
    }
    const int64_t from = source_index(index);
    EXPECT_TRUE(from >= 0 && from < source.NumElements()) << from;
    if (source.dtype() == DT_STRING) {
      result.flat<tstring>()(i) = source.flat<tstring>()(from);
    } else {
      std::memcpy(static_cast<char*>(result.raw_data()) + i * size,
                  static_cast<const char*>(source.raw_data()) + from * size, size);
    }
  }
  return result;
}

Tensor ReductionReference(const Tensor& x, const std::vector<int32_t>& axes, bool keep_dims,
                          absl::FunctionRef<double(const std::vector<double>&)> f) {
  std::vector<bool> reduced(x.dims());
  for (const int32_t axis : axes) reduced[axis < 0 ? axis + x.dims() : axis] = true;
  DimVector dims;
  int64_t results = 1;
  for (int d = 0; d < x.dims(); ++d) {
    if (!reduced[d]) results *= x.dim_size(d);
    if (!reduced[d]) dims.push_back(x.dim_size(d));
    if (reduced[d] && keep_dims) dims.push_back(1);
  }
  std::vector<std::vector<double>> groups(results);
  const std::vector<double> values = AsDoubles(x);
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    int64_t result = 0;
    int64_t stride = 1;
    for (int d = x.dims(); d-- > 0;) {
      const int64_t index = rest % x.dim_size(d);
      rest /= x.dim_size(d);
      if (reduced[d]) continue;
      result += index * stride;
      stride *= x.dim_size(d);
    }
    groups[result].push_back(values[i]);
  }
  std::vector<double> reduced_values;
  reduced_values.reserve(groups.size());
  for (const std::vector<double>& group : groups) reduced_values.push_back(f(group));
  return FromDoubles(x.dtype(), TensorShape(dims), reduced_values);
}

std::string ReductionCase::DebugString() const {
  return shape.DebugString() + " over {" + absl::StrJoin(axes, ",") + "}";
}

std::vector<ReductionCase> ReductionLayouts() {
  return {
      // Reduces all dimensions, in one block and in several.
      {{1}, {0}},
      {{63}, {0}},
      {{64}, {0}},
      {{65}, {0}},
      {{1000}, {0}},
      {{32768}, {0}},
      {{32769}, {0}},
      {{131072}, {0}},
      {{131073}, {0}},
      {{300007}, {0}},
      // Rows.
      {{5, 7}, {1}},
      {{70, 129}, {1}},
      {{3, 100003}, {1}},
      {{20000, 3}, {1}},
      {{700, 32}, {1}},
      {{700, 33}, {1}},
      {{3, 600, 5}, {0, 2}},
      // Reduces columns: narrow, wide, and wider than a tile; with few rows and with many.
      {{7, 5}, {0}},
      {{100003, 2}, {0}},
      {{50001, 3}, {0}},
      {{2001, 63}, {0}},
      {{2001, 64}, {0}},
      {{2001, 65}, {0}},
      {{40, 1023}, {0}},
      {{40, 1025}, {0}},
      {{300, 511}, {0}},
      {{300, 513}, {0}},
      {{3, 60001}, {0}},
      // Reduces both, like batch normalization, and in other patterns.
      {{8, 7, 6, 5}, {0, 1, 2}},
      {{16, 3, 51, 49}, {0, 2, 3}},
      {{300, 5, 2}, {0, 2}},
      {{3, 40, 5, 60}, {0, 2}},
      {{3, 40, 5, 60}, {1, 3}},
      {{2, 3, 2, 3, 2, 3}, {0, 2, 4}},
      {{2, 3, 2, 3, 2, 3}, {1, 3, 5}},
      {{40, 11, 40, 11}, {0, 2}},
  };
}

ReductionCase RandomReduction(std::mt19937* random) {
  ReductionCase c;
  const int rank = (*random)() % 6;
  for (int d = 0; d < rank; ++d) {
    c.shape.AddDim((*random)() % 7 + 1);
    if ((*random)() % 2 == 0) c.axes.push_back(d);
  }
  return c;
}

}  // namespace testing
}  // namespace gradflow
