// Compares optimizers with float64 references over 100 steps.
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gradflow/core/registry.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double Shrunk(double v, double by) { return Sign(v) * std::max(std::abs(v) - by, 0.0); }

using Values = std::vector<double>;

struct Case {
  std::string name;
  // The number of variables.
  int variables;
  // The scalars, in the order of the inputs.
  Values scalars;
  // The attribute that does not have its default, or "".
  std::string attr;
  bool attr_value = false;
  // Updates the variables v by the gradient g, in step number `step` (from 1).
  std::function<void(Values& v, double g, int step)> step;
  bool has_references = true;
  bool has_dense = true;
  bool has_sparse = true;
};

Values AdamScalars(int step) {
  return {std::pow(0.9, step), std::pow(0.99, step), 0.05, 0.9, 0.99, 1e-3};
}

// The update of FTRL, with the scalars lr, l1, l2, l2_shrinkage and lr_power.
void FtrlStep(Values& v, double g, double lr, double l1, double l2, double shrinkage, double power,
              bool multiplies) {
  const double shrunk = g + 2 * shrinkage * v[0];
  const double accum = v[1] + g * g;
  const double sigma = std::pow(accum, -power) - std::pow(v[1], -power);
  if (multiplies) {
    v[2] += shrunk * lr - sigma * v[0];
    v[0] = std::abs(v[2]) > l1 * lr
               ? (Sign(v[2]) * l1 * lr - v[2]) / (std::pow(accum, -power) + 2 * l2 * lr)
               : 0;
  } else {
    v[2] += shrunk - sigma / lr * v[0];
    v[0] = std::abs(v[2]) > l1 ? (Sign(v[2]) * l1 - v[2]) / (std::pow(accum, -power) / lr + 2 * l2)
                               : 0;
  }
  v[1] = accum;
}

