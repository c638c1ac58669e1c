#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

std::vector<double> SegmentDoubles(const Tensor& x) {
  std::vector<double> values;
  DispatchType(RealTypes(), x.dtype(), [&](auto tag) {
    for (const auto v : x.span<typename decltype(tag)::type>()) {
      values.push_back(static_cast<double>(v));
    }
  });
  return values;
}

// Reduces `values` by the segment op `name`, such as "Sum".
double Reduced(absl::string_view name, const std::vector<double>& values, double empty) {
  if (values.empty()) return empty;
  long double result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    if (absl::StrContains(name, "Prod")) {
      result *= values[i];
    } else if (absl::StrContains(name, "Max")) {
      result = std::fmax(result, static_cast<long double>(values[i]));
    } else if (absl::StrContains(name, "Min")) {
      result = std::fmin(result, static_cast<long double>(values[i]));
    } else {
      result += values[i];
    }
  }
  if (absl::StrContains(name, "Mean")) result /= values.size();
  if (absl::StrContains(name, "SqrtN"))
    result /= std::sqrt(static_cast<long double>(values.size()));
  return static_cast<double>(result);
}

// Reduces rows[i] of x to row ids[i] of the result. Rows have `width` elements.
Tensor SegmentReference(absl::string_view name, const Tensor& x, const std::vector<int64_t>& rows,
                        const std::vector<int64_t>& ids, int64_t segments, const TensorShape& shape,
                        double empty) {
  const std::vector<double> in = SegmentDoubles(x);
  // Lists the rows of each segment.
  std::vector<std::vector<int64_t>> members(segments);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0) members[ids[i]].push_back(rows[i]);
  }
  const int64_t width = segments == 0 ? 0 : shape.num_elements() / segments;
  std::vector<double> out;
  for (int64_t s = 0; s < segments; ++s) {
    for (int64_t j = 0; j < width; ++j) {
      std::vector<double> values;
      for (const int64_t row : members[s]) values.push_back(in[row * width + j]);
      out.push_back(Reduced(name, values, empty));
    }
  }
  return FromDoubles(x.dtype(), shape, out);
}

std::vector<int64_t> Counting(int64_t n) {
  std::vector<int64_t> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = i;
  return values;
}

// The largest 64-bit integers are not doubles. tests/data/tensorflow_values tests them.
bool IsExact(absl::string_view op, DataType dtype) {
  return DataTypeSize(dtype) < 8 || !DataTypeIsInteger(dtype) || !absl::StrContains(op, "Min");
}

double EmptyOf(absl::string_view op, DataType dtype) {
  if (absl::StrContains(op, "Prod")) return 1;
  const bool neutral = absl::StrContains(op, "Unsorted") || absl::StrContains(op, "V2");
  double empty = 0;
  if (neutral) {
    DispatchType(RealTypes(), dtype, [&](auto tag) {
      using Limits = std::numeric_limits<typename decltype(tag)::type>;
      if (absl::StrContains(op, "Max")) empty = static_cast<double>(Limits::lowest());
      if (absl::StrContains(op, "Min")) empty = static_cast<double>(Limits::max());
    });
  }
  return empty;
}

const char* const kSortedOps[] = {"SegmentSum",    "SegmentMean",  "SegmentProd",
                                  "SegmentMin",    "SegmentMax",   "SegmentSumV2",
                                  "SegmentProdV2", "SegmentMinV2", "SegmentMaxV2"};
const char* const kUnsortedOps[] = {"UnsortedSegmentSum", "UnsortedSegmentProd",
                                    "UnsortedSegmentMin", "UnsortedSegmentMax"};
const char* const kSparseOps[] = {"SparseSegmentSum",   "SparseSegmentSumWithNumSegments",
                                  "SparseSegmentMean",  "SparseSegmentMeanWithNumSegments",
                                  "SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments"};

