#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester GatherNd(const Tensor& params, const Tensor& indices) {
  return OpTester("GatherNd").Input(params).Input(indices);
}
OpTester ScatterNd(const Tensor& indices, const Tensor& updates, const Tensor& shape) {
  return OpTester("ScatterNd").Input(indices).Input(updates).Input(shape);
}
OpTester TensorScatter(const char* op, const Tensor& tensor, const Tensor& indices,
                       const Tensor& updates) {
  return OpTester(op).Input(tensor).Input(indices).Input(updates);
}

TEST(GatherNd, PicksSlicesOfEveryDepthInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor params = DistinctTensor(dtype, {3, 4, 5});
    EXPECT_THAT(GatherNd(params, Tensor(DT_INT32, {2, 0})).RunOne(),
                TensorEq(Rearranged(params, {2, 3, 4, 5}, [](const std::vector<int64_t>& index) {
                  return (index[1] * 4 + index[2]) * 5 + index[3];
                })));
    EXPECT_THAT(GatherNd(params, AsTensor<int16_t>({2, 0, 2, 1}, {2, 2, 1})).RunOne(),
                TensorEq(Rearranged(params, {2, 2, 4, 5}, [](const std::vector<int64_t>& index) {
                  const int64_t picks[] = {2, 0, 2, 1};
                  return (picks[index[0] * 2 + index[1]] * 4 + index[2]) * 5 + index[3];
                })));
    EXPECT_THAT(GatherNd(params, AsTensor<int64_t>({2, 3, 0, 1}, {2, 2})).RunOne(),
                TensorEq(Rearranged(params, {2, 5}, [](const std::vector<int64_t>& index) {
                  return (index[0] == 0 ? 2 * 4 + 3 : 1) * 5 + index[1];
                })));
    EXPECT_THAT(GatherNd(params, AsTensor<int32_t>({1, 2, 3})).RunOne(),
                TensorEq(Rearranged(
                    params, {}, [](const std::vector<int64_t>&) { return (1 * 4 + 2) * 5 + 3; })));
  }
}

TEST(GatherNd, PicksFromLargeAndEmptyTensors) {
  const Tensor params = Iota<int32_t>({300, 40, 8});
  std::vector<int32_t> picks;
  for (int64_t i = 0; i < 5000; ++i) {
    picks.push_back(static_cast<int32_t>(i * 7919 % 300));
    picks.push_back(static_cast<int32_t>(i % 40));
  }
  EXPECT_THAT(GatherNd(params, AsTensor<int32_t>(picks, {5000, 2})).RunOne(),
              TensorEq(Rearranged(params, {5000, 8}, [&](const std::vector<int64_t>& index) {
                return (picks[index[0] * 2] * 40 + picks[index[0] * 2 + 1]) * 8 + index[1];
              })));
  EXPECT_THAT(GatherNd(Tensor(DT_FLOAT, {0, 2}), Tensor(DT_INT32, {0, 1})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
}

TEST(GatherNd, TreatsIndicesOutOfRangeByThePolicy) {
  const Tensor params = AsTensor<float>({1, 2, 3, 4}, {2, 2});
  const Tensor indices = AsTensor<int32_t>({0, 0, 2, 1, 1, -1}, {3, 2});
  for (const char* policy : {"", "DEFAULT", "ERROR"}) {
    EXPECT_THAT(
        GatherNd(params, indices).Attr("bad_indices_policy", policy).Run(),
        StatusIs(kInvalidArgument, "indices[1] = [2,1] does not index into param shape [2,2]"));
  }
  EXPECT_THAT(GatherNd(params, indices).Attr("bad_indices_policy", "IGNORE").RunOne(),
              TensorEq(AsTensor<float>({1, 0, 0})));
  EXPECT_THAT(GatherNd(AsTensor<tstring>({"a"}), AsTensor<int32_t>({0, 5}, {2, 1}))
                  .Attr("bad_indices_policy", "IGNORE")
                  .RunOne(),
              TensorEq(AsTensor<tstring>({"a", ""})));
  EXPECT_THAT(GatherNd(params, indices).Attr("bad_indices_policy", "x").Run(),
              StatusIs(kInvalidArgument, HasSubstr("bad_indices_policy must be")));
  EXPECT_THAT(
      GatherNd(Tensor(DT_FLOAT, {0, 2}), AsTensor<int32_t>({0}, {1, 1})).Run(),
      StatusIs(kInvalidArgument, HasSubstr("indices[0] = [0] does not index into param shape")));
}

TEST(GatherNd, RejectsBadShapes) {
  const Tensor params = Iota<float>({2, 2});
  ExpectErrors({
      {"scalar", GatherNd(params, AsScalar<int32_t>(0)),
       "Shape must be at least rank 1 but is rank 0: indices has shape []"},
      {"deep", GatherNd(params, AsTensor<int32_t>({0, 0, 0}, {1, 3})),
       "the last dimension of indices, of shape [1,3], must be at most the rank of params, of "
       "shape [2,2]"},
  });
  EXPECT_THAT(OpTester("GatherNd")
                  .UnknownInput(DT_FLOAT, {2, -1, 4})
                  .UnknownInput(DT_INT32, {-1, 3, 1})
                  .InferShape(),
              ShapeIs("[?,3,?,4]"));
}

// Returns `tensor` after applying f to each element of the updates.
Tensor ScatterReference(const Tensor& tensor, const std::vector<int64_t>& rows,
                        const Tensor& updates, absl::FunctionRef<double(double, double)> f) {
  const DataType dtype = tensor.dtype();
  const auto doubles = [](const Tensor& t) {
    return *OpTester("Cast").Input(t).Attr("DstT", DT_DOUBLE).RunOne();
  };
  const Tensor to = doubles(tensor);
  const Tensor from = doubles(updates);
  std::vector<double> values(to.flat<double>().begin(), to.flat<double>().end());
  const int64_t columns = tensor.dim_size(1);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      double& value = values[rows[i] * columns + c];
      value = f(value, from.flat<double>()(i * columns + c));
    }
  }
  return FromDoubles(dtype, tensor.shape(), values);
}

