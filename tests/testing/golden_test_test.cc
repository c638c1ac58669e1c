// Tests of golden cases: parsing their files, running and updating them.
#include "gradflow/testing/golden_test.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace testing {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(GoldenFileName, ConvertsNamesBothWays) {
  EXPECT_EQ(GoldenFileName("x"), "x.npy");
  EXPECT_EQ(GoldenFileName("layer/grad:2"), "layer/grad@2.npy");
  EXPECT_THAT(GoldenTensorName("layer/grad@2.npy"), IsOkAndHolds(std::string("layer/grad:2")));
  // Alternative file names, and an explicit output 0.
  EXPECT_THAT(GoldenTensorName("grad:2.npy"), IsOkAndHolds(std::string("grad:2")));
  EXPECT_THAT(GoldenTensorName("x@0.npy"), IsOkAndHolds(std::string("x")));
  for (const char* bad : {"x", ".npy", "^x.npy", "x@y.npy", "@1.npy"}) {
    EXPECT_THAT(GoldenTensorName(bad),
                StatusIs(kInvalidArgument, HasSubstr("is not named like a tensor")))
        << bad;
  }
}

TEST(ParseGoldenTolerances, ParsesTolerancesForAllAndForSome) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenTolerances all,
                                ParseGoldenTolerances("# for the accelerator\n"
                                                      "rtol 1e-3 atol 0.5  # both\n"
                                                      "\n"
                                                      "grad:0 ulps 4\n"
                                                      "grad:1 rtol 1e-2\r\n"
                                                      "mask exact\n"));
  ASSERT_EQ(all.by_name.size(), 4);
  EXPECT_EQ(all.by_name.at("").DebugString(), "within 0.5 + 0.001 * |expected|");
  EXPECT_EQ(all.by_name.at("grad").DebugString(), "within 4 ulps");
  EXPECT_EQ(all.by_name.at("grad:1").DebugString(), "within 0 + 0.01 * |expected|");
  EXPECT_TRUE(all.by_name.at("mask").is_exact());
}

TEST(ParseGoldenTolerances, ReportsTheInvalidLine) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"exact\nrtol", "line 2: expected"},
      {"rtol nan", "line 1: 'nan' is not a tolerance"},
      {"rtol -1", "line 1: '-1' is not a tolerance"},
      {"ulps 1.5", "line 1: expected"},
      {"ulps -1", "line 1: '-1' is not a tolerance"},
      {"ulps 1 rtol 2", "line 1: expected"},
      {"ftol 1", "line 1: expected"},
      {"rtol 1 rtol 2", "line 1: 'rtol' appears twice"},
      {"x ulps 1\nx:0 ulps 2", "line 2: 'x' has a tolerance already"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ParseGoldenTolerances(c.text), StatusIs(kInvalidArgument, StartsWith(c.error)))
        << c.text;
  }
}

// A case with y = 2 x, and with a gradient op of three outputs in the same graph.
class GoldenCaseTest : public FolderFixture {
 protected:
  void SetUp() override { MakeCase("case"); }

  void MakeCase(const std::string& name) {
    const Scope root = Scope::NewRootScope();
    const Output x = ops::Placeholder(root.WithOpName("in/x"), DT_FLOAT);
    ops::Mul(root.WithOpName("y"), x, ops::Const(root.WithOpName("two"), 2.0f));
    ops::FakeQuantWithMinMaxVarsGradient(root.WithOpName("grad"), x, x, -1.0f, 1.0f);
    GraphDef graph;
    GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
    for (const char* part : {"/feeds/in", "/expected"}) {
      fs::create_directories(folder() + "/" + name + part);
    }
    GRADFLOW_ASSERT_OK(WriteGraphDef(File(name + "/graph.pbtxt"), graph));
    GRADFLOW_ASSERT_OK(WriteNpy(File(name + "/feeds/in/x.npy"), AsTensor<float>({1, -3})));
  }

  void Expect(const std::string& file, const Tensor& tensor) {
    GRADFLOW_ASSERT_OK(WriteNpy(File("case/expected/" + file), tensor));
  }
};

