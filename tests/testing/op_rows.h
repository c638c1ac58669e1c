// Ops with inputs and attributes as rows of text, for tests of many ops:
//
//   Tile | Tmultiples=DT_INT32 | float[2,2]; int32[2]={1, 2}
//
// Attributes are "name=value; ..." in protobuf text format, without those inferred from the inputs.
// Inputs are "type[shape]=value" for equal elements, "type[shape]={value, ...}", or "type[shape]"
// for elements 0.1, 0.2, ... (0, 1, ... for integers). Complex numbers are "real:imaginary".
// Strings may be in quotes, with the escapes of C; there separators are escapes: 54 is ',' in
// octal.
#ifndef GRADFLOW_TESTS_TESTING_OP_ROWS_H_
#define GRADFLOW_TESTS_TESTING_OP_ROWS_H_

#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::testing {

// Returns the lines of a file that are neither empty nor comments, split at '|'.
std::vector<std::vector<std::string>> ReadRows(const std::string& path);

// Parses an input. Errors fail the test.
Tensor ParseTensor(const std::string& text);
std::vector<Tensor> ParseTensors(const std::string& text);

// The properties of inputs that shape inference knows.
enum class Knowledge { kValues, kRanks, kNothing };

// Sets the attributes of a row on *node, as text and as inferred from the inputs.
void SetRowAttrs(const std::string& op, const std::string& attrs, const std::vector<Tensor>& inputs,
                 NodeDef* node);

// Adds a node `name` of the op and one for each input, `name`/i0, ...: constants, or placeholders
// whose values are added to *feeds.
void AddOpRow(const std::string& name, const std::string& op, const std::string& attrs,
              const std::vector<Tensor>& inputs, Knowledge knowledge, GraphDef* graph,
              std::vector<std::pair<std::string, Tensor>>* feeds);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_OP_ROWS_H_
