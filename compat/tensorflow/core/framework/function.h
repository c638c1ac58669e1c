// FunctionDefHelper: builds functions from lists of nodes. InstantiateFunction: returns the nodes
// of a function for given attribute values. FunctionLibraryDefinition is in function_library.h.
//
//   FunctionDefHelper::Define("Twice", {"x: T"}, {"y: T"}, {"T: {float, double}"},
//                             {{{"y"}, "AddV2", {"x", "x"}, {{"T", "$T"}}}});
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/function_library.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

class FunctionDefHelper {
 public:
  // The value of an attribute. A string that begins with '$' is a placeholder for an attribute of
  // the function.
  struct AttrValueWrapper {
    AttrValue proto;

    AttrValueWrapper() = default;
    template <typename T>
    AttrValueWrapper(T val) {  // NOLINT: as in TensorFlow
      SetAttrValue(val, &proto);
    }
    AttrValueWrapper(const char* val) { InitFromString(val); }         // NOLINT
    AttrValueWrapper(const std::string& val) { InitFromString(val); }  // NOLINT
    AttrValueWrapper(absl::string_view val) { InitFromString(val); }   // NOLINT

   private:
    void InitFromString(absl::string_view val);
  };

  // A function and its attributes, used as an attribute value.
  static AttrValueWrapper FunctionRef(
      const std::string& name,
      gtl::ArraySlice<std::pair<std::string, AttrValueWrapper>> attrs = {});

  struct Node {
    // The name of the node. Define uses further names for the node's further outputs.
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

  // Creates a function. Inputs of nodes, and values of `ret_def`, are "argument" or
  // "node:output:index". Errors in the definitions end the program.
  static FunctionDef Create(
      const std::string& function_name, gtl::ArraySlice<std::string> in_def,
      gtl::ArraySlice<std::string> out_def, gtl::ArraySlice<std::string> attr_def,
      gtl::ArraySlice<Node> node_def, gtl::ArraySlice<std::pair<std::string, std::string>> ret_def,
      gtl::ArraySlice<std::pair<std::string, std::string>> control_ret_def = {});
  // Like Create(), but inputs of nodes are arguments and names in Node::ret, and results have such
  // names. The ops of the nodes must be registered.
  static FunctionDef Define(const std::string& function_name, gtl::ArraySlice<std::string> arg_def,
                            gtl::ArraySlice<std::string> ret_def,
                            gtl::ArraySlice<std::string> attr_def, gtl::ArraySlice<Node> node_def);
  // Defines a function whose name does not matter.
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

// Looks up the signature of an op or a function.
using GetFunctionSignature = std::function<absl::Status(const std::string&, const OpDef**)>;

struct InstantiationResult {
  DataTypeVector arg_types;
  DataTypeVector ret_types;
  // The arguments ("_Arg"), the nodes of the function, and the results ("_Retval").
  std::vector<NodeDef> nodes;
};
// Stores the nodes of the function with inputs in the form of a graph. `attrs` replace
// placeholders. Returns an error if an attribute, node, argument or op does not exist, or if types
// disagree; *result is then incomplete.
absl::Status InstantiateFunction(const FunctionDef& fdef, AttrSlice attrs,
                                 const GetFunctionSignature& get_function,
                                 InstantiationResult* result);

// Return a function, or the nodes of its instance, as text with one line per node.
std::string DebugString(const FunctionDef& func_def);
std::string DebugString(const GraphDef& instantiated_func_def);
std::string DebugString(gtl::ArraySlice<NodeDef> instantiated_func_nodes);
// Returns the functions and nodes of the graph as text.
std::string DebugStringWhole(const GraphDef& gdef);

// Returns true if the signatures, nodes, results and attributes are equal. Ignores the order of
// attributes.
bool FunctionDefsEqual(const FunctionDef& f1, const FunctionDef& f2);
// Returns a hash. Equal functions have equal hashes.
uint64 FunctionDefHash(const FunctionDef& fdef);

// The arguments and results of a call.
class CallFrameInterface {
 public:
  virtual ~CallFrameInterface() = default;
  virtual size_t num_args() const = 0;
  virtual size_t num_retvals() const = 0;
  virtual absl::Status GetArg(int index, const Tensor** val) = 0;
  virtual absl::Status SetRetval(int index, const Tensor& val) = 0;
  // Returns true if ConsumeArg can move the argument out of the frame.
  virtual bool CanConsumeArg(int index) const;
  // REQUIRES: CanConsumeArg(index). By default, logs an error and does not change *val.
  virtual void ConsumeArg(int index, Tensor* val);
};

// Checks numbers and types. Returns INVALID_ARGUMENT if they are wrong, and INTERNAL if a result is
// missing or set twice.
class FunctionCallFrame : public CallFrameInterface {
 public:
  FunctionCallFrame(DataTypeSlice arg_types, DataTypeSlice ret_types)
      : arg_types_(arg_types.begin(), arg_types.end()),
        ret_types_(ret_types.begin(), ret_types.end()),
        results_(ret_types.size()) {}
  FunctionCallFrame(const FunctionCallFrame&) = delete;
  FunctionCallFrame& operator=(const FunctionCallFrame&) = delete;

  absl::Status SetArgs(gtl::ArraySlice<Tensor> args);
  absl::Status GetRetvals(std::vector<Tensor>* rets) const;
  // Moves the results. A missing result is an error or, if allow_dead_tensors, an uninitialised
  // tensor.
  absl::Status ConsumeRetvals(std::vector<Tensor>* rets, bool allow_dead_tensors);

  size_t num_args() const override { return arg_types_.size(); }
  size_t num_retvals() const override { return ret_types_.size(); }
  absl::Status GetArg(int index, const Tensor** val) override;
  absl::Status SetRetval(int index, const Tensor& val) override;

 private:
  const DataTypeVector arg_types_;
  const DataTypeVector ret_types_;
  std::vector<Tensor> args_;
  std::vector<std::optional<Tensor>> results_;
};

// gradflow has no function runtime. This class only defines the options for Canonicalize.
class FunctionLibraryRuntime {
 public:
  struct InstantiateOptions {
    std::string target;
    std::vector<std::string> input_devices;
    std::vector<std::string> output_devices;
    std::string state_handle;
    std::string executor_type;
  };
};
// Returns a name for the instance of a function: "name[attr=value,...]". Strings are replaced by
// their Hash64 values.
std::string Canonicalize(const std::string& funcname, AttrSlice attrs,
                         const FunctionLibraryRuntime::InstantiateOptions& options = {});

// Returns the device of a resource that is a function argument. If the argument has a composite
// device, adds it to the map together with the devices of all handles.
std::string GetFunctionResourceInputDevice(
    const Tensor& input, int arg_index, const FunctionDef& function_def,
    absl::flat_hash_map<std::string, std::vector<std::string>>* composite_devices);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_H_
