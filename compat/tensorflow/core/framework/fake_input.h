// FakeInput: stands for inputs of a node in tests that make a NodeDef, not a graph.
//
//   NodeDefBuilder("op", "AddN").Input(FakeInput(2, DT_FLOAT)).Finalize(&node_def)
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FAKE_INPUT_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FAKE_INPUT_H_

#include <initializer_list>
#include <optional>

#include "tensorflow/core/framework/types.h"

namespace tensorflow {

// How many inputs an argument gets and of which types, as far as attributes do not say so.
struct FakeInputs {
  std::optional<int> count;
  std::optional<DataTypeVector> types;
};

inline FakeInputs FakeInput() { return {}; }
// One of this type, or a list of it whose length an attribute says.
inline FakeInputs FakeInput(DataType dtype) { return {std::nullopt, DataTypeVector{dtype}}; }
// A list of n, of a type that an attribute says.
inline FakeInputs FakeInput(int n) { return {n, std::nullopt}; }
inline FakeInputs FakeInput(int n, DataType dtype) { return {n, DataTypeVector(n, dtype)}; }
// A list of these types.
inline FakeInputs FakeInput(DataTypeSlice types) {
  return {static_cast<int>(types.size()), DataTypeVector(types.begin(), types.end())};
}
inline FakeInputs FakeInput(std::initializer_list<DataType> types) {
  return FakeInput(DataTypeSlice(types.begin(), types.size()));
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FAKE_INPUT_H_
