// FunctionDefHelper: builds functions from lists of nodes.
//
//   FunctionDefHelper::Define("Twice", {"x: T"}, {"y: T"}, {"T: {float, double}"},
//                             {{{"y"}, "AddV2", {"x", "x"}, {{"T", "$T"}}}});
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_H_

#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

class FunctionDefHelper {
 public:
  // The value of an attribute. A string that begins with '$' is a placeholder: an attribute of the
  // function.
  struct AttrValueWrapper {
    AttrValue proto;

    AttrValueWrapper() = default;
    template <typename T>
    AttrValueWrapper(T val) {  // NOLINT: as in TensorFlow
      SetAttrValue(val, &proto);
    }
    AttrValueWrapper(const char* val) { InitFromString(val); }         // NOLINT
    AttrValueWrapper(const std::string& val) { InitFromString(val); }  // NOLINT
    AttrValueWrapper(StringPiece val) { InitFromString(val); }         // NOLINT

   private:
    void InitFromString(StringPiece val);
  };

  // A function and its attributes, as the value of an attribute.
  static AttrValueWrapper FunctionRef(
      const std::string& name,
      gtl::ArraySlice<std::pair<std::string, AttrValueWrapper>> attrs = {});

  struct Node {
    // The name of the node, followed by others, which Define uses for its further outputs.
    std::vector<std::string> ret = {};
    std::string op = {};
    std::vector<std::string> arg = {};
    std::vector<std::pair<std::string, AttrValueWrapper>> attr = {};
    // The nodes of control inputs.
    std::vector<std::string> dep = {};
    std::string device = {};
    // The name of a node without outputs.
    std::string name = {};
    std::vector<std::string> original_node_names = {};
    std::vector<std::string> original_func_names = {};

    std::string GetName() const;
    NodeDef ToNodeDef() const;
  };

  // Make a function. Inputs of nodes, and values of `ret_def`, are "argument" or
  // "node:output:index". Errors in the definitions end the program.
  static FunctionDef Create(
      const std::string& function_name, gtl::ArraySlice<std::string> in_def,
      gtl::ArraySlice<std::string> out_def, gtl::ArraySlice<std::string> attr_def,
      gtl::ArraySlice<Node> node_def, gtl::ArraySlice<std::pair<std::string, std::string>> ret_def,
      gtl::ArraySlice<std::pair<std::string, std::string>> control_ret_def = {});
  // As above. Inputs of nodes are arguments and names in Node::ret; the results have such names.
  // The ops of the nodes must be registered.
  static FunctionDef Define(const std::string& function_name, gtl::ArraySlice<std::string> arg_def,
                            gtl::ArraySlice<std::string> ret_def,
                            gtl::ArraySlice<std::string> attr_def, gtl::ArraySlice<Node> node_def);
  // A function whose name does not matter.
  static FunctionDef Define(gtl::ArraySlice<std::string> arg_def,
                            gtl::ArraySlice<std::string> ret_def,
                            gtl::ArraySlice<std::string> attr_def, gtl::ArraySlice<Node> node_def) {
    return Define("_", arg_def, ret_def, attr_def, node_def);
  }

  // A constant: a scalar, or a vector.
  template <typename T>
  static Node Const(const std::string& name, const T& val) {
    return Const(name, Tensor(val));
  }
  template <typename T>
  static Node Const(const std::string& name, gtl::ArraySlice<T> vals) {
    Tensor tensor(DataTypeToEnum<T>::value, TensorShape({static_cast<int64>(vals.size())}));
    for (size_t i = 0; i < vals.size(); ++i) tensor.flat<T>()(i) = vals[i];
    return Const(name, tensor);
  }
  static Node Const(const std::string& name, const Tensor& value);
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_H_
