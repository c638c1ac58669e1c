#include <cmath>
#include <cstdint>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

TEST(BatchNormWithGlobalNormalization, AgreesWithItsDefinition) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    for (const bool scale : {true, false}) {
      for (const int64_t n : {1, 5, 33}) {
        SCOPED_TRACE(DataTypeString(dtype) + " channels " + std::to_string(n));
        const TensorShape shape = {3, 4, 5, n};
        const Tensor x = RandomTensor(dtype, shape, -2, 2, 1);
        const Tensor m = RandomTensor(dtype, {n}, -1, 1, 2);
        const Tensor v = RandomTensor(dtype, {n}, 0.5, 2, 3);
        const Tensor beta = RandomTensor(dtype, {n}, -1, 1, 4);
        const Tensor gamma = RandomTensor(dtype, {n}, -1, 1, 5);
        const Tensor dy = RandomTensor(dtype, shape, -2, 2, 6);
        const auto xs = AsDoubles(x), ms = AsDoubles(m), vs = AsDoubles(v), betas = AsDoubles(beta),
                   gammas = AsDoubles(gamma), dys = AsDoubles(dy);
        std::vector<double> y(xs.size()), dx(xs.size()), dm(n), dv(n), db(n), dg(n);
        const double epsilon = 0.001f;
        for (size_t i = 0; i < xs.size(); ++i) {
          const size_t c = i % n;
          const double rstd = 1 / std::sqrt(vs[c] + epsilon);
          const double g = scale ? gammas[c] : 1;
          y[i] = (xs[i] - ms[c]) * rstd * g + betas[c];
          dx[i] = dys[i] * rstd * g;
          dm[c] -= dx[i];
          dv[c] -= dys[i] * (xs[i] - ms[c]) * g * rstd * rstd * rstd / 2;
          db[c] += dys[i];
          if (scale) dg[c] += dys[i] * (xs[i] - ms[c]) * rstd;
        }
        const double tolerance = dtype == DT_DOUBLE  ? 1e-13
                                 : dtype == DT_FLOAT ? 1e-5
                                 : dtype == DT_HALF  ? 4e-3
                                                     : 3e-2;
        const auto near = [&](const TensorShape& s, const std::vector<double>& values) {
          return TensorNear(FromDoubles(dtype, s, values), tolerance, tolerance);
        };
        EXPECT_THAT(OpTester("BatchNormWithGlobalNormalization")
                        .Inputs({x, m, v, beta, gamma})
                        .Attr("variance_epsilon", 0.001f)
                        .Attr("scale_after_normalization", scale)
                        .RunOne(),
                    near(shape, y));
        const auto grads = OpTester("BatchNormWithGlobalNormalizationGrad")
                               .Inputs({x, m, v, gamma, dy})
                               .Attr("variance_epsilon", 0.001f)
                               .Attr("scale_after_normalization", scale)
                               .Run();
        ASSERT_TRUE(grads.ok()) << grads.status();
        EXPECT_THAT(*grads, ::testing::ElementsAre(near(shape, dx), near({n}, dm), near({n}, dv),
                                                   near({n}, db), near({n}, dg)));
      }
    }
  }
}

TEST(BatchNormWithGlobalNormalization, RejectsBadShapes) {
  const Tensor x = Iota<float>({1, 2, 2, 3});
  const Tensor c = Iota<float>({3});
  const Tensor other = Iota<float>({2});
  const auto tester = [](const char* op, const std::vector<Tensor>& inputs) {
    return OpTester(op)
        .Inputs(inputs)
        .Attr("variance_epsilon", 0.1f)
        .Attr("scale_after_normalization", true);
  };
  const char* const forward = "BatchNormWithGlobalNormalization";
  const char* const grad = "BatchNormWithGlobalNormalizationGrad";
  ExpectErrors({
      {"rank", tester(forward, {c, c, c, c, c}),
       "Shape must be rank 4 but is rank 1: t has shape [3]"},
      {"mean", tester(forward, {x, other, c, c, c}), "m has shape [2], expected 3 channels"},
      {"gamma", tester(forward, {x, c, c, c, x}),
       "Shape must be rank 1 but is rank 4: gamma has shape [1,2,2,3]"},
      {"backprop", tester(grad, {x, c, c, c, Iota<float>({2, 2, 2, 3})}),
       "backprop has shape [2,2,2,3], expected [1,2,2,3] (the shape of t)"},
  });
  const Tensor none(DT_FLOAT, {0, 2, 2, 3});
  EXPECT_THAT(tester(forward, {none, c, c, c, c}).RunOne(), TensorEq(none));
  const auto grads = tester(grad, {none, c, c, c, none}).Run();
  ASSERT_TRUE(grads.ok()) << grads.status();
  EXPECT_THAT((*grads)[3], TensorEq(AsTensor<float>({0, 0, 0})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
