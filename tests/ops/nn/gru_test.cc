#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;
using GruNumbers = std::vector<double>;

struct GruCase {
  int64_t batch;
  int64_t input;
  int64_t cell;
};
const GruCase kGruCases[] = {{1, 1, 1}, {2, 3, 4}, {5, 2, 7},  {3, 0, 2},
                             {0, 2, 3}, {2, 3, 0}, {2, 5, 300}};

// Returns x, h_prev, w_ru, w_c, b_ru, b_c.
std::vector<Tensor> GruInputs(const GruCase& c) {
  const int64_t n = c.cell;
  const double scale = 2 / std::sqrt(static_cast<double>(c.input + n + 1));
  return {RandomTensor(DT_FLOAT, {c.batch, c.input}, -1, 1, 1),
          RandomTensor(DT_FLOAT, {c.batch, n}, -1, 1, 2),
          RandomTensor(DT_FLOAT, {c.input + n, 2 * n}, -scale, scale, 3),
          RandomTensor(DT_FLOAT, {c.input + n, n}, -scale, scale, 4),
          RandomTensor(DT_FLOAT, {2 * n}, -1, 1, 5),
          RandomTensor(DT_FLOAT, {n}, -1, 1, 6)};
}

std::vector<GruNumbers> GruDoubles(const std::vector<Tensor>& tensors) {
  std::vector<GruNumbers> values;
  for (const Tensor& tensor : tensors) {
    const auto flat = tensor.flat<float>();
    values.emplace_back(flat.begin(), flat.end());
  }
  return values;
}

double GruSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Returns r, u, c, h.
std::vector<GruNumbers> GruReference(const GruCase& c, const std::vector<GruNumbers>& in) {
  const int64_t n = c.cell;
  std::vector<GruNumbers> out(4, GruNumbers(static_cast<size_t>(c.batch * n)));
  const auto product = [&](const GruNumbers& w, const GruNumbers& state, int64_t b, int64_t columns,
                           int64_t column) {
    double sum = 0;
    for (int64_t k = 0; k < c.input; ++k) sum += in[0][b * c.input + k] * w[k * columns + column];
    for (int64_t k = 0; k < n; ++k) sum += state[b * n + k] * w[(c.input + k) * columns + column];
    return sum;
  };
  GruNumbers reset(static_cast<size_t>(c.batch * n));
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t j = 0; j < n; ++j) {
      out[0][b * n + j] = GruSigmoid(product(in[2], in[1], b, 2 * n, j) + in[4][j]);
      out[1][b * n + j] = GruSigmoid(product(in[2], in[1], b, 2 * n, n + j) + in[4][n + j]);
      reset[b * n + j] = in[1][b * n + j] * out[0][b * n + j];
    }
  }
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t k = b * n + j;
      out[2][k] = std::tanh(product(in[3], reset, b, n, j) + in[5][j]);
      out[3][k] = out[1][k] * in[1][k] + (1 - out[1][k]) * out[2][k];
    }
  }
  return out;
}

TEST(Gru, RunsForManyShapes) {
  for (const GruCase& c : kGruCases) {
    SCOPED_TRACE(std::to_string(c.batch) + " " + std::to_string(c.input) + " " +
                 std::to_string(c.cell));
    const std::vector<Tensor> in = GruInputs(c);
    const std::vector<GruNumbers> expected = GruReference(c, GruDoubles(in));
    const auto out = OpTester("GRUBlockCell").Inputs(in).Run();
    ASSERT_TRUE(out.ok()) << out.status();
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_THAT((*out)[k],
                  TensorNear(FromDoubles(DT_FLOAT, {c.batch, c.cell}, expected[k]), 2e-6, 2e-6))
          << k;
    }
  }
}

