#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;
using LstmNumbers = std::vector<double>;

struct LstmCase {
  int64_t steps;
  int64_t batch;
  int64_t input;
  int64_t cell;
  // The number of steps to compute.
  int64_t length;
  bool peephole = false;
  double clip = 0;
  double forget_bias = 1;
  // If true, uses the gate order of BlockLSTMV2.
  bool v2 = false;

  std::string DebugString() const {
    return "steps " + std::to_string(steps) + " batch " + std::to_string(batch) + " input " +
           std::to_string(input) + " cell " + std::to_string(cell) + " length " +
           std::to_string(length) + (peephole ? " peephole" : "") + (v2 ? " v2" : "");
  }
};

const LstmCase kLstmCases[] = {{1, 1, 1, 1, 1},
                               {3, 2, 4, 5, 3},
                               {3, 2, 4, 5, 2, true, 0, 0.5},
                               {4, 1, 3, 2, 4, true, 0.3, 1, false},
                               {4, 3, 3, 7, 4, true, 0, 0, true},
                               {2, 2, 3, 300, 2, true, 0, 1, false},
                               {3, 2, 0, 3, 3},
                               {3, 2, 2, 3, 0},
                               {2, 3, 40, 17, 2, false, 0.25, 0, true}};

// Returns the inputs x, cs_prev, h_prev, w, wci, wcf, wco, b.
std::vector<Tensor> LstmInputs(const LstmCase& c, DataType dtype) {
  const int64_t n = c.cell;
  const double scale = 1.5 / std::sqrt(static_cast<double>(c.input + n + 1));
  return {RandomTensor(dtype, {c.steps, c.batch, c.input}, -1, 1, 1),
          RandomTensor(dtype, {c.batch, n}, -1, 1, 2),
          RandomTensor(dtype, {c.batch, n}, -1, 1, 3),
          RandomTensor(dtype, {c.input + n, 4 * n}, -scale, scale, 4),
          RandomTensor(dtype, {n}, -1, 1, 5),
          RandomTensor(dtype, {n}, -1, 1, 6),
          RandomTensor(dtype, {n}, -1, 1, 7),
          RandomTensor(dtype, {4 * n}, -1, 1, 8)};
}

LstmNumbers LstmDoubles(const Tensor& x) {
  LstmNumbers values;
  DispatchType(FloatingTypes(), x.dtype(), [&](auto tag) {
    for (const auto v : x.flat<typename decltype(tag)::type>()) {
      values.push_back(static_cast<double>(v));
    }
  });
  return values;
}
std::vector<LstmNumbers> LstmDoubles(const std::vector<Tensor>& tensors) {
  std::vector<LstmNumbers> values;
  for (const Tensor& tensor : tensors) values.push_back(LstmDoubles(tensor));
  return values;
}

double LstmSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Returns i, cs, f, o, ci, co, h of shape [steps, batch, cell]. They are 0 from step `length` on.
std::vector<LstmNumbers> LstmReference(const LstmCase& c, const std::vector<LstmNumbers>& in) {
  const int64_t n = c.cell;
  const int64_t rows = c.steps * c.batch;
  std::vector<LstmNumbers> out(7, LstmNumbers(static_cast<size_t>(rows * n)));
  for (int64_t row = 0; row < c.length * c.batch; ++row) {
    for (int64_t j = 0; j < n; ++j) {
      const auto before = [&](int initial, int result, int64_t k) {
        return row < c.batch ? in[initial][row * n + k] : out[result][(row - c.batch) * n + k];
      };
      const auto gate = [&](int64_t position) {
        const int64_t column = position * n + j;
        double sum = in[7][column];
        for (int64_t k = 0; k < c.input; ++k) {
          sum += in[0][row * c.input + k] * in[3][k * 4 * n + column];
        }
        for (int64_t k = 0; k < n; ++k) {
          sum += before(2, 6, k) * in[3][(c.input + k) * 4 * n + column];
        }
        return sum;
      };
      const double use = c.peephole ? 1 : 0;
      const double state = before(1, 1, j);
      const double i = LstmSigmoid(gate(0) + use * in[4][j] * state);
      const double ci = std::tanh(gate(c.v2 ? 2 : 1));
      const double f = LstmSigmoid(gate(c.v2 ? 1 : 2) + c.forget_bias + use * in[5][j] * state);
      double cs = i * ci + f * state;
      if (c.clip > 0) cs = std::clamp(cs, -c.clip, c.clip);
      const double co = std::tanh(cs);
      const double o = LstmSigmoid(gate(3) + use * in[6][j] * cs);
      const double results[] = {i, cs, f, o, ci, co, o * co};
      for (int r = 0; r < 7; ++r) out[r][row * n + j] = results[r];
    }
  }
  return out;
}

