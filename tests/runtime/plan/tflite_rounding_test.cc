// Tests that the rounding of TensorFlow Lite gives the bytes of TensorFlow Lite: of ops that
// tests/interop/tflite.py has recorded, and of formats and tables.
#include "gradflow/runtime/plan/tflite_rounding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/plan/plan_report.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "tests/runtime/plan/plan_labels.h"

namespace gradflow {
namespace {

using ::gradflow::testing::TensorEq;
using ::testing::IsEmpty;

// The recorded ops. Op NAME has constants NAME_x0_value, ... for the placeholders NAME_x0, ..., and
// NAME_expected for the first columns of the tensor NAME_integers.
struct RecordedOps {
  GraphDef graph;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> names;
  std::vector<Tensor> expected;
};

absl::StatusOr<RecordedOps> ReadRecordedOps() {
  RecordedOps ops;
  GRADFLOW_ASSIGN_OR_RETURN(ops.graph, ReadGraphDef(GRADFLOW_TFLITE_OPS));
  for (const NodeDef& node : ops.graph.node()) {
    absl::string_view name = node.name();
    const bool is_feed = absl::ConsumeSuffix(&name, "_value");
    if (!is_feed && !absl::ConsumeSuffix(&name, "_expected")) continue;
    Tensor value;
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, "value", &value));
    if (is_feed) {
      ops.feeds.emplace_back(std::string(name), value);
    } else {
      ops.names.emplace_back(name);
      ops.expected.push_back(value);
    }
  }
  return ops;
}

absl::StatusOr<std::vector<Tensor>> RunRecordedOps(const RecordedOps& ops, int threads) {
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  options.config.set_inter_op_parallelism_threads(threads);
  options.integer_inference = true;
  options.tflite_rounding = true;
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Make(options));
  GRADFLOW_RETURN_IF_ERROR(session->Create(ops.graph));
  std::vector<std::string> fetches;
  for (const std::string& name : ops.names) fetches.push_back(absl::StrCat(name, "_integers"));
  std::vector<Tensor> results;
  GRADFLOW_RETURN_IF_ERROR(session->Run(ops.feeds, fetches, {}, &results));
  return results;
}

// Expects TensorFlow Lite's results.
void ExpectRecorded(const RecordedOps& ops, const std::vector<Tensor>& results) {
  ASSERT_EQ(results.size(), ops.expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& expected = ops.expected[i];
    const int64_t columns = expected.dim_size(1);
    ASSERT_EQ(results[i].dim_size(0), expected.dim_size(0)) << ops.names[i];
    ASSERT_GE(results[i].dim_size(1), columns) << ops.names[i];
    for (int64_t r = 0; r < expected.dim_size(0); ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_EQ(results[i].matrix<float>()(r, c), expected.matrix<float>()(r, c))
            << ops.names[i] << " [" << r << ", " << c << "]";
      }
    }
  }
}

TEST(TfLiteRounding, GivesTheBytesOfTensorFlowLite) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const RecordedOps ops, ReadRecordedOps());
  EXPECT_GE(ops.names.size(), 50);
  for (const int threads : {1, 2, 8}) {
    SCOPED_TRACE(threads);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results, RunRecordedOps(ops, threads));
    ExpectRecorded(ops, results);
  }
  for (const std::string& target : SimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(SetSimdTarget(target));
    const auto results = RunRecordedOps(ops, 1);
    SetSimdTarget("");
    GRADFLOW_ASSERT_OK(results.status());
    ExpectRecorded(ops, *results);
  }
}

TEST(TfLiteRounding, RecordedOpsComputeInIntegers) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const RecordedOps ops, ReadRecordedOps());
  Graph graph;
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, ops.graph, &graph));
  std::vector<std::string> feeds;
  for (const auto& [name, value] : ops.feeds) feeds.push_back(name);
  std::vector<std::string> fetches;
  for (const std::string& name : ops.names) fetches.push_back(absl::StrCat(name, "_integers"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const PlanReport report,
                                ReportPlan(graph, feeds, fetches, false, true, true));
  EXPECT_THAT(InFloat(report), IsEmpty());
}

TEST(TfLiteFormat, FollowsFromTheRangeInDouble) {
  struct Case {
    float min;
    float max;
    int32_t highest;
    int32_t zero_point;
    float scale;
  };
  for (const Case& c : {
           Case{0, 255, 255, 0, 1},
           Case{-128, 127, 255, 128, 1},
           Case{-1, 1, 255, 128, 2.0f / 255},
           // The zero point is just below 127.5 in double.
           Case{-7.799737f, 7.799737f, 255, 127, 0x1.f52408p-5f},
           Case{-1, 0, 255, 255, 1.0f / 255},
           // A narrow range.
           Case{-127, 127, 254, 127, 1},
           Case{0, 6, 255, 0, 6.0f / 255},
       }) {
    IntegerFormat format;
    format.min = c.min;
    format.max = c.max;
    format.highest = c.highest;
    const IntegerFormat found = TfLiteFormat(format);
    EXPECT_EQ(found.scale, c.scale) << c.min << " " << c.max;
    EXPECT_EQ(found.zero_point, c.zero_point) << c.min << " " << c.max;
    EXPECT_EQ(found.highest, c.highest);
  }
  // Formats without a range remain.
  IntegerFormat bytes;
  bytes.scale = 0.25f;
  EXPECT_TRUE(TfLiteFormat(bytes) == bytes);
  EXPECT_EQ(RangeScale(bytes), 0.25);
}

TEST(TfLiteSteps, RoundHalvesAwayFrom0) {
  IntegerFormat format;
  format.zero_point = 100;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Case {
    double number;
    int32_t steps;
  };
  for (const Case& c :
       {Case{1, 2}, Case{0.75, 2}, Case{1.25, 3}, Case{-0.75, -2}, Case{-1.25, -3}, Case{1000, 155},
        Case{-1000, -100}, Case{kInfinity, 155}, Case{-kInfinity, -100}, Case{std::nan(""), 0}}) {
    EXPECT_EQ(TfLiteSteps(c.number, 0.5, format), c.steps) << c.number;
  }
}

TEST(TfLiteRequantize, ConvertsAndClampsIntegers) {
  IntegerFormat from;
  from.zero_point = 10;
  from.scale = 0.5f;
  IntegerFormat to;
  to.zero_point = 20;
  to.scale = 0.25f;
  to.highest = 254;
  const IntegerTable table = TfLiteRequantize(from, to);
  EXPECT_EQ(table[10], 20);
  EXPECT_EQ(table[11], 22);
  EXPECT_EQ(table[0], 0);
  EXPECT_EQ(table[255], 254);
  // A clamp to [-1, 3] steps.
  const IntegerTable clamped = TfLiteRequantize(from, to, 2, -1, 3);
  EXPECT_EQ(clamped[9], 19);
  EXPECT_EQ(clamped[11], 22);
  EXPECT_EQ(clamped[12], 23);
}

}  // namespace
}  // namespace gradflow