TEST(TensorScatter, AppliesUpdatesInOrderInEveryNumberType) {
  const std::vector<int64_t> rows = {3, 0, 3, 1, 3};
  const struct {
    const char* op;
    double (*f)(double, double);
    bool orders = false;
  } ops[] = {
      {"TensorScatterUpdate", [](double, double b) { return b; }},
      {"TensorScatterAdd", [](double a, double b) { return a + b; }},
      {"TensorScatterSub", [](double a, double b) { return a - b; }},
      {"TensorScatterMin", [](double a, double b) { return std::min(a, b); }, true},
      {"TensorScatterMax", [](double a, double b) { return std::max(a, b); }, true},
      {"ScatterNdNonAliasingAdd", [](double a, double b) { return a + b; }},
  };
  const auto test = [&](auto tag) {
    const DataType dtype = DataTypeToEnum<typename decltype(tag)::type>::value;
    SCOPED_TRACE(DataTypeString(dtype));
    // Integers are exact as 16-bit floats. They are large enough for nonnegative differences.
    const auto whole = [](const Tensor& t) {
      return UnaryReference(t, [](double x) { return std::floor(x); });
    };
    const Tensor tensor = whole(RandomTensor(dtype, {4, 3}, 60, 90));
    const Tensor updates = whole(RandomTensor(dtype, {5, 3}, 0, 12, 7));
    // Updates for minima and maxima have the magnitude of the tensor's elements.
    const Tensor bounds = whole(RandomTensor(dtype, {5, 3}, 60, 90, 8));
    for (const auto& op : ops) {
      SCOPED_TRACE(op.op);
      const Tensor& from = op.orders ? bounds : updates;
      EXPECT_THAT(TensorScatter(op.op, tensor, AsTensor<int64_t>(rows, {5, 1}), from).RunOne(),
                  TensorEq(ScatterReference(tensor, rows, from, op.f)));
    }
    EXPECT_THAT(
        ScatterNd(AsTensor<int32_t>(rows, {5, 1}), updates, AsTensor<int32_t>({4, 3})).RunOne(),
        TensorEq(ScatterReference(*OpTester("ZerosLike").Input(tensor).RunOne(), rows, updates,
                                  [](double a, double b) { return a + b; })));
  };
  ForEachType(RealTypes(), test);
}

TEST(TensorScatter, UpdatesEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor all = DistinctTensor(dtype, {6, 5});
    // Elements of the slices [1,2] and [0,0] of a tensor [2,3,2].
    const Tensor tensor = *all.Slice(0, 4).Reshaped({20})->Slice(0, 12).Reshaped({2, 3, 2});
    const Tensor updates = *all.Slice(5, 6).Reshaped({5})->Slice(0, 4).Reshaped({2, 2});
    const Tensor flat = *all.Reshaped({30});
    EXPECT_THAT(TensorScatter("TensorScatterUpdate", tensor,
                              AsTensor<uint16_t>({1, 2, 0, 0}, {2, 2}), updates)
                    .RunOne(),
                TensorEq(Rearranged(flat, {2, 3, 2}, [](const std::vector<int64_t>& index) {
                  if (index[0] == 1 && index[1] == 2) return 25 + index[2];
                  if (index[0] == 0 && index[1] == 0) return 27 + index[2];
                  return (index[0] * 3 + index[1]) * 2 + index[2];
                })));
  }
}