TEST(SegmentSum, RunsForEveryShape) {
  for (const TensorShape& row :
       {TensorShape({}), TensorShape({3}), TensorShape({2, 2}), TensorShape({600})}) {
    const std::vector<int64_t> ids = {0, 0, 0, 2, 5, 5};
    for (const char* op : kSortedOps) {
      SCOPED_TRACE(absl::StrCat(op, row.DebugString()));
      const bool counted = absl::EndsWith(op, "V2");
      TensorShape shape = {6};
      shape.AppendShape(row);
      const Tensor x = RandomTensor(DT_DOUBLE, shape, -2, 2);
      OpTester tester = OpTester(op).Input(x).Input(AsTensor<int64_t>(ids));
      if (counted) tester.Input(AsScalar<int32_t>(8));
      shape.set_dim(0, counted ? 8 : 6);
      EXPECT_THAT(tester.RunOne(),
                  TensorNear(SegmentReference(op, x, Counting(6), ids, counted ? 8 : 6, shape,
                                              EmptyOf(op, DT_DOUBLE)),
                             1e-15, 1e-15));
    }
  }
}

TEST(SegmentSum, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const Tensor x = AsTensor<T>({1, 2, 5, 4, 3, 4}, {3, 2});
    const std::vector<int64_t> ids = {1, 1, 3};
    for (const char* op : kSortedOps) {
      if (!IsExact(op, x.dtype())) continue;
      OpTester tester = OpTester(op).Input(x).Input(AsTensor<int32_t>({1, 1, 3}));
      if (absl::EndsWith(op, "V2")) tester.Input(AsScalar<int64_t>(4));
      EXPECT_THAT(tester.RunOne(), TensorEq(SegmentReference(op, x, Counting(3), ids, 4, {4, 2},
                                                             EmptyOf(op, x.dtype()))))
          << op;
    }
    for (const char* op : kUnsortedOps) {
      if (!IsExact(op, x.dtype())) continue;
      EXPECT_THAT(OpTester(op)
                      .Input(x)
                      .Input(AsTensor<int32_t>({3, -1, 3}))
                      .Input(AsScalar<int32_t>(4))
                      .RunOne(),
                  TensorEq(SegmentReference(op, x, Counting(3), {3, -1, 3}, 4, {4, 2},
                                            EmptyOf(op, x.dtype()))))
          << op;
    }
  });
}

TEST(SegmentSum, RunsForComplexNumbers) {
  const Tensor x = AsTensor<complex64>({{1, 2}, {3, -1}, {2, 2}});
  const Tensor ids = AsTensor<int32_t>({0, 0, 2});
  EXPECT_THAT(OpTester("SegmentSum").Input(x).Input(ids).RunOne(),
              TensorEq(AsTensor<complex64>({{4, 1}, {0, 0}, {2, 2}})));
  EXPECT_THAT(OpTester("SegmentMean").Input(x).Input(ids).RunOne(),
              TensorEq(AsTensor<complex64>({{2, 0.5f}, {0, 0}, {2, 2}})));
  EXPECT_THAT(OpTester("SegmentProd").Input(x).Input(ids).RunOne(),
              TensorEq(AsTensor<complex64>({{5, 5}, {1, 0}, {2, 2}})));
  EXPECT_THAT(OpTester("UnsortedSegmentSum")
                  .Input(AsTensor<complex128>({{1, 2}, {3, -1}, {2, 2}}))
                  .Input(AsTensor<int16_t>({1, 0, 1}))
                  .Input(AsScalar<int32_t>(3))
                  .RunOne(),
              TensorEq(AsTensor<complex128>({{3, -1}, {3, 4}, {0, 0}})));
}

TEST(UnsortedSegmentSum, RunsForRandomShapes) {
  std::mt19937 random(4);
  for (const char* op : kUnsortedOps) {
    for (int round = 0; round < 30; ++round) {
      const int64_t n = random() % 40;
      const int64_t m = 1 + random() % 3;
      // Few segments, which are scattered to, or many.
      const int64_t segments = round % 5 == 4 ? 20000 : random() % 9;
      const TensorShape row = round % 3 == 0 ? TensorShape({}) : TensorShape({1 + round % 20});
      TensorShape shape = {n, m};
      shape.AppendShape(row);
      const Tensor x = RandomTensor(DT_DOUBLE, shape, -2, 2, round);
      std::vector<int64_t> ids(n * m);
      for (int64_t& id : ids) id = static_cast<int64_t>(random() % (segments + 2)) - 2;
      TensorShape out = {segments};
      out.AppendShape(row);
      SCOPED_TRACE(absl::StrCat(op, shape.DebugString()));
      EXPECT_THAT(OpTester(op)
                      .Input(x)
                      .Input(AsTensor<int64_t>(ids, {n, m}))
                      .Input(AsScalar<int64_t>(segments))
                      .RunOne(),
                  TensorNear(SegmentReference(op, x, Counting(n * m), ids, segments, out,
                                              EmptyOf(op, DT_DOUBLE)),
                             1e-14, 1e-14));
    }
  }
}