OpTester LstmOp(const LstmCase& c, bool is_block, const std::vector<Tensor>& in) {
  OpTester op(is_block ? (c.v2 ? "BlockLSTMV2" : "BlockLSTM") : "LSTMBlockCell");
  if (is_block) op.Input(AsScalar<int64_t>(c.length));
  for (const Tensor& tensor : in) op.Input(tensor);
  if (!c.v2) op.Attr("forget_bias", static_cast<float>(c.forget_bias));
  op.Attr("cell_clip", static_cast<float>(c.clip)).Attr("use_peephole", c.peephole);
  return op;
}

// Returns the inputs of the first step.
std::vector<Tensor> LstmOfOneStep(std::vector<Tensor> in) {
  Tensor x;
  EXPECT_TRUE(x.CopyFrom(in[0], {in[0].dim_size(1), in[0].dim_size(2)}));
  in[0] = x;
  return in;
}

TEST(Lstm, RunsForEveryTypeAndShape) {
  for (const DataType dtype : {DT_FLOAT, DT_HALF}) {
    for (const LstmCase& c : kLstmCases) {
      SCOPED_TRACE(c.DebugString() + " of " + DataTypeString(dtype));
      const std::vector<Tensor> in = LstmInputs(c, dtype);
      const std::vector<LstmNumbers> expected = LstmReference(c, LstmDoubles(in));
      const double tolerance = dtype == DT_FLOAT ? 2e-6 : 2e-3;
      const auto out = LstmOp(c, true, in).Run();
      ASSERT_TRUE(out.ok()) << out.status();
      for (size_t k = 0; k < 7; ++k) {
        const TensorShape shape = {c.steps, c.batch, c.cell};
        EXPECT_THAT((*out)[k],
                    TensorNear(FromDoubles(dtype, shape, expected[k]), tolerance, tolerance))
            << k;
      }
      if (c.steps > 1 || c.v2) continue;
      const auto step = LstmOp(c, false, LstmOfOneStep(in)).Run();
      ASSERT_TRUE(step.ok()) << step.status();
      for (size_t k = 0; k < 7; ++k) {
        const TensorShape shape = {c.batch, c.cell};
        EXPECT_THAT((*step)[k],
                    TensorNear(FromDoubles(dtype, shape, expected[k]), tolerance, tolerance))
            << k;
      }
    }
  }
}

TEST(Lstm, CellRunsForManyShapes) {
  for (const LstmCase& c : {LstmCase{1, 3, 2, 4, 1},
                            {1, 1, 7, 5, 1, true, 0.4, 0.25},
                            {1, 5, 1, 260, 1, true},
                            {1, 0, 2, 3, 1},
                            {1, 2, 3, 0, 1}}) {
    SCOPED_TRACE(c.DebugString());
    const std::vector<Tensor> in = LstmOfOneStep(LstmInputs(c, DT_FLOAT));
    const std::vector<LstmNumbers> expected = LstmReference(c, LstmDoubles(in));
    const auto out = LstmOp(c, false, in).Run();
    ASSERT_TRUE(out.ok()) << out.status();
    for (size_t k = 0; k < 7; ++k) {
      EXPECT_THAT((*out)[k],
                  TensorNear(FromDoubles(DT_FLOAT, {c.batch, c.cell}, expected[k]), 2e-6, 2e-6))
          << k;
    }
  }
}

TEST(Lstm, KeepsNanWhenClipped) {
  std::vector<Tensor> in = LstmOfOneStep(LstmInputs({1, 1, 1, 2, 1}, DT_FLOAT));
  in[1].flat<float>()(0) = kNan;
  in[1].flat<float>()(1) = 1e30f;
  LstmCase c = {1, 1, 1, 2, 1};
  c.clip = 3;
  const auto out = LstmOp(c, false, in).Run();
  ASSERT_TRUE(out.ok());
  EXPECT_TRUE(std::isnan((*out)[1].flat<float>()(0)));
  EXPECT_EQ((*out)[1].flat<float>()(1), 3);
}

// ---- Gradients ----

