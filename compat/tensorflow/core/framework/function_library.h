// FunctionLibraryDefinition: functions by name, backed by a registry of ops.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_LIBRARY_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_LIBRARY_H_

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/optimized_function_graph.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/graph_debug_info_builder.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow {

// The stack traces of the nodes of each function.
using FunctionDefLibraryStackTraces = absl::flat_hash_map<std::string, StackTracesMap>;

// A function, with its signature as an op. Immutable once it is finalized.
class FunctionRecord : public core::RefCounted {
 public:
  FunctionRecord(FunctionDef fdef, StackTracesMap stack_traces, bool finalized);

  void finalize() { finalized_ = true; }
  bool finalized() const { return finalized_; }
  // Returns PERMISSION_DENIED if the record is finalized.
  absl::StatusOr<FunctionDef*> mutable_fdef();
  const FunctionDef& fdef() const { return fdef_; }
  const StackTracesMap& stack_traces() const { return stack_traces_; }
  const OpRegistrationData& op_registration_data() const { return op_; }

 private:
  bool finalized_;
  FunctionDef fdef_;
  const StackTracesMap stack_traces_;
  const OpRegistrationData op_;
};

// Thread-safe. A function that a look-up returns is valid until it is removed or replaced.
class FunctionLibraryDefinition : public OpRegistryInterface {
 public:
  static constexpr const char* const kArgOp = "_Arg";
  static constexpr const char* const kDeviceArgOp = "_DeviceArg";
  static constexpr const char* const kRetOp = "_Retval";
  static constexpr const char* const kDeviceRetOp = "_DeviceRetval";
  static constexpr const char* const kIntsOnDeviceAttr = "experimental_ints_on_device";
  static constexpr const char* const kSharedRendezvousAttr = "shared_rendezvous";
  static constexpr const char* const kGradientOp = "SymbolicGradient";
  static constexpr const char* const kFuncAttr = "f";
  static constexpr const char* const kFunctionRunsAtMostOnce = "function_runs_at_most_once";

  // Creates a library with these functions and gradients. Logs and skips those that AddLibrary
  // would reject. REQUIRES: default_registry outlives the library.
  explicit FunctionLibraryDefinition(const OpRegistryInterface* default_registry,
                                     const FunctionDefLibrary& library = {},
                                     const FunctionDefLibraryStackTraces& traces = {});
  // Creates the library of a graph, with the stack traces of its debug information.
  FunctionLibraryDefinition(const OpRegistryInterface* default_registry, const GraphDef& graph_def);
  FunctionLibraryDefinition(const FunctionLibraryDefinition& other);
  FunctionLibraryDefinition& operator=(const FunctionLibraryDefinition&) = delete;
  FunctionLibraryDefinition& operator=(FunctionLibraryDefinition&& other);

  bool Contains(const std::string& func) const { return FindRecord(func) != nullptr; }
  // Return null if the function does not exist.
  const FunctionDef* Find(const std::string& func) const;
  core::RefCountPtr<FunctionRecord> FindRecord(const std::string& func) const;
  const StackTracesMap* GetStackTraces(const std::string& func) const;
  // Returns "" if the function has no gradient.
  std::string FindGradient(const std::string& func) const;
  absl::Status LookUp(const std::string& op_type_name,
                      const OpRegistrationData** op_reg_data) const override;

  // Return INVALID_ARGUMENT if an op or a different function has the same name. Adding an identical
  // function has no effect.
  absl::Status AddFunctionDef(FunctionDef fdef, StackTracesMap stack_traces = {});
  absl::Status AddFunctionRecord(core::RefCountPtr<FunctionRecord> record);
  // Returns INVALID_ARGUMENT if the function has a different gradient.
  absl::Status AddGradientDef(const GradientDef& grad);
  // Adds all functions and gradients, or nothing if there is an error.
  absl::Status AddLibrary(const FunctionLibraryDefinition& other);
  absl::Status AddLibrary(const FunctionDefLibrary& library,
                          const FunctionDefLibraryStackTraces& traces = {});
  // Copies a function and its gradient from another library.
  absl::Status CopyFunctionDefFrom(const std::string& name, const FunctionLibraryDefinition& other);

  // Return INVALID_ARGUMENT if the function does not exist.
  absl::Status ReplaceFunction(const std::string& func, const FunctionDef& fdef,
                               const StackTracesMap& stack_traces = {});
  absl::Status RemoveFunction(const std::string& func);
  // Replaces the gradient if there is one.
  absl::Status ReplaceGradient(const GradientDef& grad);
  void Clear();

  // Returns an unused name that begins with `prefix`.
  std::string UniqueFunctionName(absl::string_view prefix) const;
  // Reads an attribute of the function that the node calls. A SymbolicGradient calls the gradient
  // of its function, or the function itself if it has no gradient. Returns INVALID_ARGUMENT if the
  // node calls no function.
  template <typename T>
  absl::Status GetAttr(const NodeDef& node, const std::string& attr, T* value) const {
    const core::RefCountPtr<FunctionRecord> callee = Callee(node);
    if (callee == nullptr) {
      return errors::InvalidArgument("No attr ", attr, " is defined: ", node.op(),
                                     " is not a function of the library");
    }
    return GetNodeAttr(AttrSlice(&callee->fdef().attr()), attr, value);
  }
  template <typename T>
  absl::Status GetAttr(const Node& node, const std::string& attr, T* value) const {
    return GetAttr(node.def(), attr, value);
  }

  // Return the functions and gradients in the order of addition.
  FunctionDefLibrary ToProto() const;
  std::vector<std::string> ListFunctionNames() const;
  size_t num_functions() const;

  const OpRegistryInterface* default_registry() const { return default_registry_; }
  void set_default_registry(const OpRegistryInterface* registry) { default_registry_ = registry; }

  // Return a library of all functions that the nodes may call, directly or through other functions:
  // by name, as an attribute, as a gradient, or as another implementation of an interface
  // (attribute "api_implements").
  FunctionLibraryDefinition ReachableDefinitions(const GraphDef& graph) const;
  FunctionLibraryDefinition ReachableDefinitions(const Graph& graph) const;
  FunctionLibraryDefinition ReachableDefinitions(const FunctionDef& func) const;
  // The result also contains the function itself. Returns NOT_FOUND if it does not exist.
  absl::StatusOr<FunctionLibraryDefinition> ReachableDefinitions(
      const std::string& function_name) const;

  // Optimized forms of functions. A creator is called on each look-up.
  using OptimizedFunctionGraphCreator = std::function<absl::StatusOr<OptimizedFunctionGraph>()>;
  void AddOptimizedFunctionGraph(const std::string& function_name,
                                 const OptimizedFunctionGraph& graph);
  void AddOptimizedFunctionGraph(const std::string& function_name,
                                 OptimizedFunctionGraphCreator creator);
  std::optional<absl::StatusOr<OptimizedFunctionGraph>> FindOptimizedFunctionGraph(
      const std::string& function_name) const;
  bool HasOptimizedFunctionGraph(const std::string& function_name) const;

  // Returns the traces of a library's functions. Traces are named "node@function".
  static FunctionDefLibraryStackTraces CreateStackTracesForFunctionDefLibrary(
      const FunctionDefLibrary& library, const GraphDebugInfo& debug_info);

 private:
  using Records = std::list<core::RefCountPtr<FunctionRecord>>;

  // The mutex must be held, except for Callee and Reachable.
  FunctionRecord* FindLocked(const std::string& func) const;
  // Sets *added to true if there was no such function.
  absl::Status AddLocked(core::RefCountPtr<FunctionRecord> record, bool* added);
  absl::Status AddGradientLocked(const std::string& func, const std::string& gradient, bool* added);
  absl::Status AddAllLocked(std::vector<core::RefCountPtr<FunctionRecord>> records,
                            gtl::ArraySlice<GradientDef> gradients);
  void RemoveLocked(const std::string& func);
  core::RefCountPtr<FunctionRecord> Callee(const NodeDef& node) const;
  FunctionLibraryDefinition Reachable(std::vector<const NodeDef*> nodes) const;

  mutable std::mutex mutex_;
  const OpRegistryInterface* default_registry_;
  Records records_;
  absl::flat_hash_map<std::string, Records::iterator> by_name_;
  absl::flat_hash_map<std::string, std::string> gradients_;
  absl::flat_hash_map<std::string, OptimizedFunctionGraphCreator> optimized_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_LIBRARY_H_
