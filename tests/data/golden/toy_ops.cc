// Generated from the definitions of the ops. Do not edit.
// clang-format off
#include "tests/data/golden/toy_ops.h"

#include "gradflow/graph/node_builder.h"
#include "gradflow/proto/attr_value.pb.h"

namespace gradflow {
namespace ops {

ToyCall::ToyCall(const ::gradflow::Scope& scope,
                 const ::gradflow::Input& x,
                 const ::gradflow::NameAttrList& f,
                 ::absl::Span<const ::gradflow::NameAttrList> others) {
  ::gradflow::OpBuilder recorder(scope, "ToyCall");
  recorder.Input(x);
  recorder.Attr("f", f);
  recorder.Attr("others", others);
  operation = recorder.Finish();
  if (operation.node() == nullptr) return;
  this->y = ::gradflow::Output(operation, 0);
}

ToyJoin::ToyJoin(const ::gradflow::Scope& scope,
                 const ::gradflow::Input& axis,
                 const ::gradflow::InputList& values) {
  ::gradflow::OpBuilder recorder(scope, "ToyJoin");
  recorder.Input(axis);
  recorder.Input(values);
  operation = recorder.Finish();
  if (operation.node() == nullptr) return;
  this->output = ::gradflow::Output(operation, 0);
}

ToyList::ToyList(const ::gradflow::Scope& scope, const ::gradflow::InputList& inputs) {
  ::gradflow::OpBuilder recorder(scope, "ToyList");
  recorder.Input(inputs);
  operation = recorder.Finish();
  if (operation.node() == nullptr) return;
  const int outputs_end = operation.num_outputs() - 0;
  for (int i = 0; i < outputs_end; ++i) this->outputs.emplace_back(operation, i);
}

ToyOptions::ToyOptions(const ::gradflow::Scope& scope, const ::gradflow::Input& default_)
    : ToyOptions(scope, default_, Attrs()) {}

ToyOptions::ToyOptions(const ::gradflow::Scope& scope,
                       const ::gradflow::Input& default_,
                       const ToyOptions::Attrs& attrs) {
  ::gradflow::OpBuilder recorder(scope, "ToyOptions");
  recorder.Input(default_);
  recorder.Attr("s", attrs.s_);
  recorder.Attr("num_bits", attrs.num_bits_);
  recorder.Attr("small", attrs.small_);
  recorder.Attr("large", attrs.large_);
  recorder.Attr("whole", attrs.whole_);
  recorder.Attr("flag", attrs.flag_);
  recorder.Attr("out_type", attrs.out_type_);
  recorder.Attr("shape", attrs.shape_);
  recorder.Attr("any", attrs.any_);
  recorder.Attr("strings", attrs.strings_);
  recorder.Attr("axes", attrs.axes_);
  recorder.Attr("floats", attrs.floats_);
  recorder.Attr("bools", attrs.bools_);
  recorder.Attr("types", attrs.types_);
  recorder.Attr("shapes", attrs.shapes_);
  recorder.Attr("color", attrs.color_);
  recorder.Attr("toy_options", attrs.toy_options_);
  recorder.Attr("class", attrs.class_);
  operation = recorder.Finish();
  if (operation.node() == nullptr) return;
  this->operation_ = ::gradflow::Output(operation, 0);
  this->output = ::gradflow::Output(operation, 1);
}

ToySink::ToySink(const ::gradflow::Scope& scope, const ::gradflow::Input& x) {
  ::gradflow::OpBuilder recorder(scope, "ToySink");
  recorder.Input(x);
  operation = recorder.Finish();
}

ToySource::ToySource(const ::gradflow::Scope& scope,
                     ::gradflow::DataType dtype,
                     ::absl::string_view s,
                     int64_t i,
                     float f,
                     bool b,
                     const ::gradflow::PartialTensorShape& shape,
                     const ::gradflow::Tensor& t,
                     ::absl::Span<const ::absl::string_view> ls,
                     ::absl::Span<const int> li) {
  ::gradflow::OpBuilder recorder(scope, "ToySource");
  recorder.Attr("dtype", dtype);
  recorder.Attr("s", s);
  recorder.Attr("i", i);
  recorder.Attr("f", f);
  recorder.Attr("b", b);
  recorder.Attr("shape", shape);
  recorder.Attr("t", t);
  recorder.Attr("ls", ls);
  recorder.Attr("li", li);
  operation = recorder.Finish();
  if (operation.node() == nullptr) return;
  this->node_ = ::gradflow::Output(operation, 0);
}

ToySplit::ToySplit(const ::gradflow::Scope& scope, const ::gradflow::Input& value, int64_t num) {
  ::gradflow::OpBuilder recorder(scope, "ToySplit");
  recorder.Input(value);
  recorder.Attr("num", num);
  operation = recorder.Finish();
  if (operation.node() == nullptr) return;
  this->first = ::gradflow::Output(operation, 0);
  const int parts_end = operation.num_outputs() - 1;
  for (int i = 1; i < parts_end; ++i) this->parts.emplace_back(operation, i);
  this->count = ::gradflow::Output(operation, operation.num_outputs() - 1);
}

}  // namespace ops
}  // namespace gradflow