TEST_F(GoldenCaseTest, ComparesExpectedOutputs) {
  Expect("y.npy", AsTensor<float>({2, -6}));
  Expect("grad@1.npy", AsScalar<float>(-3));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenResult good, RunGoldenCase(File("case")));
  EXPECT_EQ(good.outputs, 2);
  EXPECT_TRUE(good.ok()) << good.Text();

  Expect("y.npy", AsTensor<float>({2, -6.5f}));
  Expect("grad@1.npy", AsTensor<double>({-3}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenResult bad, RunGoldenCase(File("case")));
  EXPECT_EQ(bad.Text(),
            "grad:1: type is float, expected double\n"
            "y: 1 of 2 elements differs\n  [1]: -6, expected -6.5 (difference 0.5, 1048576 ulps)");
}

TEST_F(GoldenCaseTest, TakesTolerancesFromItsFileAndFromOptions) {
  Expect("y.npy", AsTensor<float>({2, -6.5f}));
  WriteFile(File("case/tolerance.txt"), "y atol 0.5\n");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenResult near, RunGoldenCase(File("case")));
  EXPECT_TRUE(near.ok()) << near.Text();
  GoldenOptions options;
  options.tolerance = Tolerance::Ulps(5);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenResult far, RunGoldenCase(File("case"), options));
  EXPECT_FALSE(far.ok());
  WriteFile(File("case/tolerance.txt"), "z atol 0.5\n");
  EXPECT_THAT(RunGoldenCase(File("case")),
              StatusIs(kInvalidArgument,
                       AllOf(HasSubstr(File("case")),
                             HasSubstr("tolerance.txt: output 'z' is not in expected/"))));
}

TEST_F(GoldenCaseTest, RefusesANegativeNumberOfUlps) {
  Expect("y.npy", AsTensor<float>({2, -6.5f}));
  GoldenOptions options;
  options.tolerance = Tolerance::Ulps(-1);
  EXPECT_THAT(RunGoldenCase(File("case"), options),
              StatusIs(kInvalidArgument, HasSubstr("a tolerance of -1 ulps is negative")));
}

TEST_F(GoldenCaseTest, KeepsBfloat16AsBits) {
  const Scope root = Scope::NewRootScope();
  ops::Neg(root.WithOpName("y"), ops::Placeholder(root.WithOpName("x"), DT_BFLOAT16));
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  fs::create_directories(File("bf16/feeds"));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("bf16/graph.pb"), graph));
  GRADFLOW_ASSERT_OK(WriteNpy(File("bf16/feeds/x.npy"), AsTensor<bfloat16>({1, 2.5f})));
  GRADFLOW_ASSERT_OK(UpdateGoldenCase(File("bf16")));
  EXPECT_THAT(ReadNpy(File("bf16/expected/y.npy")), TensorEq(AsTensor<uint16_t>({0xbf80, 0xc020})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenResult result, RunGoldenCase(File("bf16")));
  EXPECT_TRUE(result.ok()) << result.Text();
}

TEST_F(GoldenCaseTest, UpdateWritesOutputsThatNoNodeUses) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenResult written, UpdateGoldenCase(File("case")));
  EXPECT_EQ(written.outputs, 4);
  EXPECT_THAT(ReadNpy(File("case/expected/y.npy")), TensorEq(AsTensor<float>({2, -6})));
  EXPECT_THAT(ReadNpy(File("case/expected/grad.npy")), IsOk());
  EXPECT_THAT(ReadNpy(File("case/expected/grad@2.npy")), TensorEq(AsScalar<float>(0)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenResult result, RunGoldenCase(File("case")));
  EXPECT_EQ(result.outputs, 4);
  EXPECT_TRUE(result.ok()) << result.Text();
}

TEST_F(GoldenCaseTest, UpdateWritesOnlyExpectedOutputs) {
  Expect("y.npy", AsScalar<float>(0));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GoldenResult written, UpdateGoldenCase(File("case")));
  EXPECT_EQ(written.outputs, 1);
  EXPECT_THAT(ReadNpy(File("case/expected/y.npy")), TensorEq(AsTensor<float>({2, -6})));
  EXPECT_FALSE(FileExists(File("case/expected/grad.npy")));
}