// Long segments, which are divided into pieces, next to short ones. There are few segments, which
// are scattered to, or many.
TEST(UnsortedSegmentSum, SumsLongSegments) {
  for (const int32_t segments : {3, 30000}) {
    for (const int64_t width : {1, 3, 600}) {
      if (segments > 3 && width > 3) continue;
      SCOPED_TRACE(width);
      const int64_t n = width == 600 ? 2000 : 200000;
      std::vector<int32_t> ids(n);
      std::vector<double> sums(segments * width);
      for (int64_t i = 0; i < n; ++i) ids[i] = i % 10 == 0 ? 0 : i % 1000 == 1 ? 1 : 2;
      const Tensor x = RandomTensor(DT_FLOAT, {n, width}, -1, 2);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < width; ++j) {
          sums[ids[i] * width + j] += x.flat<float>()(i * width + j);
        }
      }
      OpTester tester("UnsortedSegmentSum");
      tester.Input(x).Input(AsTensor<int32_t>(ids)).Input(AsScalar<int32_t>(segments));
      EXPECT_THAT(tester.RunOne(),
                  TensorNear(FromDoubles(DT_FLOAT, {segments, width}, sums), 0, 1e-7));
      GRADFLOW_EXPECT_OK(tester.RunEverywhere());
    }
  }
}

TEST(SegmentSum, KeepsNan) {
  const Tensor x = AsTensor<float>({1, kNan, 2, 3, kNan});
  const Tensor ids = AsTensor<int32_t>({0, 0, 0, 1, 2});
  for (const char* op : {"SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin"}) {
    const auto y = OpTester(op).Input(x).Input(ids).RunOne();
    EXPECT_THAT(y, TensorEq(AsTensor<float>({kNan, 3, kNan}))) << op;
  }
}

TEST(SegmentSum, TakesEmptyTensors) {
  for (const char* op : kSortedOps) {
    const bool counted = absl::EndsWith(op, "V2");
    OpTester rows = OpTester(op).Input(Tensor(DT_FLOAT, {0, 3})).Input(Tensor(DT_INT32, {0}));
    OpTester columns =
        OpTester(op).Input(Tensor(DT_FLOAT, {2, 0})).Input(AsTensor<int32_t>({0, 3}));
    if (counted) rows.Input(AsScalar<int32_t>(0));
    if (counted) columns.Input(AsScalar<int32_t>(4));
    EXPECT_THAT(rows.RunOne(), TensorEq(Tensor(DT_FLOAT, {0, 3})));
    EXPECT_THAT(columns.RunOne(), TensorEq(Tensor(DT_FLOAT, {4, 0})));
  }
  // The largest id needs no memory if rows are empty.
  EXPECT_THAT(OpTester("SegmentMax")
                  .Input(Tensor(DT_FLOAT, {1, 0}))
                  .Input(AsTensor<int64_t>({int64_t{1} << 50}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {(int64_t{1} << 50) + 1, 0})));
  EXPECT_THAT(OpTester("UnsortedSegmentSum")
                  .Input(Tensor(DT_FLOAT, {0}))
                  .Input(Tensor(DT_INT32, {0}))
                  .Input(AsScalar<int32_t>(2))
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 0})));
}