// Compares with central differences of the reference for sum(h * d_h). The gradient of a bias is
// the gradient of the argument of its gate or candidate, summed over the batch.
TEST(Gru, GradientAgreesWithDifferences) {
  for (const GruCase& c : kGruCases) {
    if (c.cell > 100) continue;
    SCOPED_TRACE(std::to_string(c.batch) + " " + std::to_string(c.input) + " " +
                 std::to_string(c.cell));
    const std::vector<Tensor> tensors = GruInputs(c);
    std::vector<GruNumbers> in = GruDoubles(tensors);
    const auto results = OpTester("GRUBlockCell").Inputs(tensors).Run();
    ASSERT_TRUE(results.ok()) << results.status();
    const Tensor d_h = RandomTensor(DT_FLOAT, {c.batch, c.cell}, -1, 1, 9);
    const GruNumbers dy = GruDoubles({d_h})[0];
    const auto loss = [&] {
      const GruNumbers h = GruReference(c, in)[3];
      double sum = 0;
      for (size_t k = 0; k < h.size(); ++k) sum += h[k] * dy[k];
      return sum;
    };
    const auto gradient = [&](size_t input) {
      GruNumbers result;
      for (double& number : in[input]) {
        const double at = number;
        number = at + 1e-5;
        const double above = loss();
        number = at - 1e-5;
        result.push_back((above - loss()) / 2e-5);
        number = at;
      }
      return result;
    };
    OpTester op("GRUBlockCellGrad");
    op.Inputs(tensors);
    for (size_t k = 0; k < 3; ++k) op.Input((*results)[k]);
    const auto out = op.Input(d_h).Run();
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_THAT((*out)[0],
                TensorNear(FromDoubles(DT_FLOAT, {c.batch, c.input}, gradient(0)), 1e-5, 1e-5));
    EXPECT_THAT((*out)[1],
                TensorNear(FromDoubles(DT_FLOAT, {c.batch, c.cell}, gradient(1)), 1e-5, 1e-5));
    const std::vector<GruNumbers> bars = GruDoubles({(*out)[2], (*out)[3]});
    for (const int bar : {0, 1}) {
      const GruNumbers expected = gradient(bar == 0 ? 5 : 4);
      const int64_t columns = (bar + 1) * c.cell;
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t b = 0; b < c.batch; ++b) sum += bars[bar][b * columns + j];
        EXPECT_NEAR(sum, expected[j], 1e-5) << bar << " " << j;
      }
    }
  }
}

TEST(Gru, RejectsShapes) {
  struct {
    size_t input;
    TensorShape shape;
    const char* text;
  } const cases[] = {
      {0, {2}, "Shape must be rank 2 but is rank 1: x has shape [2]"},
      {1, {3, 4}, "h_prev has shape [3,4], expected [2,4] (batch 2, input size 3, cell size 4)"},
      {2, {7, 9}, "w_ru has shape [7,9], expected [7,8]"},
      {3, {6, 4}, "w_c has shape [6,4], expected [7,4]"},
      {4, {4}, "b_ru has shape [4], expected [8]"},
      {5, {}, "Shape must be rank 1 but is rank 0: b_c has shape []"}};
  for (const auto& wrong : cases) {
    for (const bool grad : {false, true}) {
      std::vector<Tensor> in = GruInputs({2, 3, 4});
      in[wrong.input] = RandomTensor(DT_FLOAT, wrong.shape);
      OpTester op(grad ? "GRUBlockCellGrad" : "GRUBlockCell");
      op.Inputs(in);
      for (int k = 0; grad && k < 4; ++k) op.Input(RandomTensor(DT_FLOAT, {2, 4}));
      EXPECT_THAT(op.Run(), StatusIs(kInvalidArgument, HasSubstr(wrong.text)));
      EXPECT_THAT(op.InferShapes(), StatusIs(kInvalidArgument, HasSubstr(wrong.text)));
    }
  }
  for (int wrong = 0; wrong < 4; ++wrong) {
    OpTester op("GRUBlockCellGrad");
    op.Inputs(GruInputs({2, 3, 4}));
    for (int k = 0; k < 4; ++k) {
      op.Input(RandomTensor(DT_FLOAT, k == wrong ? TensorShape({2, 3}) : TensorShape({2, 4})));
    }
    EXPECT_THAT(op.Run(), StatusIs(kInvalidArgument, HasSubstr("has shape [2,3], expected [2,4]")));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
