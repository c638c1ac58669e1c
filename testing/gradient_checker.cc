#include "gradflow/testing/gradient_checker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/gradient_defaults.h"
#include "gradflow/testing/tensor_diff.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace testing {
namespace {

bool IsSingle(DataType dtype) { return dtype == DT_FLOAT || dtype == DT_COMPLEX64; }

bool IsDifferentiable(DataType dtype) {
  return IsSingle(dtype) || dtype == DT_DOUBLE || dtype == DT_COMPLEX128;
}

// The components of a tensor are its elements, or their real and imaginary parts. Jacobians contain
// derivatives between components.
int64_t NumComponents(const Tensor& tensor) {
  return tensor.NumElements() * (DataTypeIsComplex(tensor.dtype()) ? 2 : 1);
}

double Element(const Tensor& tensor, int64_t i) {
  return IsSingle(tensor.dtype()) ? static_cast<const float*>(tensor.raw_data())[i]
                                  : static_cast<const double*>(tensor.raw_data())[i];
}

// Sets component i, and returns its value after rounding to the tensor's type.
double SetElement(int64_t i, double value, Tensor* tensor) {
  if (IsSingle(tensor->dtype())) {
    static_cast<float*>(tensor->raw_data())[i] = static_cast<float>(value);
  } else {
    static_cast<double*>(tensor->raw_data())[i] = value;
  }
  return Element(*tensor, i);
}

Tensor Zeros(DataType dtype, const TensorShape& shape) {
  Tensor zeros(dtype, shape);
  for (int64_t i = 0; i < NumComponents(zeros); ++i) SetElement(i, 0, &zeros);
  return zeros;
}

// Element (i * components of x + j) of jacobian[y][x] is d y_i / d x_j.
using Jacobian = std::vector<std::vector<std::vector<double>>>;

class Checker {
 public:
  Checker(const Scope& scope, const OutputList& xs, const std::vector<Tensor>& x_values,
          const OutputList& ys)
      : scope_(scope), session_(scope), xs_(xs), x_values_(x_values), ys_(ys) {}

  absl::Status Init(const GradientFn& gradient) {
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    if (xs_.size() != x_values_.size()) {
      return errors::InvalidArgument("there are ", xs_.size(), " xs, but ", x_values_.size(),
                                     " values of them");
    }
    for (size_t i = 0; i < xs_.size(); ++i) {
      if (!IsDifferentiable(xs_[i].type()) || x_values_[i].dtype() != xs_[i].type()) {
        return errors::InvalidArgument("x", i, " has type ", DataTypeString(xs_[i].type()),
                                       ", and its value ", DataTypeString(x_values_[i].dtype()),
                                       ": both must be float, double or complex");
      }
    }
    for (size_t i = 0; i < ys_.size(); ++i) {
      if (IsDifferentiable(ys_[i].type())) continue;
      return errors::InvalidArgument("y", i, " has type ", DataTypeString(ys_[i].type()),
                                     ", must be float, double or complex");
    }
    GRADFLOW_RETURN_IF_ERROR(session_.Run(Feeds(), ys_, &y_values_));
    for (size_t i = 0; i < ys_.size(); ++i) {
      dys_.push_back(ops::Placeholder(scope_.WithOpName("dy", i), ys_[i].type(),
                                      ops::Placeholder::Shape(y_values_[i].shape())));
    }
    dxs_ = gradient(scope_, dys_);
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    if (dxs_.size() != xs_.size()) {
      return errors::InvalidArgument("the gradient graph returns ", dxs_.size(), " gradients for ",
                                     xs_.size(), " xs");
    }
    return absl::OkStatus();
  }

  const std::vector<Tensor>& y_values() const { return y_values_; }

  // Computes one row for each component of each y.
  absl::StatusOr<Jacobian> Analytic() const {
    Jacobian jacobian = MakeJacobian();
    ClientSession::FeedType feeds = Feeds();
    for (size_t y = 0; y < ys_.size(); ++y) Feed(dys_[y], ZerosLike(y), &feeds);
    for (size_t y = 0; y < ys_.size(); ++y) {
      for (int64_t i = 0; i < NumComponents(y_values_[y]); ++i) {
        Tensor unit = ZerosLike(y);
        SetElement(i, 1, &unit);
        Feed(dys_[y], unit, &feeds);
        std::vector<Tensor> dxs;
        GRADFLOW_RETURN_IF_ERROR(session_.Run(feeds, dxs_, &dxs));
        GRADFLOW_RETURN_IF_ERROR(CheckGradients(dxs));
        for (size_t x = 0; x < xs_.size(); ++x) {
          const int64_t columns = NumComponents(x_values_[x]);
          for (int64_t j = 0; j < columns; ++j) {
            jacobian[y][x][i * columns + j] = Element(dxs[x], j);
          }
        }
      }
      Feed(dys_[y], ZerosLike(y), &feeds);
    }
    return jacobian;
  }

