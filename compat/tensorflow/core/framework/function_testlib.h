// test::function: functions for tests, and nodes and graphs that call them.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_TESTLIB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_TESTLIB_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"

namespace tensorflow {
namespace test {
namespace function {

// A list of attributes that converts to a slice.
class Attrs {
 public:
  using Pair = std::pair<std::string, FunctionDefHelper::AttrValueWrapper>;
  Attrs(std::initializer_list<Pair> attrs) : Attrs(std::vector<Pair>(attrs)) {}  // NOLINT
  Attrs(const std::vector<Pair>& attrs) {                                        // NOLINT
    for (const Pair& attr : attrs) map_[attr.first] = attr.second.proto;
  }
  operator AttrSlice() { return AttrSlice(&map_); }  // NOLINT: as in TensorFlow

 private:
  AttrValueMap map_;
};

NodeDef NDef(
    absl::string_view name, absl::string_view op, gtl::ArraySlice<std::string> inputs,
    gtl::ArraySlice<std::pair<std::string, FunctionDefHelper::AttrValueWrapper>> attrs = {},
    const std::string& device = "");
GraphDef GDef(gtl::ArraySlice<NodeDef> nodes, gtl::ArraySlice<FunctionDef> funcs = {});

// x: T -> y: T = x * 2, x * 4 and x * 16.
FunctionDef XTimesTwo();
FunctionDef XTimesFour();
FunctionDef XTimes16();
// x: int32 -> y: int32
FunctionDef XTimesTwoInt32();
FunctionDef XTimesFourInt32();
// x: T -> y: T = x
FunctionDef NonZero();
// x: T -> z: T = x + x; x: T, y: T -> z: T = x + y
FunctionDef XAddX();
FunctionDef XAddY();
// w: T, x: T, b: T -> y: T = MatMul(w, x) + b
FunctionDef WXPlusB();
// i0: T, i1: T -> o0: T = i1, o1: T = i0
FunctionDef Swap();

}  // namespace function
}  // namespace test
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_TESTLIB_H_
