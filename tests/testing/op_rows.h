// Ops with their inputs and attributes as rows of text, for tests that run many of them:
//
//   Tile | Tmultiples=DT_INT32 | float[2,2]; int32[2]={1, 2}
//
// Attributes are "name=value; ..." in protobuf's text; those that follow from the inputs are left
// out. Inputs are "type[shape]=value" for all elements, "type[shape]={value, ...}", or
// "type[shape]" for the elements 0.1, 0.2, ... (of integers 0, 1, ...).
#ifndef GRADFLOW_TESTS_TESTING_OP_ROWS_H_
#define GRADFLOW_TESTS_TESTING_OP_ROWS_H_

#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::testing {

// The lines of a file that are neither empty nor comments, split at '|'.
std::vector<std::vector<std::string>> ReadRows(const std::string& path);

// Errors in rows fail the test.
Tensor ParseTensor(const std::string& text);
std::vector<Tensor> ParseTensors(const std::string& text);

// How much the graph knows of the inputs.
enum class Knowledge { kValues, kRanks, kNothing };

// Adds a node `name` of the op, and one for each input, `name`/i0 ...: constants, or placeholders
// whose values go to *feeds.
void AddOpRow(const std::string& name, const std::string& op, const std::string& attrs,
              const std::vector<Tensor>& inputs, Knowledge knowledge, GraphDef* graph,
              std::vector<std::pair<std::string, Tensor>>* feeds);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_OP_ROWS_H_