// The ops of this file: "ApplyGradientDescent" "ResourceApplyGradientDescent"
// "ApplyProximalGradientDescent" "SparseApplyProximalGradientDescent"
// "ResourceApplyProximalGradientDescent" "ResourceSparseApplyProximalGradientDescent"
// "ApplyAdadelta" "SparseApplyAdadelta" "ResourceApplyAdadelta" "ResourceSparseApplyAdadelta"
// "ApplyAdagrad" "ResourceApplyAdagrad" "SparseApplyAdagrad" "ResourceSparseApplyAdagrad"
// "ApplyAdagradV2" "ResourceApplyAdagradV2" "SparseApplyAdagradV2" "ResourceSparseApplyAdagradV2"
// "ApplyProximalAdagrad" "ResourceApplyProximalAdagrad" "SparseApplyProximalAdagrad"
// "ResourceSparseApplyProximalAdagrad" "ApplyAdagradDA" "SparseApplyAdagradDA"
// "ResourceApplyAdagradDA" "ResourceSparseApplyAdagradDA" "ApplyFtrl" "SparseApplyFtrl"
// "ResourceApplyFtrl" "ResourceSparseApplyFtrl" "ApplyFtrlV2" "SparseApplyFtrlV2"
// "ResourceApplyFtrlV2" "ResourceSparseApplyFtrlV2" "ApplyMomentum" "SparseApplyMomentum"
// "ResourceApplyMomentum" "ResourceSparseApplyMomentum" "ResourceApplyKerasMomentum"
// "ResourceSparseApplyKerasMomentum" "ApplyAdam" "ResourceApplyAdam"
// "ResourceApplyAdamWithAmsgrad" "ApplyAdaMax" "ResourceApplyAdaMax" "ApplyRMSProp"
// "SparseApplyRMSProp" "ResourceApplyRMSProp" "ResourceSparseApplyRMSProp" "ApplyCenteredRMSProp"
// "SparseApplyCenteredRMSProp" "ResourceApplyCenteredRMSProp" "ResourceSparseApplyCenteredRMSProp"
// "ApplyAddSign" "ResourceApplyAddSign" "ApplyPowerSign" "ResourceApplyPowerSign"
std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&](Case c) -> Case& { return cases.emplace_back(std::move(c)); };
  add({"GradientDescent", 1, {0.1}, "", false, [](Values& v, double g, int) { v[0] -= 0.1 * g; }})
      .has_sparse = false;
  for (const double l1 : {0.0, 0.3}) {
    add({"ProximalGradientDescent", 1, {0.1, l1, 0.2}, "", false, [l1](Values& v, double g, int) {
           v[0] = Shrunk(v[0] - 0.1 * g, 0.1 * l1) / (1 + 0.2 * 0.1);
         }});
    add({"ProximalAdagrad", 2, {0.1, l1, 0.2}, "", false, [l1](Values& v, double g, int) {
           v[1] += g * g;
           const double rate = 0.1 / std::sqrt(v[1]);
           v[0] = Shrunk(v[0] - rate * g, rate * l1) / (1 + 0.2 * rate);
         }});
    add({"AdagradDA", 3, {0.1, l1, 0.2}, "", false, [l1](Values& v, double g, int step) {
           v[1] += g;
           v[2] += g * g;
           v[0] = -0.1 * Shrunk(v[1], l1 * step) / (0.2 * step * 0.1 + std::sqrt(v[2]));
         }});
  }
  add({"Adadelta", 3, {0.5, 0.9, 1e-2}, "", false, [](Values& v, double g, int) {
         v[1] = 0.9 * v[1] + 0.1 * g * g;
         const double update = std::sqrt(v[2] + 1e-2) / std::sqrt(v[1] + 1e-2) * g;
         v[2] = 0.9 * v[2] + 0.1 * update * update;
         v[0] -= 0.5 * update;
       }});
  for (const bool updates : {true, false}) {
    add({"Adagrad",
         2,
         {0.1},
         updates ? "" : "update_slots",
         false,
         [updates](Values& v, double g, int) {
           if (updates) v[1] += g * g;
           v[0] -= 0.1 * g / std::sqrt(v[1]);
         }});
    add({"AdagradV2",
         2,
         {0.1, 0.5},
         updates ? "" : "update_slots",
         false,
         [updates](Values& v, double g, int) {
           if (updates) v[1] += g * g;
           v[0] -= 0.1 * g / (std::sqrt(v[1]) + 0.5);
         }});
  }
  for (const bool multiplies : {false, true}) {
    const char* attr = multiplies ? "multiply_linear_by_lr" : "";
    for (const double power : {-0.5, -0.7}) {
      add({"Ftrl", 3, {0.1, 0.3, 0.2, power}, attr, true, [=](Values& v, double g, int) {
             FtrlStep(v, g, 0.1, 0.3, 0.2, 0, power, multiplies);
           }});
      add({"FtrlV2", 3, {0.1, 0.3, 0.2, 0.1, power}, attr, true, [=](Values& v, double g, int) {
             FtrlStep(v, g, 0.1, 0.3, 0.2, 0.1, power, multiplies);
           }});
    }
  }
  for (const bool nesterov : {false, true}) {
    const char* attr = nesterov ? "use_nesterov" : "";
    add({"Momentum", 2, {0.02, 0.9}, attr, true, [nesterov](Values& v, double g, int) {
           v[1] = 0.9 * v[1] + g;
           v[0] -= nesterov ? 0.02 * g + 0.02 * 0.9 * v[1] : 0.02 * v[1];
         }});
    add({"KerasMomentum",
         2,
         {0.02, 0.9},
         attr,
         true,
         [nesterov](Values& v, double g, int) {
           v[1] = 0.9 * v[1] - 0.02 * g;
           v[0] += nesterov ? 0.9 * v[1] - 0.02 * g : v[1];
         }})
        .has_references = false;
    add({"Adam",
         3,
         {},
         attr,
         true,
         [nesterov](Values& v, double g, int step) {
           const Values s = AdamScalars(step);
           const double alpha = s[2] * std::sqrt(1 - s[1]) / (1 - s[0]);
           v[1] += (g - v[1]) * 0.1;
           v[2] += (g * g - v[2]) * 0.01;
           v[0] -= alpha * (nesterov ? 0.1 * g + 0.9 * v[1] : v[1]) / (std::sqrt(v[2]) + 1e-3);
         }})
        .has_sparse = false;
  }
  Case& amsgrad = add({"AdamWithAmsgrad", 4, {}, "", true, [](Values& v, double g, int step) {
                         const Values s = AdamScalars(step);
                         const double alpha = s[2] * std::sqrt(1 - s[1]) / (1 - s[0]);
                         v[1] += (g - v[1]) * 0.1;
                         v[2] += (g * g - v[2]) * 0.01;
                         v[3] = std::max(v[3], v[2]);
                         v[0] -= alpha * v[1] / (std::sqrt(v[3]) + 1e-3);
                       }});
  amsgrad.has_references = false;
  amsgrad.has_sparse = false;
  add({"AdaMax",
       3,
       {},
       "",
       true,
       [](Values& v, double g, int step) {
         v[1] += (g - v[1]) * 0.1;
         v[2] = std::max(0.99 * v[2], std::abs(g));
         v[0] -= 0.05 / (1 - std::pow(0.9, step)) * v[1] / (v[2] + 1e-3);
       }})
      .has_sparse = false;
  add({"RMSProp", 3, {0.02, 0.9, 0.5, 1e-2}, "", true, [](Values& v, double g, int) {
         v[1] += (g * g - v[1]) * 0.1;
         v[2] = 0.5 * v[2] + 0.02 * g / std::sqrt(v[1] + 1e-2);
         v[0] -= v[2];
       }});
  add({"CenteredRMSProp", 4, {0.02, 0.9, 0.5, 0.5}, "", true, [](Values& v, double g, int) {
         v[2] += (g * g - v[2]) * 0.1;
         v[1] += (g - v[1]) * 0.1;
         v[3] = 0.5 * v[3] + 0.02 * g / std::sqrt(v[2] - v[1] * v[1] + 0.5);
         v[0] -= v[3];
       }});
  add({"AddSign",
       2,
       {0.02, 1.5, 0.7, 0.9},
       "",
       true,
       [](Values& v, double g, int) {
         v[1] = 0.9 * v[1] + 0.1 * g;
         v[0] -= 0.02 * (1.5 + 0.7 * Sign(g) * Sign(v[1])) * g;
       }})
      .has_sparse = false;
  add({"PowerSign",
       2,
       {0.02, 1.1, 0.7, 0.9},
       "",
       true,
       [](Values& v, double g, int) {
         v[1] = 0.9 * v[1] + 0.1 * g;
         v[0] -= 0.02 * std::exp(1.1 * 0.7 * Sign(g) * Sign(v[1])) * g;
       }})
      .has_sparse = false;
  return cases;
}