// Returns the gradients of sum(cs * cs_grad + h * h_grad) by central differences of the reference.
std::vector<LstmNumbers> LstmGradient(const LstmCase& c, std::vector<LstmNumbers> in,
                                      const LstmNumbers& cs_grad, const LstmNumbers& h_grad) {
  const auto loss = [&] {
    const std::vector<LstmNumbers> out = LstmReference(c, in);
    double sum = 0;
    for (size_t k = 0; k < cs_grad.size(); ++k) {
      sum += out[1][k] * cs_grad[k] + out[6][k] * h_grad[k];
    }
    return sum;
  };
  std::vector<LstmNumbers> gradients;
  for (LstmNumbers& numbers : in) {
    LstmNumbers gradient;
    for (double& number : numbers) {
      const double at = number;
      constexpr double kDelta = 1e-5;
      number = at + kDelta;
      const double above = loss();
      number = at - kDelta;
      gradient.push_back((above - loss()) / (2 * kDelta));
      number = at;
    }
    gradients.push_back(gradient);
  }
  return gradients;
}

const LstmCase kLstmGradientCases[] = {{1, 1, 1, 1, 1},
                                       {3, 2, 4, 3, 3},
                                       {3, 2, 4, 3, 2, true, 0, 0.5},
                                       {4, 3, 2, 5, 4, true, 0, 0, true},
                                       {2, 2, 0, 3, 2, true},
                                       {3, 2, 2, 3, 0, true}};

TEST(LstmGrad, BlocksAgreeWithDifferences) {
  for (const DataType dtype : {DT_FLOAT, DT_HALF}) {
    for (const LstmCase& c : kLstmGradientCases) {
      SCOPED_TRACE(c.DebugString() + " of " + DataTypeString(dtype));
      const std::vector<Tensor> in = LstmInputs(c, dtype);
      const auto results = LstmOp(c, true, in).Run();
      ASSERT_TRUE(results.ok()) << results.status();
      const TensorShape shape = {c.steps, c.batch, c.cell};
      const Tensor cs_grad = RandomTensor(dtype, shape, -1, 1, 9);
      const Tensor h_grad = RandomTensor(dtype, shape, -1, 1, 10);
      OpTester op(c.v2 ? "BlockLSTMGradV2" : "BlockLSTMGrad");
      op.Input(AsScalar<int64_t>(c.length)).Inputs(in).Inputs(*results);
      op.Input(cs_grad).Input(h_grad).Attr("use_peephole", c.peephole);
      const auto out = op.Run();
      ASSERT_TRUE(out.ok()) << out.status();
      const std::vector<LstmNumbers> expected =
          LstmGradient(c, LstmDoubles(in), LstmDoubles(cs_grad), LstmDoubles(h_grad));
      const double tolerance = dtype == DT_FLOAT ? 1e-5 : 1e-2;
      for (size_t k = 0; k < 8; ++k) {
        EXPECT_THAT((*out)[k], TensorNear(FromDoubles(dtype, in[k].shape(), expected[k]), tolerance,
                                          tolerance))
            << k;
      }
    }
  }
}

// The gradients of the gates, summed over the batch, are the gradients of the biases.
TEST(LstmGrad, CellsAgreeWithDifferences) {
  for (const DataType dtype : {DT_FLOAT, DT_HALF}) {
    for (const LstmCase& c : {LstmCase{1, 1, 1, 1, 1}, {1, 3, 2, 4, 1}, {1, 2, 2, 3, 1, true}}) {
      SCOPED_TRACE(c.DebugString() + " of " + DataTypeString(dtype));
      const std::vector<Tensor> in = LstmOfOneStep(LstmInputs(c, dtype));
      const auto results = LstmOp(c, false, in).Run();
      ASSERT_TRUE(results.ok()) << results.status();
      const Tensor cs_grad = RandomTensor(dtype, {c.batch, c.cell}, -1, 1, 9);
      const Tensor h_grad = RandomTensor(dtype, {c.batch, c.cell}, -1, 1, 10);
      OpTester op("LSTMBlockCellGrad");
      op.Inputs(in);
      for (size_t k = 0; k < 6; ++k) op.Input((*results)[k]);
      op.Input(cs_grad).Input(h_grad).Attr("use_peephole", c.peephole);
      const auto out = op.Run();
      ASSERT_TRUE(out.ok()) << out.status();
      const std::vector<LstmNumbers> expected =
          LstmGradient(c, LstmDoubles(in), LstmDoubles(cs_grad), LstmDoubles(h_grad));
      const double tolerance = dtype == DT_FLOAT ? 1e-5 : 1e-2;
      EXPECT_THAT((*out)[0], TensorNear(FromDoubles(dtype, {c.batch, c.cell}, expected[1]),
                                        tolerance, tolerance));
      ASSERT_EQ((*out)[1].shape(), TensorShape({c.batch, 4 * c.cell}));
      const LstmNumbers gates = LstmDoubles((*out)[1]);
      for (int64_t j = 0; j < 4 * c.cell; ++j) {
        double sum = 0;
        for (int64_t b = 0; b < c.batch; ++b) sum += gates[b * 4 * c.cell + j];
        EXPECT_NEAR(sum, expected[7][j], tolerance * (1 + std::abs(expected[7][j])));
      }
      for (size_t k = 2; k < 5; ++k) {
        EXPECT_THAT((*out)[k], TensorNear(FromDoubles(dtype, {c.cell}, expected[k + 2]), tolerance,
                                          tolerance));
      }
    }
  }
}