// The expected values are results of TensorFlow 2.21.
TEST(TensorScatter, HasTheValuesOfTensorFlow) {
  EXPECT_THAT(ScatterNd(AsTensor<int32_t>({0, 2, 0}, {3, 1}), AsTensor<tstring>({"a", "b", "c"}),
                        AsTensor<int32_t>({3}))
                  .RunOne(),
              TensorEq(AsTensor<tstring>({"ac", "", "b"})));
  EXPECT_THAT(ScatterNd(AsTensor<int32_t>({0, 2, 0}, {3, 1}), AsTensor<bool>({true, true, true}),
                        AsTensor<int32_t>({3}))
                  .RunOne(),
              TensorEq(AsTensor<bool>({true, false, true})));
  EXPECT_THAT(
      TensorScatter("ScatterNdNonAliasingAdd", AsTensor<bool>({true, false, false}),
                    AsTensor<int32_t>({0, 2, 0}, {3, 1}), AsTensor<bool>({true, true, true}))
          .RunOne(),
      TensorEq(AsTensor<bool>({true, false, true})));
  const Tensor rows = AsTensor<int32_t>({0, 1, 2, 3}, {4, 1});
  EXPECT_THAT(TensorScatter("TensorScatterMin", AsTensor<float>({1, kNan, kNan, 1}), rows,
                            AsTensor<float>({kNan, 1, kNan, 0}))
                  .RunOne(),
              TensorEq(AsTensor<float>({1, kNan, kNan, 0})));
  EXPECT_THAT(TensorScatter("TensorScatterMax", AsTensor<float>({1, kNan, kNan, 1}), rows,
                            AsTensor<float>({kNan, 1, kNan, 2}))
                  .RunOne(),
              TensorEq(AsTensor<float>({1, kNan, kNan, 2})));
  EXPECT_THAT(
      TensorScatter("TensorScatterAdd", AsTensor<complex64>({{1, 1}}),
                    AsTensor<int32_t>({0, 0}, {2, 1}), AsTensor<complex64>({{1, 2}, {0, 3}}))
          .RunOne(),
      TensorEq(AsTensor<complex64>({{2, 6}})));
}

TEST(TensorScatter, ScattersWideRowsInParallel) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < 300; ++i) rows.push_back(i * i % 50);
  const Tensor tensor = Iota<int32_t>({50, 3000});
  const Tensor updates = Iota<int32_t>({300, 3000}, 5);
  EXPECT_THAT(
      TensorScatter("TensorScatterAdd", tensor, AsTensor<int64_t>(rows, {300, 1}), updates)
          .RunOne(),
      TensorEq(ScatterReference(tensor, rows, updates, [](double a, double b) { return a + b; })));
}

TEST(TensorScatter, TreatsIndicesOutOfRangeByThePolicy) {
  const Tensor indices = AsTensor<int32_t>({0, 5, 0}, {3, 1});
  const Tensor updates = AsTensor<float>({1, 2, 3});
  OpTester scatter = ScatterNd(indices, updates, AsTensor<int32_t>({3}));
  OpTester add = TensorScatter("TensorScatterAdd", AsTensor<float>({1, 1, 1}), indices, updates);
  EXPECT_THAT(scatter.Run(),
              StatusIs(kInvalidArgument, "indices[1] = [5] does not index into shape [3]"));
  EXPECT_THAT(add.Run(),
              StatusIs(kInvalidArgument, "indices[1] = [5] does not index into shape [3]"));
  EXPECT_THAT(scatter.Attr("bad_indices_policy", "IGNORE").RunOne(),
              TensorEq(AsTensor<float>({4, 0, 0})));
  EXPECT_THAT(add.Attr("bad_indices_policy", "IGNORE").RunOne(),
              TensorEq(AsTensor<float>({5, 1, 1})));
  EXPECT_THAT(TensorScatter("TensorScatterUpdate", Tensor(DT_FLOAT, {2, 0}),
                            AsTensor<int32_t>({2}, {1, 1}), Tensor(DT_FLOAT, {1, 0}))
                  .Run(),
              StatusIs(kInvalidArgument, HasSubstr("indices[0] = [2] does not index into shape")));
}