TEST(SparseSegmentSum, ReducesSelectedRows) {
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE}) {
    for (const int64_t width : {1, 3, 700}) {
      const Tensor x = RandomTensor(dtype, {5, width}, -2, 2);
      const std::vector<int64_t> rows = {4, 0, 0, 2, 4};
      const std::vector<int64_t> ids = {0, 2, 2, 2, 3};
      for (const char* op : kSparseOps) {
        SCOPED_TRACE(absl::StrCat(op, DataTypeString(dtype)));
        const bool counted = absl::EndsWith(op, "NumSegments");
        OpTester tester = OpTester(op)
                              .Input(x)
                              .Input(AsTensor<int32_t>({4, 0, 0, 2, 4}))
                              .Input(AsTensor<int64_t>(ids));
        if (counted) tester.Input(AsScalar<int32_t>(6));
        EXPECT_THAT(tester.RunOne(), TensorNear(SegmentReference(op, x, rows, ids, counted ? 6 : 4,
                                                                 {counted ? 6 : 4, width}, 0)));
      }
    }
  }
  EXPECT_THAT(OpTester("SparseSegmentSum")
                  .Input(AsTensor<int8_t>({100, 50}))
                  .Input(AsTensor<int64_t>({0, 1}))
                  .Input(AsTensor<int32_t>({1, 1}))
                  .RunOne(),
              TensorEq(AsTensor<int8_t>({0, -106})));
  EXPECT_THAT(OpTester("SparseSegmentMean")
                  .Input(Tensor(DT_FLOAT, {2, 3}))
                  .Input(Tensor(DT_INT32, {0}))
                  .Input(Tensor(DT_INT32, {0}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 3})));
}

// The gradient is the transpose of the op. Checks every element.
TEST(SparseSegmentSumGrad, IsTheTransposeOfTheOp) {
  const std::vector<int64_t> rows = {3, 0, 0, 2, 3, 0};
  const std::vector<int64_t> ids = {0, 1, 1, 1, 3, 3};
  const Tensor indices = AsTensor<int32_t>({3, 0, 0, 2, 3, 0});
  const Tensor segments = AsTensor<int32_t>({0, 1, 1, 1, 3, 3});
  for (const char* name : {"Sum", "Mean", "SqrtN"}) {
    const std::string op = absl::StrCat("SparseSegment", name);
    SCOPED_TRACE(op);
    // Applying the op to the identity matrix gives the weight of each data row in each segment.
    Tensor identity(DT_DOUBLE, {5, 5});
    for (int64_t i = 0; i < 25; ++i) identity.flat<double>()(i) = i % 6 == 0;
    const Tensor weights = SegmentReference(op, identity, rows, ids, 4, {4, 5}, 0);
    for (const DataType dtype : {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE}) {
      SCOPED_TRACE(DataTypeString(dtype));
      const Tensor grad = RandomTensor(dtype, {4, 2}, -2, 2);
      const std::vector<double> g = SegmentDoubles(grad);
      std::vector<double> expected(10);
      for (int64_t r = 0; r < 5; ++r) {
        for (int64_t j = 0; j < 2; ++j) {
          for (int64_t s = 0; s < 4; ++s) {
            expected[r * 2 + j] += weights.flat<double>()(s * 5 + r) * g[s * 2 + j];
          }
        }
      }
      EXPECT_THAT(OpTester(op + "Grad")
                      .Input(grad)
                      .Input(indices)
                      .Input(segments)
                      .Input(AsScalar<int32_t>(5))
                      .RunOne(),
                  TensorNear(FromDoubles(dtype, {5, 2}, expected)));
      const auto v2 = OpTester(op + "GradV2")
                          .Input(grad)
                          .Input(indices)
                          .Input(segments)
                          .Input(AsScalar<int32_t>(5))
                          .Run();
      GRADFLOW_ASSERT_OK(v2.status());
      EXPECT_THAT((*v2)[1], TensorEq(AsTensor<int32_t>({0, 2, 3})));
      EXPECT_THAT((*v2)[0], TensorNear(FromDoubles(dtype, {3, 2},
                                                   {expected[0], expected[1], expected[4],
                                                    expected[5], expected[6], expected[7]})));
    }
  }
}

TEST(SparseSegmentSumGrad, TakesEmptyTensors) {
  for (const char* op :
       {"SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"}) {
    OpTester tester(op);
    tester.Input(Tensor(DT_FLOAT, {0, 2}))
        .Input(Tensor(DT_INT32, {0}))
        .Input(Tensor(DT_INT32, {0}));
    EXPECT_THAT(OpTester(tester).Input(AsScalar<int32_t>(2)).RunOne(),
                TensorEq(AsTensor<float>({0, 0, 0, 0}, {2, 2})));
  }
  for (const char* op :
       {"SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2"}) {
    const auto y = OpTester(op)
                       .Input(Tensor(DT_FLOAT, {3, 2}))
                       .Input(Tensor(DT_INT64, {0}))
                       .Input(Tensor(DT_INT32, {0}))
                       .Input(AsScalar<int32_t>(2))
                       .Run();
    GRADFLOW_ASSERT_OK(y.status());
    EXPECT_THAT((*y)[0], TensorEq(Tensor(DT_FLOAT, {0, 2})));
    EXPECT_THAT((*y)[1], TensorEq(Tensor(DT_INT64, {0})));
  }
}

