#include <filesystem>
#include <string>
#include <vector>

#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/checkpoint_edits.h"
#include "tests/testing/folder_fixture.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Text(const std::string& text) { return AsScalar<tstring>(text); }
Tensor Texts(const std::vector<std::string>& texts) {
  return AsTensor<tstring, std::vector<std::string>>(texts);
}

class CheckpointOpsTest : public FolderFixture {
 protected:
  // Writes the tensors "a" and "c", and two slices of "b".
  void Save(const std::string& prefix) {
    GRADFLOW_ASSERT_OK(OpTester("SaveV2")
                           .Input(Text(prefix))
                           .Input(Texts({"a", "b", "b", "c"}))
                           .Input(Texts({"", "2 2 0,1:-", "2 2 1,1:-", ""}))
                           .Input<float>({1, 2})
                           .Input<int32_t>({3, 4}, {1, 2})
                           .Input<int32_t>({5, 6}, {1, 2})
                           .Input<tstring>({"x"})
                           .Run());
  }
  OpTester Restore(const std::string& prefix, const std::vector<std::string>& names,
                   const std::vector<std::string>& slices, const DataTypeVector& types) {
    return OpTester("RestoreV2")
        .Input(Text(prefix))
        .Input(Texts(names))
        .Input(Texts(slices))
        .Attr("dtypes", types)
        .ShapeIsData();
  }
};