Tensor AsType(DataType dtype, const Values& values, const TensorShape& shape) {
  Tensor tensor(dtype, shape);
  DispatchType(FloatingTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) tensor.flat<T>()(i) = static_cast<T>(values[i]);
  });
  return tensor;
}

double ElementOf(const Tensor& tensor, int64_t i) {
  double value = 0;
  DispatchType(FloatingTypes(), tensor.dtype(), [&](auto tag) {
    value = static_cast<double>(tensor.flat<typename decltype(tag)::type>()(i));
  });
  return value;
}

// Returns the scalars of a step, in the order of the inputs.
Values ScalarsOf(const Case& c, int step) {
  if (c.name == "Adam" || c.name == "AdamWithAmsgrad") return AdamScalars(step);
  if (c.name == "AdaMax") return {std::pow(0.9, step), 0.05, 0.9, 0.99, 1e-3};
  return c.scalars;
}

// Returns a tester with the inputs of a step, in the order of the op's definition. Scalars are
// rounded to `precision`.
OpTester MakeTester(const std::string& op, const Case& c, int step,
                    const std::vector<Tensor>& variables, const Tensor& grad, const Tensor* indices,
                    DataType precision = DT_DOUBLE) {
  OpTester tester(op);
  if (!c.attr.empty()) tester.Attr(c.attr, c.attr_value);
  for (const Tensor& variable : variables) tester.Input(variable);
  const Values scalars = ScalarsOf(c, step);
  size_t next = 0;
  const OpDef& def = GlobalRegistry().FindOp(op)->def();
  for (int i = static_cast<int>(variables.size()); i < def.input_arg_size(); ++i) {
    const std::string& name = def.input_arg(i).name();
    if (name == "grad" || name == "delta") {
      tester.Input(grad);
    } else if (name == "indices") {
      tester.Input(*indices);
    } else if (name == "global_step") {
      tester.Input(AsScalar<int64_t>(step));
    } else {
      const double rounded = ElementOf(AsType(precision, {scalars.at(next++)}, {}), 0);
      tester.Input(AsType(grad.dtype(), {rounded}, {}));
    }
  }
  return tester;
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class OptimizerTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, OptimizerTest, ::testing::ValuesIn(Cases()), [](const auto& info) {
  return info.param.name + std::to_string(info.index);
});

