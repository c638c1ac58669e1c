// Ops with inputs and attributes as rows of text, for tests of many ops:
//
//   Tile | Tmultiples=DT_INT32 | float[2,2]; int32[2]={1, 2}
//
// Attributes are "name=value; ..." in protobuf text format. Attributes that follow from the inputs
// are left out. Inputs are "type[shape]=value" for equal elements, "type[shape]={value, ...}", or
// "type[shape]" for the elements 0.1, 0.2, ... (0, 1, ... for integers). Complex numbers are
// "real:imaginary". Strings may be in quotes, with the escapes of C. In quotes, separators must be
// escaped: \54 is ',' in octal. "list:" before a tensor stands for the list of its rows, "lists:"
// for a vector of such lists, one for each row. "table:keys/values" stands for a hash table with
// these entries, which is not initialized if there are none; "mutable:keys/values" for a mutable
// table. "optional:" before a tensor stands for an optional value that holds it, and "ragged:" for
// variants that hold its rows. An input that is a variable has the given value; a TensorArray has
// its rows as elements, and a stack has it as its element. A communicator has it as its key.
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

// Sets the attributes of a row on *node: the given ones, and the ones inferred from the inputs.
void SetRowAttrs(const std::string& op, const std::string& attrs, const std::vector<Tensor>& inputs,
                 NodeDef* node);

// Adds a node `name` of the op, and a node `name`/i0, ... for each input. The inputs are constants,
// or placeholders whose values are added to *feeds.
void AddOpRow(const std::string& name, const std::string& op, const std::string& attrs,
              const std::vector<Tensor>& inputs, Knowledge knowledge, GraphDef* graph,
              std::vector<std::pair<std::string, Tensor>>* feeds);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_OP_ROWS_H_
