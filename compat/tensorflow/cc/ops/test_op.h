// Ops of TensorFlow's wrapper class tests. The names of these ops, their inputs and their
// attributes clash with C++ names. Including this header registers the ops. They have no kernels.
// ReaderReadUpTo has no kernel either, because gradflow has no readers.
#ifndef GRADFLOW_COMPAT_CC_OPS_TEST_OP_H_
#define GRADFLOW_COMPAT_CC_OPS_TEST_OP_H_

#include <cstdint>

#include "gradflow/graph/node_builder.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/framework/op.h"

namespace tensorflow {
namespace compat_internal {

// Inline variables register each op once per program.
inline const register_op::OpRegistrar kThrowAway1 =
    register_op::OpDefBuilderWrapper("ThrowAway1")
        .Input("ret: int32")
        .Input("unique_name: float")
        .Input("for: int32")
        .Attr("scope: int")
        .Attr("builder: int = 1")
        .Attr("while: int")
        .Doc("An op whose names clash with names of C++.");
inline const register_op::OpRegistrar kThrowAway2 =
    register_op::OpDefBuilderWrapper("ThrowAway2")
        .Attr("scope: int = 2")
        .Attr("throw_away2: int = 2")
        .Attr("attrs: int = 4")
        .Attr("node: int = 4")
        .Doc("An op whose attributes clash with names of its class.");
inline const register_op::OpRegistrar kReaderReadUpTo =
    register_op::OpDefBuilderWrapper("ReaderReadUpTo")
        .Input("reader_handle: Ref(string)")
        .Input("queue_handle: Ref(string)")
        .Input("num_records: int64")
        .Output("keys: string")
        .Output("values: string")
        .SetIsStateful()
        .Doc("Returns up to `num_records` records of a reader.");

}  // namespace compat_internal

namespace ops {

class ThrowAway1 {
 public:
  struct Attrs {
    Attrs Builder(int64_t x) const {
      Attrs attrs = *this;
      attrs.builder_ = x;
      return attrs;
    }
    int64_t builder_ = 1;
  };
  ThrowAway1(const Scope& scope, Input ret, Input unique_name, Input for_, int64_t scope_,
             int64_t while_, const Attrs& attrs = Attrs{1})
      : operation(gradflow::OpBuilder(scope, "ThrowAway1")
                      .Input(ret)
                      .Input(unique_name)
                      .Input(for_)
                      .Attr("scope", scope_)
                      .Attr("while", while_)
                      .Attr("builder", attrs.builder_)
                      .Finish()) {}
  operator Operation() const { return operation; }
  static Attrs Builder(int64_t x) { return Attrs().Builder(x); }

  Operation operation;
};

class ThrowAway2 {
 public:
  struct Attrs {
    Attrs Scope(int64_t x) const { return With(&Attrs::scope_, x); }
    Attrs ThrowAway2_(int64_t x) const { return With(&Attrs::throw_away2_, x); }
    Attrs Attrs_(int64_t x) const { return With(&Attrs::attrs_, x); }
    Attrs Node(int64_t x) const { return With(&Attrs::node_, x); }
    Attrs With(int64_t Attrs::*field, int64_t x) const {
      Attrs attrs = *this;
      attrs.*field = x;
      return attrs;
    }
    int64_t scope_ = 2;
    int64_t throw_away2_ = 2;
    int64_t attrs_ = 4;
    int64_t node_ = 4;
  };
  explicit ThrowAway2(const ::tensorflow::Scope& scope) : ThrowAway2(scope, Attrs{2, 2, 4, 4}) {}
  ThrowAway2(const ::tensorflow::Scope& scope, const Attrs& attrs)
      : operation(gradflow::OpBuilder(scope, "ThrowAway2")
                      .Attr("scope", attrs.scope_)
                      .Attr("throw_away2", attrs.throw_away2_)
                      .Attr("attrs", attrs.attrs_)
                      .Attr("node", attrs.node_)
                      .Finish()) {}
  operator Operation() const { return operation; }
  static Attrs Scope(int64_t x) { return Attrs().Scope(x); }
  static Attrs ThrowAway2_(int64_t x) { return Attrs().ThrowAway2_(x); }
  static Attrs Attrs_(int64_t x) { return Attrs().Attrs_(x); }
  static Attrs Node(int64_t x) { return Attrs().Node(x); }

  Operation operation;
};

class ReaderReadUpTo {
 public:
  ReaderReadUpTo(const Scope& scope, Input reader_handle, Input queue_handle, Input num_records)
      : operation(gradflow::OpBuilder(scope, "ReaderReadUpTo")
                      .Input(reader_handle)
                      .Input(queue_handle)
                      .Input(num_records)
                      .Finish()) {
    if (operation.node() == nullptr) return;
    keys = Output(operation, 0);
    values = Output(operation, 1);
  }

  Operation operation;
  Output keys;
  Output values;
};

}  // namespace ops
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_OPS_TEST_OP_H_