// Returns the initial values of the variables. Slots are positive.
std::vector<Values> Start(const Case& c, int64_t size) {
  std::vector<Values> start(c.variables, Values(size));
  for (int k = 0; k < c.variables; ++k) {
    for (int64_t i = 0; i < size; ++i) {
      start[k][i] = k == 0 ? 0.37 * static_cast<double>(i % 7) - 1 : 0.1 + 0.01 * (i % 5);
    }
  }
  return start;
}
double Gradient(int step, int64_t i) { return std::sin(1.3 * step + 0.7 * static_cast<double>(i)); }

TEST_P(OptimizerTest, DenseUpdatesAgreeOver100Steps) {
  const Case& c = GetParam();
  constexpr int64_t kSize = 37;
  for (const bool resource : {false, true}) {
    if (!resource && !c.has_references) continue;
    const std::string op = (resource ? "ResourceApply" : "Apply") + c.name;
    for (const DataType dtype : {DT_DOUBLE, DT_FLOAT}) {
      SCOPED_TRACE(op + " " + DataTypeString(dtype));
      std::vector<Values> expected = Start(c, kSize);
      std::vector<Tensor> variables;
      for (const Values& v : expected) variables.push_back(AsType(dtype, v, {kSize}));
      for (int step = 1; step <= 100; ++step) {
        Values gradients(kSize);
        for (int64_t i = 0; i < kSize; ++i) {
          gradients[i] = Gradient(step, i);
          Values element;
          for (const Values& v : expected) element.push_back(v[i]);
          c.step(element, gradients[i], step);
          for (int k = 0; k < c.variables; ++k) expected[k][i] = element[k];
        }
        OpTester tester =
            MakeTester(op, c, step, variables, AsType(dtype, gradients, {kSize}), nullptr);
        // Makes all checks in the first step.
        const auto outputs = step == 1 ? tester.Run() : tester.RunOnThreads(1);
        GRADFLOW_ASSERT_OK(outputs);
        variables = *outputs;
        ASSERT_EQ(static_cast<int>(variables.size()), c.variables);
      }
      const double tolerance = dtype == DT_FLOAT ? 2e-4 : 1e-10;
      for (int k = 0; k < c.variables; ++k) {
        for (int64_t i = 0; i < kSize; ++i) {
          ASSERT_NEAR(ElementOf(variables[k], i), expected[k][i],
                      tolerance * (1 + std::abs(expected[k][i])))
              << "variable " << k << ", element " << i;
        }
      }
    }
  }
}

TEST_P(OptimizerTest, SparseUpdatesAgreeOver100Steps) {
  const Case& c = GetParam();
  if (!c.has_sparse) return;
  constexpr int64_t kRows = 5;
  for (const int64_t columns : {int64_t{1}, int64_t{6}}) {
    for (const bool resource : {false, true}) {
      if (!resource && !c.has_references) continue;
      const std::string op = (resource ? "ResourceSparseApply" : "SparseApply") + c.name;
      SCOPED_TRACE(op);
      const int64_t size = kRows * columns;
      std::vector<Values> expected = Start(c, size);
      std::vector<Tensor> variables;
      for (const Values& v : expected) variables.push_back(AsType(DT_DOUBLE, v, {kRows, columns}));
      for (int step = 1; step <= 100; ++step) {
        // Row 3 is updated twice.
        const std::vector<int64_t> rows = {3, step % kRows, 3};
        Values gradients(3 * columns);
        for (size_t r = 0; r < rows.size(); ++r) {
          for (int64_t column = 0; column < columns; ++column) {
            const double g = Gradient(step, static_cast<int64_t>(r) * columns + column);
            gradients[r * columns + column] = g;
            const int64_t i = rows[r] * columns + column;
            Values element;
            for (const Values& v : expected) element.push_back(v[i]);
            c.step(element, g, step);
            for (int k = 0; k < c.variables; ++k) expected[k][i] = element[k];
          }
        }
        const Tensor indices = step % 2 == 0
                                   ? AsTensor<int64_t>({rows[0], rows[1], rows[2]})
                                   : AsTensor<int32_t>({3, static_cast<int32_t>(rows[1]), 3});
        OpTester tester = MakeTester(op, c, step, variables,
                                     AsType(DT_DOUBLE, gradients, {3, columns}), &indices);
        const auto outputs = step == 1 ? tester.Run() : tester.RunOnThreads(1);
        GRADFLOW_ASSERT_OK(outputs);
        variables = *outputs;
      }
      for (int k = 0; k < c.variables; ++k) {
        for (int64_t i = 0; i < size; ++i) {
          ASSERT_NEAR(ElementOf(variables[k], i), expected[k][i],
                      1e-9 * (1 + std::abs(expected[k][i])))
              << "variable " << k << ", element " << i;
        }
      }
    }
  }
}