TEST(SegmentSum, RejectsInvalidInputs) {
  const Tensor x = Tensor(DT_FLOAT, {3, 2});
  const auto sorted = [&](const Tensor& ids) { return OpTester("SegmentSum").Input(x).Input(ids); };
  ExpectErrors({
      {"order", sorted(AsTensor<int32_t>({1, 0, 4})),
       "segment_ids must be sorted, but segment_ids[1] is 0 after 1"},
      {"sign", sorted(AsTensor<int64_t>({-1, 0, 4})), "segment_ids[0] is -1, expected at least 0"},
      {"length", sorted(AsTensor<int32_t>({1, 4})),
       "Dimensions must be equal, but are 3 and 2: data"},
      {"rank of ids", sorted(AsTensor<int32_t>({1, 4, 4, 4}, {2, 2})),
       "Shape must be rank 1 but is rank 2: segment_ids has shape [2,2]"},
      {"scalar", OpTester("SegmentMax").Input(AsScalar<float>(1)).Input(AsTensor<int32_t>({0})),
       "data"},
  });
  EXPECT_THAT(sorted(AsTensor<int64_t>({0, 1, std::numeric_limits<int64_t>::max()})).Run(),
              StatusIs(kInvalidArgument, HasSubstr("segment_ids[2] is too large")));
  for (const char* op : {"SegmentSumV2", "SegmentProdV2", "SegmentMinV2", "SegmentMaxV2"}) {
    OpTester tester(op);
    tester.Input(x).Input(AsTensor<int32_t>({0, 1, 4}));
    EXPECT_THAT(OpTester(tester).Input(AsScalar<int32_t>(4)).Run(),
                StatusIs(kInvalidArgument,
                         HasSubstr("segment_ids[2] is 4, expected less than 4, the number of")));
    EXPECT_THAT(OpTester(tester).Input(AsScalar<int32_t>(-1)).Run(),
                StatusIs(kInvalidArgument, HasSubstr("num_segments is -1, expected at least 0")));
  }
}

TEST(UnsortedSegmentSum, RejectsInvalidInputs) {
  const Tensor x = Tensor(DT_FLOAT, {3, 2});
  const Tensor ids = AsTensor<int32_t>({0, 3, 1});
  for (const char* op : kUnsortedOps) {
    EXPECT_THAT(OpTester(op).Input(x).Input(ids).Input(AsScalar<int32_t>(3)).Run(),
                StatusIs(kInvalidArgument,
                         HasSubstr("segment_ids[1] is 3, expected less than 3, the number of")));
    ExpectErrors({
        {"negative", OpTester(op).Input(x).Input(ids).Input(AsScalar<int32_t>(-3)),
         "num_segments is -3, expected at least 0"},
        {"vector", OpTester(op).Input(x).Input(ids).Input(AsTensor<int32_t>({3})),
         "Shape must be rank 0 but is rank 1: num_segments has shape [1]"},
        {"prefix",
         OpTester(op).Input(x).Input(AsTensor<int32_t>({1, 2})).Input(AsScalar<int32_t>(3)),
         "Dimensions must be equal, but are 3 and 2: data has shape [3,2], and segment_ids has "
         "shape [2]"},
    });
  }
  EXPECT_THAT(OpTester("UnsortedSegmentSum")
                  .Attr("T", DT_DOUBLE)
                  .Attr("Tindices", DT_INT32)
                  .RunOn({AsTensor<float>({1}), AsTensor<int32_t>({0}), AsScalar<int32_t>(1)}),
              StatusIs(kInvalidArgument, HasSubstr("data must be of type double, but is float")));
}

