// FakeInput: a placeholder for inputs of a node, in tests that create a NodeDef without a graph.
//
//   NodeDefBuilder("op", "AddN").Input(FakeInput(2, DT_FLOAT)).Finalize(&node_def)
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FAKE_INPUT_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FAKE_INPUT_H_

#include <initializer_list>
#include <optional>

#include "tensorflow/core/framework/types.h"

namespace tensorflow {

// The number and types of the inputs of an argument, unless attributes determine them. A single
// type applies to all inputs.
struct FakeInputs {
  std::optional<int> count;
  std::optional<DataTypeVector> types;
};

inline FakeInputs FakeInput() { return {}; }
// One input of type `dtype`, or a list of them whose length an attribute determines.
inline FakeInputs FakeInput(DataType dtype) { return {std::nullopt, DataTypeVector{dtype}}; }
// A list of n inputs whose type an attribute determines.
inline FakeInputs FakeInput(int n) { return {n, std::nullopt}; }
inline FakeInputs FakeInput(int n, DataType dtype) { return {n, DataTypeVector{dtype}}; }
// A list of inputs of the given types.
inline FakeInputs FakeInput(DataTypeSlice types) {
  return {static_cast<int>(types.size()), DataTypeVector(types.begin(), types.end())};
}
inline FakeInputs FakeInput(std::initializer_list<DataType> types) {
  return FakeInput(DataTypeSlice(types.begin(), types.size()));
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FAKE_INPUT_H_