TEST_F(GoldenCaseTest, UpdateWritesAllOrNothing) {
  Expect("a.npy", AsScalar<float>(0));
  EXPECT_THAT(UpdateGoldenCase(File("case")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadNpy(File("case/expected/a.npy")), TensorEq(AsScalar<float>(0)));
  // The last file cannot be written, because a folder has its name.
  fs::remove(File("case/expected/a.npy"));
  GRADFLOW_ASSERT_OK(UpdateGoldenCase(File("case")).status());
  std::vector<fs::path> written;
  for (const auto& entry : fs::directory_iterator(File("case/expected"))) {
    written.push_back(entry.path());
  }
  ASSERT_GE(written.size(), 2u);
  for (const fs::path& folder : written) {
    for (const fs::path& file : written) fs::remove_all(file);
    fs::create_directories(folder / "full");
    EXPECT_THAT(UpdateGoldenCase(File("case")),
                StatusIs(kInvalidArgument, HasSubstr(folder.filename().string())));
    const auto left = fs::directory_iterator(File("case/expected"));
    EXPECT_EQ(std::distance(begin(left), end(left)), 1);
  }
}

TEST_F(GoldenCaseTest, NamesTheErrorOfACase) {
  EXPECT_THAT(RunGoldenCase(File("case")), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                    HasSubstr("expected/ has no .npy file")));
  Expect("z.npy", AsScalar<float>(0));
  EXPECT_THAT(RunGoldenCase(File("case")),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(StartsWith("'" + File("case") + "': "), HasSubstr("'z'"))));
  EXPECT_THAT(RunGoldenCase(File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("neither graph.pb nor")));
  fs::remove(File("case/expected/z.npy"));
  Expect("y.npy", AsScalar<float>(0));
  WriteFile(File("case/feeds/in/x.npy"), "no array");
  EXPECT_THAT(RunGoldenCase(File("case")), StatusIs(kInvalidArgument, HasSubstr("in/x.npy")));
  WriteFile(File("case/graph.pbtxt"), "node {");
  EXPECT_THAT(RunGoldenCase(File("case")), StatusIs(kInvalidArgument, HasSubstr("graph.pbtxt")));
}

TEST_F(GoldenCaseTest, KeepsTheDeadlineOfTheImport) {
  Expect("y.npy", AsTensor<float>({2, -6}));
  for (const int64_t timeout_ms : {0, 100'000}) {
    GoldenOptions options;
    options.timeout_ms = timeout_ms;
    options.graph_limits.deadline = std::chrono::steady_clock::time_point();
    EXPECT_THAT(RunGoldenCase(File("case"), options),
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         HasSubstr("the time for the import is over")));
  }
}

absl::Status FailOnceMade(KernelContext&) { return errors::Internal("made"); }

// Kernels are made when a run is planned.
TEST_F(GoldenCaseTest, TheTimeLimitCoversPlanning) {
  Registry registry;
  registry.Op("Slow").Stateful().Output("y: float");
  registry.Kernel("Slow", [](const KernelConstruction& construction) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return MakeFunctionKernel<FailOnceMade>(construction);
  });
  fs::remove_all(File("case/feeds"));
  WriteFile(File("case/graph.pbtxt"), "node { name: \"y\" op: \"Slow\" }");
  Expect("y.npy", AsScalar<float>(1));
  GoldenOptions options;
  EXPECT_THAT(RunGoldenCase(File("case"), options, registry),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("made")));
  options.timeout_ms = 50;
  EXPECT_THAT(RunGoldenCase(File("case"), options, registry),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("--timeout")));
}

TEST_F(GoldenCaseTest, FindsCasesAtAnyDepth) {
  MakeCase("more/b");
  MakeCase("more/a");
  EXPECT_THAT(FindGoldenCases(folder()),
              IsOkAndHolds(ElementsAre(File("case"), File("more/a"), File("more/b"))));
  EXPECT_THAT(FindGoldenCases(File("case")), IsOkAndHolds(ElementsAre(File("case"))));
  EXPECT_THAT(FindGoldenCases(File("case/feeds")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("contain graph.pb")));
  EXPECT_THAT(FindGoldenCases(File("none")), StatusIs(absl::StatusCode::kNotFound));
}