TEST_P(OptimizerTest, Float16IsComputedInFloat) {
  const Case& c = GetParam();
  const int64_t size = 2500;
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16}) {
    std::vector<Tensor> variables;
    std::vector<Tensor> wide;
    const auto widen = [](const Tensor& t) {
      Values values;
      for (int64_t i = 0; i < t.NumElements(); ++i) values.push_back(ElementOf(t, i));
      return AsType(DT_FLOAT, values, t.shape());
    };
    for (const Values& v : Start(c, size)) variables.push_back(AsType(dtype, v, {size}));
    for (const Tensor& v : variables) wide.push_back(widen(v));
    Values gradients(size);
    for (int64_t i = 0; i < size; ++i) gradients[i] = Gradient(1, i);
    const Tensor grad = AsType(dtype, gradients, {size});
    const std::string op = "ResourceApply" + c.name;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto outputs,
                                  MakeTester(op, c, 2, variables, grad, nullptr).Run());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const auto expected,
        MakeTester(op, c, 2, wide, widen(grad), nullptr, dtype).RunOnThreads(1));
    for (size_t k = 0; k < outputs.size(); ++k) {
      EXPECT_EQ(outputs[k].dtype(), dtype);
      for (int64_t i = 0; i < size; ++i) {
        const double value = ElementOf(expected[k], i);
        ASSERT_EQ(ElementOf(outputs[k], i), ElementOf(AsType(dtype, {value}, {}), 0))
            << k << " " << i;
      }
    }
  }
}

TEST_P(OptimizerTest, HasTheSameBitsEverywhere) {
  const Case& c = GetParam();
  const int64_t size = 60000;
  std::vector<Tensor> variables;
  for (const Values& v : Start(c, size))
    variables.push_back(AsType(DT_FLOAT, v, {100, size / 100}));
  const Tensor grad = RandomTensor(DT_FLOAT, {100, size / 100});
  GRADFLOW_EXPECT_OK(
      MakeTester("ResourceApply" + c.name, c, 3, variables, grad, nullptr).RunEverywhere());
  if (!c.has_sparse) return;
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < 100; ++i) rows.push_back(i * i % 100);
  const Tensor indices = AsTensor<int32_t, std::vector<int32_t>>(rows);
  GRADFLOW_EXPECT_OK(
      MakeTester("ResourceSparseApply" + c.name, c, 3, variables, grad, &indices).RunEverywhere());
}

TEST_P(OptimizerTest, TakesEmptyTensorsAndScalars) {
  const Case& c = GetParam();
  const std::string op = "ResourceApply" + c.name;
  for (const TensorShape& shape : {TensorShape({0, 3}), TensorShape()}) {
    std::vector<Tensor> variables(c.variables, RandomTensor(DT_FLOAT, shape, 0.5, 1));
    GRADFLOW_EXPECT_OK(
        MakeTester(op, c, 1, variables, RandomTensor(DT_FLOAT, shape), nullptr).Run());
  }
}