  // Computes one column for each component of each x.
  absl::StatusOr<Jacobian> Numeric(double asked_delta) const {
    Jacobian jacobian = MakeJacobian();
    ClientSession::FeedType feeds = Feeds();
    for (size_t x = 0; x < xs_.size(); ++x) {
      const double delta = asked_delta > 0 ? asked_delta : DefaultDelta(IsSingle(xs_[x].type()));
      const int64_t columns = NumComponents(x_values_[x]);
      for (int64_t j = 0; j < columns; ++j) {
        const double middle = Element(x_values_[x], j);
        std::vector<Tensor> high;
        std::vector<Tensor> low;
        double above = 0;
        double below = 0;
        GRADFLOW_RETURN_IF_ERROR(RunAt(x, j, middle + delta, &feeds, &above, &high));
        GRADFLOW_RETURN_IF_ERROR(RunAt(x, j, middle - delta, &feeds, &below, &low));
        for (size_t y = 0; y < ys_.size(); ++y) {
          if (high[y].shape() != y_values_[y].shape() || low[y].shape() != high[y].shape()) {
            return errors::InvalidArgument("the shape of y", y, " depends on the value of x", x);
          }
          for (int64_t i = 0; i < NumComponents(y_values_[y]); ++i) {
            // Divides by the actual step, after rounding to the type.
            jacobian[y][x][i * columns + j] =
                (Element(high[y], i) - Element(low[y], i)) / (above - below);
          }
        }
      }
      Feed(xs_[x], x_values_[x], &feeds);
    }
    return jacobian;
  }

 private:
  static void Feed(const Output& output, const Tensor& value, ClientSession::FeedType* feeds) {
    feeds->insert_or_assign(output, Input::Initializer(value));
  }

  ClientSession::FeedType Feeds() const {
    ClientSession::FeedType feeds;
    for (size_t x = 0; x < xs_.size(); ++x) Feed(xs_[x], x_values_[x], &feeds);
    return feeds;
  }

  Tensor ZerosLike(size_t y) const { return Zeros(y_values_[y].dtype(), y_values_[y].shape()); }

  Jacobian MakeJacobian() const {
    Jacobian jacobian(ys_.size());
    for (size_t y = 0; y < ys_.size(); ++y) {
      for (const Tensor& x : x_values_) {
        jacobian[y].emplace_back(NumComponents(y_values_[y]) * NumComponents(x));
      }
    }
    return jacobian;
  }

  absl::Status CheckGradients(const std::vector<Tensor>& dxs) const {
    for (size_t x = 0; x < dxs.size(); ++x) {
      if (dxs[x].dtype() == x_values_[x].dtype() && dxs[x].shape() == x_values_[x].shape()) {
        continue;
      }
      return errors::InvalidArgument(
          "the gradient of x", x, " must be ", DataTypeString(x_values_[x].dtype()), " of shape ",
          x_values_[x].shape().DebugString(), ", but is ", DataTypeString(dxs[x].dtype()),
          " of shape ", dxs[x].shape().DebugString());
    }
    return absl::OkStatus();
  }

  // Runs with component j of xs[x] set to `at`. Stores its rounded value in *set.
  absl::Status RunAt(size_t x, int64_t j, double at, ClientSession::FeedType* feeds, double* set,
                     std::vector<Tensor>* ys) const {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor moved, x_values_[x].DeepCopy());
    *set = SetElement(j, at, &moved);
    Feed(xs_[x], moved, feeds);
    return session_.Run(*feeds, ys_, ys);
  }

  const Scope& scope_;
  ClientSession session_;
  const OutputList& xs_;
  const std::vector<Tensor>& x_values_;
  const OutputList& ys_;
  std::vector<Tensor> y_values_;
  OutputList dys_;
  OutputList dxs_;
};

}  // namespace

