// OpWrapper: the C++ text of an op's wrapper class.
#ifndef GRADFLOW_CODEGEN_OP_WRAPPER_H_
#define GRADFLOW_CODEGEN_OP_WRAPPER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/codegen/wrapper_text.h"
#include "gradflow/core/registry.h"

namespace gradflow {

class OpDef_AttrDef;

class OpWrapper {
 public:
  // An argument or an attribute.
  struct Item {
    // The names in the op definition and in C++.
    std::string name;
    std::string cpp_name;
    std::string doc;
  };
  struct Argument : Item {
    bool is_list = false;
  };
  struct Attribute : Item {
    CppAttrType type;
    // For optional attributes: the default as a C++ expression, and the names of the setter and of
    // its member.
    std::string default_value;
    std::string setter;
    std::string member;
    // The attribute of the op's definition.
    const OpDef_AttrDef* def = nullptr;
  };

  // Returns UNIMPLEMENTED with the attribute or argument if the op cannot have a wrapper class.
  // Borrows `op`.
  static absl::StatusOr<OpWrapper> Make(const OpRegistration& op);

  const std::string& name() const { return name_; }
  const std::vector<Argument>& inputs() const { return inputs_; }
  const std::vector<Argument>& outputs() const { return outputs_; }
  // Attributes without and with a default. Neither list has the attributes that are inferred from
  // the inputs.
  const std::vector<Attribute>& required() const { return required_; }
  const std::vector<Attribute>& optional() const { return optional_; }
  // Returns true if more than one output is a list. The definition then needs core/op_def_util.h.
  bool HasSeveralListOutputs() const;
  // Returns the documented class and its aliases, for a header.
  std::string Declaration() const;
  // Returns the constructors, for a source file.
  std::string Definition() const;

 private:
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

#endif  // GRADFLOW_CODEGEN_OP_WRAPPER_H_