// There are more rows than one block adds at a time, and more columns than one chunk.
TEST(LstmGrad, SumsTheGradientsOfManyRows) {
  const LstmCase c = {1, 600, 2, 70, 1};
  const std::vector<Tensor> in = LstmInputs(c, DT_FLOAT);
  const auto results = LstmOp(c, true, in).Run();
  ASSERT_TRUE(results.ok());
  const Tensor ones = RandomTensor(DT_FLOAT, {1, 600, 70}, 1, 1.5, 9);
  OpTester op("BlockLSTMGrad");
  op.Input(AsScalar<int64_t>(1)).Inputs(in).Inputs(*results).Input(ones).Input(ones);
  const auto out = op.Attr("use_peephole", true).Run();
  ASSERT_TRUE(out.ok()) << out.status();
  // The gradient of wco is sum(d_o * cs), and the gradient of the output gate's bias is sum(d_o).
  LstmNumbers d_bias(70);
  LstmNumbers d_wco(70);
  const std::vector<LstmNumbers> r = LstmDoubles(*results);
  const LstmNumbers dy = LstmDoubles(ones);
  for (int64_t row = 0; row < 600; ++row) {
    for (int64_t j = 0; j < 70; ++j) {
      const int64_t k = row * 70 + j;
      const double d_o = r[3][k] * (1 - r[3][k]) * dy[k] * r[5][k];
      d_bias[j] += d_o;
      d_wco[j] += d_o * r[1][k];
    }
  }
  EXPECT_THAT((*out)[6], TensorNear(FromDoubles(DT_FLOAT, {70}, d_wco), 1e-4, 1e-4));
  const LstmNumbers bias = LstmDoubles((*out)[7]);
  for (int64_t j = 0; j < 70; ++j) EXPECT_NEAR(bias[3 * 70 + j], d_bias[j], 1e-3);
}

// ---- Errors ----

