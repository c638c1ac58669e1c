// ComputeGradientError: compares the gradients of a graph with central differences, for tests.
// Programs that include this header must link gradflow::testing.
//
//   float max_error;
//   TF_ASSERT_OK((ComputeGradientError<float, float, float>(
//       scope, {x, scale, offset}, {x_shape, {4}, {4}}, {batch_norm.y}, {x_shape}, &max_error)));
//   EXPECT_LT(max_error, 1e-2);
#ifndef GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENT_CHECKER_H_
#define GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENT_CHECKER_H_

#include <type_traits>
#include <vector>

#include "gradflow/testing/gradient_checker.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace compat_internal {

// Returns an error unless the outputs have the C++ type T.
template <typename T>
absl::Status CheckDifferentiable(const char* what, const OutputList& outputs) {
  static_assert(std::is_floating_point_v<T> || gradflow::kIsComplex<T>);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].type() == DataTypeToEnum<T>::value) continue;
    return errors::InvalidArgument(what, i, " has type ", DataTypeString(outputs[i].type()),
                                   ", but the test is for ",
                                   DataTypeString(DataTypeToEnum<T>::value));
  }
  return OkStatus();
}

// Returns TensorFlow's step if x or y is single precision, and gradflow's finer step for double
// precision.
template <typename X_T, typename Y_T>
gradflow::testing::GradientOptions Step() {
  gradflow::testing::GradientOptions options;
  constexpr bool kSingle = std::is_same_v<X_T, float> || std::is_same_v<X_T, complex64> ||
                           std::is_same_v<Y_T, float> || std::is_same_v<Y_T, complex64>;
  if (kSingle) options.delta = 1e-3;
  return options;
}

// Returns the known shapes of the outputs if they have the stated numbers of elements, because
// TensorFlow only checks these numbers.
inline std::vector<TensorShape> YShapes(const OutputList& ys, std::vector<TensorShape> shapes) {
  for (size_t i = 0; i < ys.size() && i < shapes.size(); ++i) {
    if (ys[i].node() == nullptr) continue;
    TensorShape known;
    if (ys[i].node()->output_shape(ys[i].index()).AsTensorShape(&known) &&
        known.num_elements() == shapes[i].num_elements()) {
      shapes[i] = known;
    }
  }
  return shapes;
}

}  // namespace compat_internal

// Stores in *max_error the largest difference between two Jacobians of ys with respect to xs: from
// gradient ops and from central differences. Stores NaN if either has a NaN. The xs have random
// values in [-1, 1). Returns UNIMPLEMENTED and names the node if a node between xs and ys has no
// gradient op; see gradflow::testing::RegisterGradientOp. X_T and Y_T are float, double, complex64
// or complex128. Complex elements count as two elements.
template <typename X_T, typename Y_T, typename JAC_T>
Status ComputeGradientError(const Scope& scope, const OutputList& xs,
                            const std::vector<TensorShape>& x_shapes, const OutputList& ys,
                            const std::vector<TensorShape>& y_shapes, JAC_T* max_error) {
  TF_RETURN_IF_ERROR(scope.status());
  TF_RETURN_IF_ERROR(compat_internal::CheckDifferentiable<X_T>("x", xs));
  TF_RETURN_IF_ERROR(compat_internal::CheckDifferentiable<Y_T>("y", ys));
  double error = 0;
  TF_RETURN_IF_ERROR(gradflow::testing::ComputeGradientError(
      scope, xs, x_shapes, ys, compat_internal::YShapes(ys, y_shapes), &error,
      compat_internal::Step<X_T, Y_T>()));
  *max_error = static_cast<JAC_T>(error);
  return OkStatus();
}

// Overload that takes the value of x.
template <typename X_T, typename Y_T, typename JAC_T>
Status ComputeGradientError(const Scope& scope, const Output& x, const Tensor& x_init_value,
                            const Output& y, const TensorShape& y_shape, JAC_T* max_error) {
  TF_RETURN_IF_ERROR(scope.status());
  TF_RETURN_IF_ERROR(compat_internal::CheckDifferentiable<X_T>("x", {x}));
  TF_RETURN_IF_ERROR(compat_internal::CheckDifferentiable<Y_T>("y", {y}));
  double error = 0;
  TF_RETURN_IF_ERROR(gradflow::testing::ComputeGradientError(
      scope, x, x_init_value, y, compat_internal::YShapes({y}, {y_shape})[0], &error,
      compat_internal::Step<X_T, Y_T>()));
  *max_error = static_cast<JAC_T>(error);
  return OkStatus();
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_FRAMEWORK_GRADIENT_CHECKER_H_