TEST_P(OptimizerTest, ErrorsChangeNothing) {
  const Case& c = GetParam();
  const std::vector<Tensor> variables(c.variables, RandomTensor(DT_FLOAT, {3, 2}, 0.5, 1));
  const std::string op = "ResourceApply" + c.name;
  EXPECT_THAT(MakeTester(op, c, 1, variables, RandomTensor(DT_FLOAT, {2, 3}), nullptr).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Dimension 0 in both shapes must be equal, but are 3 and 2")));
  if (c.variables > 1) {
    std::vector<Tensor> uneven = variables;
    uneven.back() = RandomTensor(DT_FLOAT, {3, 3});
    EXPECT_THAT(MakeTester(op, c, 1, uneven, RandomTensor(DT_FLOAT, {3, 2}), nullptr).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("must have the same shape, but have [3,2] and [3,3]")));
  }
  if (!c.has_sparse) return;
  const std::string sparse = "ResourceSparseApply" + c.name;
  const auto expect = [&](const std::vector<Tensor>& vars, const Tensor& grad,
                          const Tensor& indices, const std::string& text) {
    EXPECT_THAT(MakeTester(sparse, c, 1, vars, grad, &indices).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  const Tensor rows = AsTensor<int32_t>({0, 2});
  const Tensor grad = RandomTensor(DT_FLOAT, {2, 2});
  expect(variables, grad, AsTensor<int32_t>({0, 3}), "indices[1] = 3 is not in [0, 3)");
  expect(variables, grad, AsTensor<int64_t>({-1, 0}), "indices[0] = -1 is not in [0, 3)");
  expect(variables, grad, AsTensor<int32_t>({0, 1}, {1, 2}),
         "Shape must be rank 1 but is rank 2: indices");
  expect(variables, RandomTensor(DT_FLOAT, {3, 2}), rows,
         "Dimensions must be equal, but are 2 and 3");
  expect(variables, RandomTensor(DT_FLOAT, {2}), rows,
         "Shapes must be equal rank, but are 2 and 1");
  expect(std::vector<Tensor>(c.variables, RandomTensor(DT_FLOAT, {}, 0.5, 1)), grad, rows,
         "Shape must be at least rank 1 but is rank 0: var has shape []");
}

TEST(Optimizers, ScalarsAreChecked) {
  const Tensor v = AsTensor<float>({1, 2});
  EXPECT_THAT(OpTester("ApplyGradientDescent").Input(v).Input(v).Input(v).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("alpha")));
  const auto ftrl = [&](const char* op, float lr, float l1, float l2, float power) {
    return OpTester(op)
        .Input(v)
        .Input(v)
        .Input(v)
        .Input(v)
        .Input(AsScalar<float>(lr))
        .Input(AsScalar<float>(l1))
        .Input(AsScalar<float>(l2))
        .Input(AsScalar<float>(power));
  };
  for (const char* op : {"ApplyFtrl", "ResourceApplyFtrl"}) {
    GRADFLOW_EXPECT_OK(ftrl(op, 0.1f, 0, 0, -0.5f).Run());
    EXPECT_THAT(
        ftrl(op, 0, 0, 0, -0.5f).Run(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lr must be positive, but is 0")));
    EXPECT_THAT(ftrl(op, 1, -1, 0, -0.5f).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("l1 must be nonnegative")));
    EXPECT_THAT(ftrl(op, 1, 0, -1, -0.5f).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("l2 must be nonnegative")));
    EXPECT_THAT(ftrl(op, 1, 0, 0, 0.5f).Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                                        HasSubstr("lr_power must be nonpositive")));
    EXPECT_THAT(ftrl(op, std::nanf(""), 0, 0, -0.5f).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("lr must be positive")));
    GRADFLOW_EXPECT_OK(ftrl(op, 0, 0, 0, -0.5f).Attr("multiply_linear_by_lr", true).Run());
  }
}

TEST(Optimizers, RunsForComplexNumbers) {
  using C = complex64;
  const Tensor var = AsTensor<C>({C(1, 2), C(3, -1)});
  const Tensor grad = AsTensor<C>({C(0.5f, 1), C(-2, 0)});
  EXPECT_THAT(OpTester("ResourceApplyGradientDescent")
                  .Input(var)
                  .Input(AsScalar<C>(C(0, 1)))
                  .Input(grad)
                  .RunOne(),
              TensorNear(AsTensor<C>({C(2, 1.5f), C(3, 1)})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto outputs, OpTester("ApplyMomentum")
                                                        .Input(var)
                                                        .Input(var)
                                                        .Input(AsScalar<C>(C(1, 0)))
                                                        .Input(grad)
                                                        .Input(AsScalar<C>(C(0, 1)))
                                                        .Run());
  // accum = accum * i + grad
  EXPECT_THAT(outputs[1], TensorNear(AsTensor<C>({C(-1.5f, 2), C(-1, 3)})));
  EXPECT_THAT(outputs[0], TensorNear(AsTensor<C>({C(2.5f, 0), C(4, -4)})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
