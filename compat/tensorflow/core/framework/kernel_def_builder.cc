#include "tensorflow/core/framework/kernel_def_builder.h"

#include "gradflow/proto/kernel_def.pb.h"
#include "tensorflow/core/framework/attr_value_util.h"

namespace tensorflow {
namespace {

template <typename Values>
void AddConstraint(const char* attr, const Values& allowed, gradflow::KernelDef* def) {
  auto* const constraint = def->add_constraint();
  constraint->set_name(attr);
  SetAttrValue(allowed, constraint->mutable_allowed_values());
}

}  // namespace

KernelDefBuilder::KernelDefBuilder(const char* op_name) : def_(new gradflow::KernelDef) {
  def_->set_op(op_name);
  kernel_.op = op_name;
}

KernelDefBuilder::KernelDefBuilder(const KernelDefBuilder& other)
    : def_(new gradflow::KernelDef(*other.def_)), kernel_(other.kernel_) {}

KernelDefBuilder::~KernelDefBuilder() { delete def_; }

KernelDefBuilder& KernelDefBuilder::Device(const char* device_type) {
  def_->set_device_type(device_type);
  kernel_.device = device_type;
  return *this;
}

KernelDefBuilder& KernelDefBuilder::TypeConstraint(const char* attr,
                                                   gtl::ArraySlice<DataType> allowed) {
  AddConstraint(attr, allowed, def_);
  kernel_.type_constraints.emplace_back(attr, DataTypeVector(allowed.begin(), allowed.end()));
  return *this;
}

KernelDefBuilder& KernelDefBuilder::AttrConstraint(const char* attr,
                                                   gtl::ArraySlice<int64_t> allowed) {
  AddConstraint(attr, allowed, def_);
  return *this;
}

KernelDefBuilder& KernelDefBuilder::AttrConstraint(const char* attr,
                                                   gtl::ArraySlice<std::string> allowed) {
  AddConstraint(attr, allowed, def_);
  return *this;
}

KernelDefBuilder& KernelDefBuilder::AttrConstraint(const char* attr,
                                                   gtl::ArraySlice<const char*> allowed) {
  AddConstraint(attr, allowed, def_);
  return *this;
}

KernelDefBuilder& KernelDefBuilder::AttrConstraint(const char* attr,
                                                   gtl::ArraySlice<bool> allowed) {
  AddConstraint(attr, allowed, def_);
  return *this;
}

KernelDefBuilder& KernelDefBuilder::HostMemory(const char* arg_name) {
  def_->add_host_memory_arg(arg_name);
  return *this;
}

KernelDefBuilder& KernelDefBuilder::Label(const char* label) {
  def_->set_label(label);
  kernel_.label = label;
  return *this;
}

KernelDefBuilder& KernelDefBuilder::Priority(int32 priority) {
  def_->set_priority(priority);
  kernel_.priority = priority;
  return *this;
}

const gradflow::KernelDef* KernelDefBuilder::Build() const {
  return new gradflow::KernelDef(*def_);
}

}  // namespace tensorflow
