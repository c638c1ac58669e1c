// Compares and hashes GraphDefs and NodeDefs. Ignores the order of nodes and of control inputs, and
// the encoding of tensors.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_EQUAL_GRAPH_DEF_H_
#define GRADFLOW_COMPAT_CORE_UTIL_EQUAL_GRAPH_DEF_H_

#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/graph_def_util.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

struct EqualGraphDefOptions {
  // Ignores attributes whose names begin with '_'.
  bool ignore_internal_attrs = true;
};

// Return true if both are equal. Otherwise, write the first difference to *diff unless it is null.
bool EqualGraphDef(const GraphDef& actual, const GraphDef& expected, std::string* diff,
                   const EqualGraphDefOptions& options = {});
bool EqualNodeDef(const NodeDef& actual, const NodeDef& expected, std::string* diff,
                  const EqualGraphDefOptions& options = {});
bool EqualRepeatedNodeDef(const protobuf::RepeatedPtrField<NodeDef>& actual,
                          const protobuf::RepeatedPtrField<NodeDef>& expected, std::string* diff,
                          const EqualGraphDefOptions& options = {});

// Hashes. Values that are equal by the functions above have equal hashes.
uint64 GraphDefHash(const GraphDef& gdef, const EqualGraphDefOptions& options = {});
uint64 NodeDefHash(const NodeDef& ndef, const EqualGraphDefOptions& options = {});
uint64 RepeatedNodeDefHash(const protobuf::RepeatedPtrField<NodeDef>& ndefs,
                           const EqualGraphDefOptions& options = {});

}  // namespace tensorflow

// Expects equal GraphDefs.
#define TF_EXPECT_GRAPH_EQ(expected, actual)                                   \
  do {                                                                         \
    std::string gradflow_diff;                                                 \
    EXPECT_TRUE(::tensorflow::EqualGraphDef(actual, expected, &gradflow_diff)) \
        << gradflow_diff << "\nExpected:\n"                                    \
        << ::tensorflow::SummarizeGraphDef(expected) << "\nActual:\n"          \
        << ::tensorflow::SummarizeGraphDef(actual);                            \
  } while (false)

#endif  // GRADFLOW_COMPAT_CORE_UTIL_EQUAL_GRAPH_DEF_H_