std::string GradientError::DebugString() const {
  return absl::StrCat("d y", y, "[", y_element, "] / d x", x, "[", x_element, "] is ", analytic,
                      " by the gradient, ", numeric, " by differences (error ", max_error, ")");
}

absl::StatusOr<GradientError> FindGradientError(const Scope& scope, const OutputList& xs,
                                                const std::vector<Tensor>& x_values,
                                                const OutputList& ys, const GradientFn& gradient,
                                                const GradientOptions& options) {
  Checker checker(scope, xs, x_values, ys);
  GRADFLOW_RETURN_IF_ERROR(checker.Init(gradient));
  GRADFLOW_ASSIGN_OR_RETURN(const Jacobian analytic, checker.Analytic());
  GRADFLOW_ASSIGN_OR_RETURN(const Jacobian numeric, checker.Numeric(options.delta));
  GradientError worst;
  for (size_t y = 0; y < ys.size(); ++y) {
    for (size_t x = 0; x < xs.size(); ++x) {
      for (size_t k = 0; k < analytic[y][x].size(); ++k) {
        const double a = analytic[y][x][k];
        const double n = numeric[y][x][k];
        const double error = std::abs(a - n);
        for (const double element : {a, n}) {
          if (std::isfinite(element)) worst.largest = std::max(worst.largest, std::abs(element));
        }
        // Keeps the first NaN.
        if (std::isnan(worst.max_error) || error <= worst.max_error) continue;
        const int64_t columns = NumComponents(x_values[x]);
        worst.max_error = error;
        worst.y = static_cast<int>(y);
        worst.y_element = static_cast<int64_t>(k) / columns;
        worst.x = static_cast<int>(x);
        worst.x_element = static_cast<int64_t>(k) % columns;
        worst.analytic = a;
        worst.numeric = n;
      }
    }
  }
  return worst;
}

namespace {

absl::Status CheckYShapes(const OutputList& ys, const std::vector<TensorShape>& y_shapes) {
  if (ys.size() != y_shapes.size()) {
    return errors::InvalidArgument("there are ", ys.size(), " ys, but ", y_shapes.size(),
                                   " shapes of them");
  }
  for (size_t y = 0; y < ys.size(); ++y) {
    if (ys[y].node() == nullptr) continue;
    const PartialTensorShape& inferred = ys[y].node()->output_shape(ys[y].index());
    if (inferred.IsCompatibleWith(y_shapes[y])) continue;
    return errors::InvalidArgument("y", y, " has shape ", inferred.DebugString(), ", not ",
                                   y_shapes[y].DebugString());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ComputeGradientError(const Scope& scope, const OutputList& xs,
                                  const std::vector<TensorShape>& x_shapes, const OutputList& ys,
                                  const std::vector<TensorShape>& y_shapes,
                                  const GradientFn& gradient, double* max_error,
                                  const GradientOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(max_error, "ComputeGradientError", "max_error"));
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  GRADFLOW_RETURN_IF_ERROR(CheckYShapes(ys, y_shapes));
  if (xs.size() != x_shapes.size()) {
    return errors::InvalidArgument("there are ", xs.size(), " xs, but ", x_shapes.size(),
                                   " shapes of them");
  }
  std::vector<Tensor> x_values;
  for (size_t x = 0; x < xs.size(); ++x) {
    if (!IsDifferentiable(xs[x].type())) {
      return errors::InvalidArgument("x", x, " has type ", DataTypeString(xs[x].type()),
                                     ", must be float, double or complex");
    }
    x_values.push_back(
        RandomTensor(xs[x].type(), x_shapes[x], Uniform(-1, 1), static_cast<uint32_t>(x) + 1));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const GradientError error,
                            FindGradientError(scope, xs, x_values, ys, gradient, options));
  *max_error = error.max_error;
  return absl::OkStatus();
}

absl::Status ComputeGradientError(const Scope& scope, const Output& x, const Tensor& x_init_value,
                                  const Output& y, const TensorShape& y_shape,
                                  const GradientFn& gradient, double* max_error,
                                  const GradientOptions& options) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(max_error, "ComputeGradientError", "max_error"));
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  GRADFLOW_RETURN_IF_ERROR(CheckYShapes({y}, {y_shape}));
  GRADFLOW_ASSIGN_OR_RETURN(const GradientError error,
                            FindGradientError(scope, {x}, {x_init_value}, {y}, gradient, options));
  *max_error = error.max_error;
  return absl::OkStatus();
}

}  // namespace testing
}  // namespace gradflow