TEST(Lstm, RejectsShapes) {
  const LstmCase c = {3, 2, 4, 5, 3};
  struct {
    size_t input;
    TensorShape shape;
    const char* text;
  } const cases[] = {
      {0, {2, 4}, "Shape must be rank 3 but is rank 2: x has shape [2,4]"},
      {1, {2, 5, 1}, "Shape must be rank 2 but is rank 3: cs_prev has shape [2,5,1]"},
      {2,
       {2, 6},
       "h_prev has shape [2,6], expected [2,5] (steps 3, batch 2, input size 4, cell "
       "size 5)"},
      {3, {9, 21}, "w has shape [9,21], expected [9,20]"},
      {3, {8, 20}, "w has shape [8,20], expected [9,20]"},
      {4, {6}, "wci has shape [6], expected [5]"},
      {5, {}, "Shape must be rank 1 but is rank 0: wcf has shape []"},
      {6, {4}, "wco has shape [4], expected [5]"},
      {7, {19}, "b has shape [19], expected [20]"}};
  for (const auto& wrong : cases) {
    std::vector<Tensor> in = LstmInputs(c, DT_FLOAT);
    in[wrong.input] = RandomTensor(DT_FLOAT, wrong.shape);
    OpTester op = LstmOp(c, true, in);
    EXPECT_THAT(op.Run(), StatusIs(kInvalidArgument, HasSubstr(wrong.text)));
    EXPECT_THAT(op.InferShapes(), StatusIs(kInvalidArgument, HasSubstr(wrong.text)));
  }
  for (const int64_t length : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
    LstmCase wrong = c;
    wrong.length = length;
    OpTester op = LstmOp(wrong, true, LstmInputs(c, DT_FLOAT));
    const std::string text =
        "seq_len_max is " + std::to_string(length) + ", expected 0 to 3 (the steps of x)";
    EXPECT_THAT(op.Run(), StatusIs(kInvalidArgument, text));
    EXPECT_THAT(op.InferShapes(), StatusIs(kInvalidArgument, text));
  }
  OpTester op("BlockLSTM");
  op.Input(AsTensor<int64_t>({3})).Inputs(LstmInputs(c, DT_FLOAT));
  EXPECT_THAT(op.Run(),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 0 but is rank 1: seq_len_max has shape [1]")));
  // Multiples of these sizes do not fit an int64.
  const int64_t huge = int64_t{1} << 61;
  std::vector<Tensor> in = LstmOfOneStep(LstmInputs({1, 0, 2, 3, 1}, DT_FLOAT));
  in[1] = Tensor(DT_FLOAT, {0, huge});
  EXPECT_THAT(LstmOp({1, 0, 2, 3, 1}, false, in).Run(),
              StatusIs(kInvalidArgument, HasSubstr("expected sizes up to")));
}

// The product of the dimensions does not fit an int64, or a dimension is too large for a loop.
TEST(LstmGrad, TakesEmptyTensorsWithLargeDimensions) {
  const int64_t huge = int64_t{1} << 40;
  for (const LstmCase& c : {LstmCase{huge, huge, 0, 0, huge}, LstmCase{huge, 0, 1, 1, huge}}) {
    const std::vector<Tensor> in = LstmInputs(c, DT_FLOAT);
    GRADFLOW_EXPECT_OK(LstmOp(c, true, in).Run());
    OpTester gradient("BlockLSTMGrad");
    gradient.Input(AsScalar<int64_t>(c.length)).Inputs(in).Attr("use_peephole", false);
    for (int k = 9; k < 18; ++k) gradient.Input(Tensor(DT_FLOAT, {c.steps, c.batch, c.cell}));
    GRADFLOW_EXPECT_OK(gradient.Run());
  }
}

TEST(LstmGrad, RejectsShapes) {
  const LstmCase c = {2, 2, 3, 4, 2};
  const std::vector<Tensor> in = LstmInputs(c, DT_FLOAT);
  const Tensor result = RandomTensor(DT_FLOAT, {2, 2, 4});
  for (int wrong = 9; wrong < 18; ++wrong) {
    OpTester op("BlockLSTMGrad");
    op.Input(AsScalar<int64_t>(2)).Inputs(in).Attr("use_peephole", false);
    for (int k = 9; k < 18; ++k) {
      op.Input(k == wrong ? RandomTensor(DT_FLOAT, {2, 2, 5}) : result);
    }
    EXPECT_THAT(op.Run(),
                StatusIs(kInvalidArgument, HasSubstr("has shape [2,2,5], expected [2,2,4]")));
    EXPECT_FALSE(op.InferShapes().ok());
  }
}

TEST(Lstm, InfersShapesFromPartlyKnownInputs) {
  OpTester op("BlockLSTM");
  op.UnknownInput(DT_INT64).UnknownInput(DT_FLOAT, PartialTensorShape({-1, 2, -1}));
  for (int k = 0; k < 2; ++k) op.UnknownInput(DT_FLOAT);
  for (int k = 0; k < 4; ++k) op.UnknownInput(DT_FLOAT);
  op.UnknownInput(DT_FLOAT, PartialTensorShape({20}));
  const auto shapes = op.InferShapes();
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  for (const PartialTensorShape& shape : *shapes) {
    EXPECT_EQ(shape.DebugString(), "[?,2,5]");
  }
  OpTester negative("BlockLSTM");
  negative.Input(AsScalar<int64_t>(-1));
  for (int k = 0; k < 8; ++k) negative.UnknownInput(DT_FLOAT);
  EXPECT_THAT(negative.InferShapes(),
              StatusIs(kInvalidArgument, "seq_len_max is -1, expected 0 at least"));
  OpTester odd("BlockLSTM");
  odd.UnknownInput(DT_INT64);
  for (int k = 0; k < 7; ++k) odd.UnknownInput(DT_FLOAT);
  odd.UnknownInput(DT_FLOAT, PartialTensorShape({21}));
  EXPECT_THAT(odd.InferShapes(), StatusIs(kInvalidArgument, HasSubstr("b has shape [21]")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