TEST_F(CheckpointOpsTest, RestoreV2ReadsWhatSaveV2Wrote) {
  Save(File("c"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto tensors,
                                Restore(File("c"), {"c", "b", "a", "b"}, {"", "", "", "2 2 -:1,1"},
                                        {DT_STRING, DT_INT32, DT_FLOAT, DT_INT32})
                                    .Run());
  EXPECT_THAT(tensors, ElementsAre(TensorEq(AsTensor<tstring>({"x"})),
                                   TensorEq(AsTensor<int32_t>({3, 4, 5, 6}, {2, 2})),
                                   TensorEq(AsTensor<float>({1, 2})),
                                   TensorEq(AsTensor<int32_t>({4, 6}, {2, 1}))));
  EXPECT_THAT(Restore(File("c"), {"d"}, {""}, {DT_FLOAT}).Run(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("has no tensor 'd'")));
  EXPECT_THAT(Restore(File("c"), {"a"}, {""}, {DT_INT32}).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tensor 'a' has type float, expected int32")));
  EXPECT_THAT(Restore(File("none"), {"a"}, {""}, {DT_FLOAT}).Run(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.index")));
  EXPECT_THAT(Restore(File("c"), {"a", "b"}, {""}, {DT_FLOAT}).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must have 1 elements")));
  EXPECT_THAT(OpTester("SaveV2")
                  .Input(Texts({File("c")}))
                  .Input(Texts({"a"}))
                  .Input(Texts({""}))
                  .Input<float>({1})
                  .Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Shape must be rank 0 but is rank 1: prefix has shape [1]")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const auto shapes,
      Restore(File("c"), {"a", "b"}, {"", "2 2 -:1,1"}, {DT_FLOAT, DT_INT32}).InferShapes());
  EXPECT_EQ(shapes[0].DebugString(), "<unknown>");
  EXPECT_EQ(shapes[1].DebugString(), "[2,1]");
}

TEST_F(CheckpointOpsTest, ReadsAndWritesTheOldFormat) {
  GRADFLOW_ASSERT_OK(OpTester("Save")
                         .Input(Text(File("o")))
                         .Input(Texts({"a", "b"}))
                         .Input<float>({1, 2})
                         .Input<int64_t>({3})
                         .Run());
  GRADFLOW_ASSERT_OK(OpTester("SaveSlices")
                         .Input(Text(File("s")))
                         .Input(Texts({"a"}))
                         .Input(Texts({"4 1,2"}))
                         .Input<float>({7, 8})
                         .Run());
  const auto restore = [&](const std::string& file, const std::string& name, DataType dtype) {
    return OpTester("Restore")
        .Input(Text(File(file)))
        .Input(Text(name))
        .Attr("dt", dtype)
        .ShapeIsData();
  };
  EXPECT_THAT(restore("o*", "a", DT_FLOAT).RunOne(), TensorEq(AsTensor<float>({1, 2})));
  EXPECT_THAT(
      restore("o", "b", DT_FLOAT).RunOne(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has type int64, expected float")));
  EXPECT_THAT(restore("o", "c", DT_FLOAT).RunOne(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(OpTester("RestoreSlice")
                  .Input(Text(File("s")))
                  .Input(Text("a"))
                  .Input(Text("4 2,1"))
                  .Attr("dt", DT_FLOAT)
                  .RunOne(),
              TensorEq(AsTensor<float>({8})));
  // RestoreV2 also reads the old format.
  EXPECT_THAT(Restore(File("o"), {"a"}, {""}, {DT_FLOAT}).RunOne(),
              TensorEq(AsTensor<float>({1, 2})));
  EXPECT_THAT(
      Restore(File("o"), {"b", "a", "a"}, {"", "2 1,1", ""}, {DT_INT64, DT_FLOAT, DT_FLOAT}).Run(),
      IsOkAndHolds(ElementsAre(TensorEq(AsTensor<int64_t>({3})), TensorEq(AsTensor<float>({2})),
                               TensorEq(AsTensor<float>({1, 2})))));
  EXPECT_THAT(Restore(File("o"), {"a", "c"}, {"", ""}, {DT_FLOAT, DT_FLOAT}).Run(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no tensor 'c'")));
}

// The slices have as many elements as the tensor, but they overlap.
TEST_F(CheckpointOpsTest, RejectsSlicesThatOverlap) {
  const auto save = [](const char* op, const std::string& path, const char* second) {
    return OpTester(op)
        .Input(Text(path))
        .Input(Texts({"a", "a"}))
        .Input(Texts({"4 0,2", second}))
        .Input<float>({1, 2})
        .Input<float>({3, 4})
        .Run()
        .status();
  };
  for (const char* op : {"SaveV2", "SaveSlices"}) {
    EXPECT_THAT(save(op, File("c"), "4 1,2"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("tensor 'a': slices '0,2' and '1,2' overlap")))
        << op;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
  GRADFLOW_ASSERT_OK(save("SaveV2", File("c"), "4 2,2"));
  GRADFLOW_ASSERT_OK(save("SaveSlices", File("o"), "4 2,2"));
  MoveSlice(File("c.index"), "a", 2, 1);
  MoveSlice(File("o"), "a", 2, 1);
  const auto overlap =
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("slices '0,2' and '1,2' overlap"));
  EXPECT_THAT(Restore(File("c"), {"a"}, {""}, {DT_FLOAT}).Run(), overlap);
  EXPECT_THAT(Restore(File("o"), {"a"}, {""}, {DT_FLOAT}).Run(), overlap);
  EXPECT_THAT(OpTester("Restore")
                  .Input(Text(File("o")))
                  .Input(Text("a"))
                  .Attr("dt", DT_FLOAT)
                  .ShapeIsData()
                  .RunOne(),
              overlap);
}

TEST_F(CheckpointOpsTest, MergedSlicesMustNotOverlap) {
  const auto save = [&](const std::string& name, const char* slice) {
    GRADFLOW_ASSERT_OK(OpTester("SaveV2")
                           .Input(Text(File(name)))
                           .Input(Texts({"a"}))
                           .Input(Texts({slice}))
                           .Input<float>({1, 2})
                           .Run());
  };
  save("p/1", "4 0,2");
  save("p/2", "4 1,2");
  EXPECT_THAT(
      OpTester("MergeV2Checkpoints")
          .Input(Texts({File("p/1"), File("p/2")}))
          .Input(Text(File("merged")))
          .Run(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("slices '0,2' and '1,2' overlap")));
  EXPECT_THAT(Restore(File("p/1"), {"a"}, {"4 0,2"}, {DT_FLOAT}).RunOne(),
              TensorEq(AsTensor<float>({1, 2})));
}

// OpTester also calls shape functions with values of unknown shape, like a graph imported without
// shapes. In this case, no check of the shape precedes the use of the value.
TEST_F(CheckpointOpsTest, RejectsSlicesOfAnyShape) {
  Save(File("c"));
  for (const Tensor& slice : {Texts({}), Texts({"2 1,1"}), Tensor(DT_STRING, {2, 0})}) {
    EXPECT_THAT(
        OpTester("RestoreSlice")
            .Input(Text(File("c")))
            .Input(Text("a"))
            .Input(slice)
            .Attr("dt", DT_FLOAT)
            .ShapeIsData()
            .Run(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(": shape_and_slice has shape [")));
  }
  EXPECT_THAT(
      OpTester("RestoreV2")
          .Input(Text(File("c")))
          .Input(Texts({"a"}))
          .Input(AsTensor<tstring>({"2 1,1"}, {1, 1}))
          .Attr("dtypes", DataTypeVector({DT_FLOAT}))
          .ShapeIsData()
          .Run(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("Shape must be rank 1 but is rank 2: shape_and_slices has shape [1,1]")));
}

TEST_F(CheckpointOpsTest, MergesCheckpoints) {
  Save(File("p/1"));
  GRADFLOW_ASSERT_OK(OpTester("SaveV2")
                         .Input(Text(File("p/2")))
                         .Input(Texts({"d"}))
                         .Input(Texts({""}))
                         .Input<float>({9})
                         .Run());
  const OpTester merge = OpTester("MergeV2Checkpoints")
                             .Input(Texts({File("p/1"), File("p/2")}))
                             .Input(Text(File("all")));
  GRADFLOW_ASSERT_OK(OpTester(merge).RunOnThreads(1));
  EXPECT_FALSE(std::filesystem::exists(File("p")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const auto tensors, Restore(File("all"), {"a", "d"}, {"", ""}, {DT_FLOAT, DT_FLOAT}).Run());
  EXPECT_THAT(tensors,
              ElementsAre(TensorEq(AsTensor<float>({1, 2})), TensorEq(AsTensor<float>({9}))));
  EXPECT_THAT(OpTester(merge).RunOnThreads(1), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(OpTester(merge).Attr("allow_missing_files", true).RunOnThreads(1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CheckpointOpsTest, FormatsShardedFilenames) {
  EXPECT_THAT(OpTester("ShardedFilename")
                  .Input(Text("w"))
                  .Input(AsScalar<int32_t>(3))
                  .Input(AsScalar<int32_t>(10))
                  .RunOne(),
              TensorEq(Text("w-00003-of-00010")));
  EXPECT_THAT(OpTester("ShardedFilespec").Input(Text("w")).Input(AsScalar<int32_t>(10)).RunOne(),
              TensorEq(Text("w-"
                            "?????"
                            "-of-00010")));
  EXPECT_THAT(OpTester("ShardedFilename")
                  .Input(Texts({"w"}))
                  .Input(AsScalar<int32_t>(3))
                  .Input(AsScalar<int32_t>(10))
                  .RunOne(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("basename")));
}

// The graph that TensorFlow's savers build.
TEST_F(CheckpointOpsTest, SavesAndRestoresVariables) {
  const Scope s = Scope::NewRootScope();
  const auto w = ops::VarHandleOp(s.WithOpName("w"), DT_FLOAT, {2});
  const auto v = ops::Variable(s.WithOpName("v"), {}, DT_FLOAT);
  const auto path = ops::Placeholder(s, DT_STRING);
  const auto init_w = ops::AssignVariableOp(s, w, {1.f, 2.f});
  const auto init_v = ops::Assign(s, v, 3.f);
  const auto save =
      ops::SaveV2(s, path, {"w", "v"}, {"", ""}, {ops::ReadVariableOp(s, w, DT_FLOAT), v});
  const auto restored = ops::RestoreV2(s, path, {"w", "v"}, {"", ""}, {DT_FLOAT, DT_FLOAT});
  const auto load_w = ops::AssignVariableOp(s, w, restored[0]);
  const auto load_v = ops::Assign(s, v, restored[1]);
  const auto read = ops::ReadVariableOp(s, w, DT_FLOAT);
  GRADFLOW_ASSERT_OK(s.status());
  ClientSession first(s);
  GRADFLOW_ASSERT_OK(first.Run({}, {}, {init_w, init_v.operation}, nullptr));
  GRADFLOW_ASSERT_OK(first.Run({{path, File("c")}}, {}, {save}, nullptr));
  ClientSession second(s);
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(second.Run({{path, File("c")}}, {}, {load_w, load_v.operation}, nullptr));
  GRADFLOW_ASSERT_OK(second.Run({read, v}, &values));
  EXPECT_THAT(values, ElementsAre(TensorEq(AsTensor<float>({1, 2})), TensorEq(AsScalar<float>(3))));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
