// The wrapper class of one op.
#ifndef GRADFLOW_OPS_GEN_OP_WRAPPER_H_
#define GRADFLOW_OPS_GEN_OP_WRAPPER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"
#include "gradflow/ops/gen/wrapper_text.h"

namespace gradflow {

class OpWrapper {
 public:
  // UNIMPLEMENTED, naming the attribute or argument, for an op that no class can be made for.
  // `op` must outlive the wrapper.
  static absl::StatusOr<OpWrapper> Make(const OpRegistration& op);

  const std::string& name() const { return name_; }
  // The class with its documentation, and its other names, for a header.
  std::string Declaration() const;
  // The constructors, for a source file.
  std::string Definition() const;

 private:
  // An argument or an attribute.
  struct Item {
    // In the op definition, and in C++.
    std::string name;
    std::string cpp_name;
    std::string doc;
  };
  struct Argument : Item {
    bool is_list = false;
  };
  struct Attribute : Item {
    CppAttrType type;
    // Of an optional attribute: the default as an expression, and the names of the setter and of
    // the member that it sets.
    std::string default_value;
    std::string setter;
    std::string member;
  };

  explicit OpWrapper(const OpRegistration& op) : op_(op) {}
  absl::Status Read();
  std::string Renamed(const std::string& name) const;
  std::string Doc(absl::string_view text) const;

  std::string ClassComment() const;
  std::string AttrsStruct() const;
  std::string Constructor(absl::string_view qualifier, bool with_attrs) const;
  std::string Accessors() const;
  std::string OutputAssignments() const;

  const OpRegistration& op_;
  std::string name_;
  std::vector<Argument> inputs_;
  std::vector<Argument> outputs_;
  std::vector<Attribute> required_;
  std::vector<Attribute> optional_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_GEN_OP_WRAPPER_H_