TEST(TensorScatter, ScattersScalarsAndEmptyTensors) {
  EXPECT_THAT(TensorScatter("TensorScatterAdd", AsScalar<float>(1), Tensor(DT_INT32, {2, 0}),
                            AsTensor<float>({2, 3}))
                  .RunOne(),
              TensorEq(AsScalar<float>(6)));
  EXPECT_THAT(TensorScatter("TensorScatterUpdate", Tensor(DT_FLOAT, {0, 2}),
                            Tensor(DT_INT32, {0, 1}), Tensor(DT_FLOAT, {0, 2}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
}

TEST(TensorScatter, RejectsBadShapes) {
  const Tensor tensor = Iota<float>({2, 3});
  const Tensor indices = AsTensor<int32_t>({0}, {1, 1});
  ExpectErrors({
      {"updates", TensorScatter("TensorScatterSub", tensor, indices, Iota<float>({1, 2})),
       "updates has shape [1,2], expected [1,3], by indices of shape [1,1] and tensor of shape "
       "[2,3]"},
      {"scalar", TensorScatter("TensorScatterAdd", tensor, AsScalar<int32_t>(0), Iota<float>({3})),
       "Shape must be at least rank 1 but is rank 0: indices has shape []"},
      {"deep",
       TensorScatter("TensorScatterMin", tensor, AsTensor<int32_t>({0, 0, 0}, {1, 3}),
                     Iota<float>({1})),
       "must be at most the rank of tensor"},
      {"shape", ScatterNd(indices, Iota<float>({1}), AsTensor<int32_t>({-1})),
       "shape: dimension -1 of shape [?] is negative"},
      {"shape and updates", ScatterNd(indices, Iota<float>({2}), AsTensor<int32_t>({3})),
       "updates has shape [2], expected [1]"},
  });
  EXPECT_THAT(
      TensorScatter("TensorScatterAdd", AsTensor<bool>({true}), indices, AsTensor<bool>({true}))
          .MakeKernel(),
      StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(InplaceOps, ApplyUpdatesInOrder) {
  const auto inplace = [](const char* op) {
    return OpTester(op)
        .Input<float>({1, 2, 3, 4}, {2, 2})
        .Input<int32_t>({3, -1})
        .Input<float>({10, 20, 1, 2}, {2, 2});
  };
  // Row indices are taken modulo 2, like in TensorFlow.
  EXPECT_THAT(inplace("InplaceUpdate").RunOne(), TensorEq(AsTensor<float>({1, 2, 1, 2}, {2, 2})));
  EXPECT_THAT(inplace("InplaceAdd").RunOne(), TensorEq(AsTensor<float>({1, 2, 14, 26}, {2, 2})));
  EXPECT_THAT(inplace("InplaceSub").RunOne(), TensorEq(AsTensor<float>({1, 2, -8, -18}, {2, 2})));
  EXPECT_THAT(OpTester("InplaceUpdate")
                  .Input<tstring>({"a", "b"})
                  .Input<int32_t>({0})
                  .Input<tstring>({"c"})
                  .RunOne(),
              TensorEq(AsTensor<tstring>({"c", "b"})));
  EXPECT_THAT(OpTester("InplaceAdd")
                  .Input(Tensor(DT_FLOAT, {0}))
                  .Input<int32_t>({0})
                  .Input<float>({1})
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0})));
}

TEST(InplaceOps, RejectBadShapes) {
  const Tensor x = Iota<float>({2, 2});
  ExpectErrors({
      {"i", OpTester("InplaceAdd").Input(x).Input(AsScalar<int32_t>(0)).Input(x),
       "Shape must be rank 1 but is rank 0: i has shape []"},
      {"v", OpTester("InplaceSub").Input(x).Input<int32_t>({0}).Input(x),
       "v has shape [2,2], expected [1,2], by x of shape [2,2] and i of shape [1]"},
      {"x",
       OpTester("InplaceUpdate").Input(AsScalar<float>(0)).Input<int32_t>({0}).Input<float>({1}),
       "Shape must be at least rank 1 but is rank 0: x has shape []"},
  });
}

// Empty index tuples take no memory, so there may be any number of them.
TEST(GatherNd, AcceptsAnyNumberOfEmptyTuples) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const Tensor nothing(DT_FLOAT, {0});
  for (const TensorShape& indices : {TensorShape{kHuge, 0}, TensorShape{kHuge, 5, 0}}) {
    SCOPED_TRACE(indices.DebugString());
    const Tensor no_indices(DT_INT32, indices);
    const Tensor no_updates(DT_FLOAT, indices);
    // Skips shape inference, which rejects [2^62,5,?] as too large.
    const auto output = [](OpTester tester) {
      const auto outputs = tester.RunOnThreads(1);
      GRADFLOW_EXPECT_OK(outputs.status());
      return outputs.ok() ? (*outputs)[0] : Tensor();
    };
    EXPECT_THAT(output(GatherNd(nothing, no_indices)), TensorEq(no_updates));
    EXPECT_THAT(output(ScatterNd(no_indices, no_updates, AsTensor<int32_t>({0}))),
                TensorEq(nothing));
    EXPECT_THAT(output(TensorScatter("TensorScatterAdd", nothing, no_indices, no_updates)),
                TensorEq(nothing));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
