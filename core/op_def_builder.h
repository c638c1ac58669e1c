// OpDefBuilder: builds an OpDef from spec strings in TensorFlow's syntax.
//
//   inputs, outputs: "name: T"   where T is a type ("float"), an attribute of type `type` or
//                    `list(type)`; "name: N * T" for a list; "name: Ref(T)" for a reference.
//   attributes:      "name: type = default" where type is int, float, bool, string, type, shape,
//                    tensor, func, list(...) of these, with ">= 2" for a minimum of an int or of a
//                    list's length; or a set of allowed values: {half, float}, {"SAME", "VALID"},
//                    numbertype, realnumbertype, quantizedtype, also inside list(...).
#ifndef GRADFLOW_CORE_OP_DEF_BUILDER_H_
#define GRADFLOW_CORE_OP_DEF_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

class OpDef;

// Collects specs. Finalize returns the errors in specs.
class OpDefBuilder {
 public:
  // Starts the definition of op `name`.
  explicit OpDefBuilder(absl::string_view name) : name_(name) {}

  // Add an attribute, input or output: "T: {float, double}", "n: int >= 1 = 2", "x: T".
  OpDefBuilder& Attr(absl::string_view spec);
  OpDefBuilder& Input(absl::string_view spec);
  OpDefBuilder& Output(absl::string_view spec);
  // Set the flags of the OpDef.
  OpDefBuilder& SetIsCommutative();
  OpDefBuilder& SetIsAggregate();
  OpDefBuilder& SetIsStateful();
  OpDefBuilder& SetAllowsUninitializedInput();
  OpDefBuilder& Deprecated(int version, absl::string_view explanation);
  // Sets the documentation. The first line is the summary, the rest the description. Lines
  // "name: text" at the end describe the argument, output or attribute `name`; indented lines
  // continue a text.
  OpDefBuilder& Doc(absl::string_view text);

  // Writes the definition to *op_def. Returns INVALID_ARGUMENT, with all errors found, if a spec
  // does not parse or the definition is inconsistent (see ValidateOpDef).
  absl::Status Finalize(OpDef* op_def) const;
  // Like Finalize(), but without ValidateOpDef().
  absl::Status FinalizeUnchecked(OpDef* op_def) const;

 private:
  std::string name_;
  std::vector<std::string> attrs_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  std::string doc_;
  bool commutative_ = false;
  bool aggregate_ = false;
  bool stateful_ = false;
  bool allows_uninitialized_input_ = false;
  int deprecation_version_ = 0;
  std::string deprecation_explanation_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_OP_DEF_BUILDER_H_
