// Lists the nodes that the passes of a plan have added, and why nodes compute in floats.
#ifndef GRADFLOW_TESTS_RUNTIME_PLAN_PLAN_LABELS_H_
#define GRADFLOW_TESTS_RUNTIME_PLAN_PLAN_LABELS_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/plan/plan_report.h"

namespace gradflow {

// Returns the added nodes of a run that feeds `feed`: the op, and the ops that it replaces, such as
// "FusedConv2D(Conv2D, BiasAdd)".
inline std::vector<std::string> PlanLabels(const Scope& scope, const Output& feed,
                                           const std::vector<Output>& fetches,
                                           const PlanOptions& options) {
  PlanNames names;
  names.feeds = {feed.name()};
  for (const Output& fetch : fetches) names.fetches.push_back(fetch.name());
  KernelCache kernels;
  const auto plan = Plan::Make(*scope.graph(), names, &kernels, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> labels;
  for (int i = 0; plan.ok() && i < (*plan)->num_nodes(); ++i) {
    const PlanNodeLabel* const label = (*plan)->label(i);
    if (label == nullptr) continue;
    const auto op = [](std::string* out, const PlanOrigin& origin) {
      absl::StrAppend(out, origin.node->type_string());
    };
    labels.push_back(absl::StrCat(label->op, "(", absl::StrJoin(label->origins, ", ", op), ")"));
  }
  return labels;
}

// Returns the nodes that integer inference leaves in float: "name: reason".
inline std::vector<std::string> InFloat(const PlanReport& report) {
  std::vector<std::string> texts;
  for (const PlanReport::Change& change : report.in_float) {
    texts.push_back(absl::StrCat(change.name, ": ", absl::StrJoin(change.origins, ", ")));
  }
  return texts;
}

}  // namespace gradflow

#endif  // GRADFLOW_TESTS_RUNTIME_PLAN_PLAN_LABELS_H_