// A link to a folder with cases, and links that form a cycle.
TEST_F(GoldenCaseTest, FindsNoCasesBehindLinks) {
  MakeCase("outside/a");
  fs::create_directories(File("inside/b"));
  fs::create_directory_symlink(File("outside"), File("inside/link"));
  fs::create_directory_symlink(File("outside/a"), File("inside/case"));
  fs::create_directory_symlink(File("inside"), File("inside/b/cycle"));
  EXPECT_THAT(FindGoldenCases(File("inside")), StatusIs(absl::StatusCode::kNotFound));
  // The caller may name a link.
  EXPECT_THAT(FindGoldenCases(File("inside/link")),
              IsOkAndHolds(ElementsAre(File("inside/link/a"))));
}

TEST_F(GoldenCaseTest, FindsCasesBeforeTheDeadline) {
  GoldenOptions options;
  options.graph_limits.deadline = std::chrono::steady_clock::time_point::min();
  EXPECT_THAT(FindGoldenCases(folder(), options),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("--timeout")));
}

TEST_F(GoldenCaseTest, LimitsTheNumberOfFiles) {
  Expect("y.npy", AsTensor<float>({2, -6}));
  fs::create_directories(File("case/feeds/many"));
  for (int i = 0; i < 10000; ++i) WriteFile(File("case/feeds/many/" + std::to_string(i)), "");
  EXPECT_THAT(RunGoldenCase(File("case")),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("/feeds' has more than 10000 files and folders")));
}

// The targets of the links are valid files, which would make the case pass.
TEST_F(GoldenCaseTest, ReadsNoFilesOutside) {
  Expect("y.npy", AsTensor<float>({2, -6}));
  WriteFile(File("case/tolerance.txt"), "exact");
  EXPECT_THAT(RunGoldenCase(File("case")), IsOk());
  for (const char* name :
       {"graph.pbtxt", "tolerance.txt", "feeds/in/x.npy", "expected/y.npy", "feeds", "expected"}) {
    SCOPED_TRACE(name);
    const std::string path = File(std::string("case/") + name);
    fs::rename(path, File("outside"));
    for (const std::string& target : {File("outside"), std::string("../outside")}) {
      // A relative link starts at its own folder.
      if (target[0] == '.' && std::string(name).find('/') != std::string::npos) continue;
      fs::create_symlink(target, path);
      EXPECT_THAT(RunGoldenCase(File("case")),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr(absl::StrCat("'", name, "' is a link that leaves the case"))));
      fs::remove(path);
    }
    // A link that stays within the case is followed.
    fs::rename(File("outside"), File("case/inside"));
    fs::create_symlink(File("case/inside"), path);
    EXPECT_THAT(RunGoldenCase(File("case")), IsOk());
    fs::remove(path);
    fs::rename(File("case/inside"), path);
  }
}

TEST_F(GoldenCaseTest, MakesNamesForGoogleTest) {
  MakeCase("more/a-b");
  MakeCase("more/a_b");
  std::vector<std::string> names;
  for (const GoldenCase& golden : GoldenCases(folder())) names.push_back(golden.name);
  EXPECT_THAT(names, ElementsAre("case", "more_a_b", "more_a_b_2"));
  EXPECT_EQ(GoldenCases(File("case/"))[0].name, "case");
  EXPECT_EQ(GoldenCases(File("none"))[0].name, "cannot_be_listed");
}

TEST_F(GoldenCaseTest, MakesUniqueNames) {
  for (const char* name : {"a/b", "a_b", "a_b_2"}) MakeCase(name);
  std::vector<std::string> names;
  for (const GoldenCase& golden : GoldenCases(folder())) names.push_back(golden.name);
  EXPECT_THAT(names, ElementsAre("a_b", "a_b_2", "a_b_2_2", "case"));
}

// ---- The fixture with the cases of tests/data ----

TEST_P(GoldenTest, GivesWhatIsExpected) { RunAndCompare(); }
INSTANTIATE_TEST_SUITE_P(Data, GoldenTest,
                         ::testing::ValuesIn(GoldenCases(GRADFLOW_TEST_DATA_DIR "/golden_cases")),
                         GoldenCaseName);

}  // namespace
}  // namespace testing
}  // namespace gradflow