TEST(SparseSegmentSum, RejectsInvalidInputs) {
  const Tensor x = Tensor(DT_FLOAT, {3, 2});
  for (const char* op : {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    const auto run = [&](std::vector<int32_t> rows, std::vector<int32_t> ids) {
      return OpTester(op)
          .Input(x)
          .Input(AsTensor<int32_t>(rows))
          .Input(AsTensor<int32_t>(ids))
          .Run();
    };
    EXPECT_THAT(run({0, 3}, {0, 0}),
                StatusIs(kInvalidArgument, HasSubstr("indices[1] is 3, expected in [0, 3)")));
    EXPECT_THAT(run({-1}, {0}),
                StatusIs(kInvalidArgument, HasSubstr("indices[0] is -1, expected in [0, 3)")));
    EXPECT_THAT(run({0, 1}, {1, 0}),
                StatusIs(kInvalidArgument, HasSubstr("segment_ids must be sorted")));
    EXPECT_THAT(run({0}, {-1}), StatusIs(kInvalidArgument, HasSubstr("segment_ids[0] is -1")));
    EXPECT_THAT(run({0, 1}, {1}), StatusIs(kInvalidArgument, HasSubstr("indices")));
    const std::string counted = absl::StrCat(op, "WithNumSegments");
    OpTester tester(counted);
    tester.Input(x).Input(AsTensor<int32_t>({0})).Input(AsTensor<int32_t>({2}));
    EXPECT_THAT(OpTester(tester).Input(AsScalar<int32_t>(2)).Run(),
                StatusIs(kInvalidArgument, HasSubstr("segment_ids[0] is 2, expected less than 2")));
    EXPECT_THAT(OpTester(tester).Input(AsScalar<int32_t>(-2)).Run(),
                StatusIs(kInvalidArgument, HasSubstr("num_segments is -2, expected at least 0")));
    for (const char* suffix : {"Grad", "GradV2"}) {
      const bool v2 = suffix[4] != 0;
      OpTester grad(absl::StrCat(op, suffix));
      const auto with = [&](std::vector<int32_t> rows, std::vector<int32_t> ids, int32_t dim0) {
        return OpTester(grad)
            .Input(x)
            .Input(AsTensor<int32_t>(rows))
            .Input(AsTensor<int32_t>(ids))
            .Input(AsScalar<int32_t>(dim0))
            .Run();
      };
      EXPECT_THAT(with({0, 5}, {0, 0}, 5),
                  StatusIs(kInvalidArgument, HasSubstr("indices[1] is 5, expected in [0, 5)")));
      EXPECT_THAT(with({0, -1}, {0, 0}, 5),
                  StatusIs(kInvalidArgument, HasSubstr("indices[1] is -1, expected in [0, 5)")));
      EXPECT_THAT(with({0, 1}, {0, 3}, 5),
                  StatusIs(kInvalidArgument, HasSubstr("segment_ids[1] is 3, expected in [0, 3)")));
      EXPECT_THAT(with({0}, {0}, -5),
                  StatusIs(kInvalidArgument,
                           HasSubstr(v2 ? "dense_output_dim0 is -5" : "output_dim0 is -5")));
      EXPECT_THAT(with({0}, {0, 0}, 5), StatusIs(kInvalidArgument, HasSubstr("indices")));
    }
  }
}

// The number of segments would overflow.
TEST(SegmentSum, RefusesTheLargestId) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  OpTester tester = OpTester("SegmentSum").Input<float>({1}).Input<int64_t>({kMax});
  EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr("segment_ids[0] is too large")));
  EXPECT_THAT(tester.InferShape(), ShapeIs("[?]"));
}

// Rows are added in blocks. Only the last block has a row of segment 1, and segment 2 is empty.
TEST(UnsortedSegment, CombinesRowsOfTheLastBlock) {
  const Tensor data = RandomTensor(DT_FLOAT, {10000, 64}, 1, 2);
  Tensor ids(DT_INT32, {10000});
  ids.flat<int32_t>().setConstant(-3);
  ids.flat<int32_t>()(0) = 0;
  ids.flat<int32_t>()(9999) = 1;
  for (const char* const op : {"UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax"}) {
    SCOPED_TRACE(op);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const Tensor y, OpTester(op).Input(data).Input(ids).Input(AsScalar<int32_t>(3)).RunOne());
    EXPECT_THAT(*y.SubSlice(0).DeepCopy(), TensorEq(*data.SubSlice(0).DeepCopy()));
    EXPECT_THAT(*y.SubSlice(1).DeepCopy(), TensorEq(*data.SubSlice(9999).DeepCopy()));
    EXPECT_NE(y.SubSlice(2).flat<float>()(0), data.flat<float>()(0));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
