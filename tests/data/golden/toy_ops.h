// Generated from the definitions of the ops. Do not edit.
// clang-format off
#ifndef TESTS_DATA_GOLDEN_TOY_OPS_H_
#define TESTS_DATA_GOLDEN_TOY_OPS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

#pragma GCC visibility push(default)
namespace gradflow {
class NameAttrList;

namespace ops {

// Calls.
//
// Arguments:
// * scope: The scope that the node is added to.
// * x: In.
// * f: One function.
// * others: More.
//
// Members:
// * y: Out.
// * operation: The node.
class ToyCall {
 public:
  ToyCall(const ::gradflow::Scope& scope,
          const ::gradflow::Input& x,
          const ::gradflow::NameAttrList& f,
          ::absl::Span<const ::gradflow::NameAttrList> others);
  operator ::gradflow::Output() const { return y; }
  operator ::gradflow::Input() const { return y; }
  ::gradflow::Node* node() const { return y.node(); }

  ::gradflow::Operation operation;
  ::gradflow::Output y;
};

// Joins tensors along `axis`.
//
// A paragraph that is long enough to be wrapped, since what it says about joining does not fit on
// one line of a hundred columns.
//
//     a formula = is left(as it is)
//
// And one more.
//
// Arguments:
// * scope: The scope that the node is added to.
// * axis: The dimension.
// * values: Some tensors.
//
// Members:
// * output: All of them, along `axis`.
// * operation: The node.
class ToyJoin {
 public:
  ToyJoin(const ::gradflow::Scope& scope,
          const ::gradflow::Input& axis,
          const ::gradflow::InputList& values);
  operator ::gradflow::Output() const { return output; }
  operator ::gradflow::Input() const { return output; }
  ::gradflow::Node* node() const { return output.node(); }

  ::gradflow::Operation operation;
  ::gradflow::Output output;
};
using ToyConcat = ToyJoin;
using ToyGlue = ToyJoin;

// Lists.
//
// Arguments:
// * scope: The scope that the node is added to.
// * inputs: In.
//
// Members:
// * outputs: Out.
// * operation: The node.
class ToyList {
 public:
  ToyList(const ::gradflow::Scope& scope, const ::gradflow::InputList& inputs);
  ::gradflow::Output operator[](size_t index) const { return outputs[index]; }

  ::gradflow::Operation operation;
  ::gradflow::OutputList outputs;
};

// Has every kind of default.
//
// Arguments:
// * scope: The scope that the node is added to.
// * default_:
//
// Optional attributes (see `Attrs`):
// * S: Defaults to "a\"b".
// * NumBits: The bits. Defaults to -8.
// * Small: Defaults to 0.1f.
// * Large: Defaults to 1e+30f.
// * Whole: Defaults to 3.0f.
// * Flag: Defaults to true.
// * OutType: Defaults to DT_INT64.
// * Shape: Defaults to PartialTensorShape({2, -1}).
// * Any: Defaults to PartialTensorShape().
// * Strings: Defaults to {"x", "y"}.
// * Axes: Defaults to {1, 2}.
// * Floats: Defaults to {}.
// * Bools: Defaults to {true, false}.
// * Types: Defaults to {DT_FLOAT}.
// * Shapes: Defaults to {}.
// * Color: Defaults to Input::Initializer({uint8_t{255}, uint8_t{0}}, TensorShape({2})).tensor.
// * ToyOptions_: Defaults to 0.
// * Class: A word of C++. Defaults to 0.
//
// Members:
// * operation_:
// * output:
// * operation: The node.
class ToyOptions {
 public:
  struct Attrs {
    [[nodiscard]] Attrs S(::absl::string_view x) const {
      Attrs ret = *this;
      ret.s_ = ::std::string(x);
      return ret;
    }
    // The bits.
    [[nodiscard]] Attrs NumBits(int64_t x) const {
      Attrs ret = *this;
      ret.num_bits_ = x;
      return ret;
    }
    [[nodiscard]] Attrs Small(float x) const {
      Attrs ret = *this;
      ret.small_ = x;
      return ret;
    }
    [[nodiscard]] Attrs Large(float x) const {
      Attrs ret = *this;
      ret.large_ = x;
      return ret;
    }
    [[nodiscard]] Attrs Whole(float x) const {
      Attrs ret = *this;
      ret.whole_ = x;
      return ret;
    }
    [[nodiscard]] Attrs Flag(bool x) const {
      Attrs ret = *this;
      ret.flag_ = x;
      return ret;
    }
    [[nodiscard]] Attrs OutType(::gradflow::DataType x) const {
      Attrs ret = *this;
      ret.out_type_ = x;
      return ret;
    }
    [[nodiscard]] Attrs Shape(const ::gradflow::PartialTensorShape& x) const {
      Attrs ret = *this;
      ret.shape_ = x;
      return ret;
    }
    [[nodiscard]] Attrs Any(const ::gradflow::PartialTensorShape& x) const {
      Attrs ret = *this;
      ret.any_ = x;
      return ret;
    }
    [[nodiscard]] Attrs Strings(::absl::Span<const ::absl::string_view> x) const {
      Attrs ret = *this;
      ret.strings_ = ::std::vector<::std::string>(x.begin(), x.end());
      return ret;
    }
    [[nodiscard]] Attrs Axes(::absl::Span<const int> x) const {
      Attrs ret = *this;
      ret.axes_ = ::std::vector<int>(x.begin(), x.end());
      return ret;
    }
    [[nodiscard]] Attrs Floats(::absl::Span<const float> x) const {
      Attrs ret = *this;
      ret.floats_ = ::std::vector<float>(x.begin(), x.end());
      return ret;
    }
    [[nodiscard]] Attrs Bools(::absl::Span<const bool> x) const {
      Attrs ret = *this;
      ret.bools_ = ::std::vector<bool>(x.begin(), x.end());
      return ret;
    }
    [[nodiscard]] Attrs Types(::absl::Span<const ::gradflow::DataType> x) const {
      Attrs ret = *this;
      ret.types_ = ::std::vector<::gradflow::DataType>(x.begin(), x.end());
      return ret;
    }
    [[nodiscard]] Attrs Shapes(::absl::Span<const ::gradflow::PartialTensorShape> x) const {
      Attrs ret = *this;
      ret.shapes_ = ::std::vector<::gradflow::PartialTensorShape>(x.begin(), x.end());
      return ret;
    }
    [[nodiscard]] Attrs Color(const ::gradflow::Tensor& x) const {
      Attrs ret = *this;
      ret.color_ = x;
      return ret;
    }
    [[nodiscard]] Attrs ToyOptions_(int64_t x) const {
      Attrs ret = *this;
      ret.toy_options_ = x;
      return ret;
    }
    // A word of C++.
    [[nodiscard]] Attrs Class(int64_t x) const {
      Attrs ret = *this;
      ret.class_ = x;
      return ret;
    }

    ::std::string s_ = "a\"b";
    int64_t num_bits_ = -8;
    float small_ = 0.1f;
    float large_ = 1e+30f;
    float whole_ = 3.0f;
    bool flag_ = true;
    ::gradflow::DataType out_type_ = ::gradflow::DT_INT64;
    ::gradflow::PartialTensorShape shape_ = ::gradflow::PartialTensorShape({2, -1});
    ::gradflow::PartialTensorShape any_ = ::gradflow::PartialTensorShape();
    ::std::vector<::std::string> strings_ = {"x", "y"};
    ::std::vector<int> axes_ = {1, 2};
    ::std::vector<float> floats_ = {};
    ::std::vector<bool> bools_ = {true, false};
    ::std::vector<::gradflow::DataType> types_ = {::gradflow::DT_FLOAT};
    ::std::vector<::gradflow::PartialTensorShape> shapes_ = {};
    ::gradflow::Tensor color_ = ::gradflow::Input::Initializer({uint8_t{255}, uint8_t{0}}, ::gradflow::TensorShape({2})).tensor;
    int64_t toy_options_ = 0;
    int64_t class_ = 0;
  };

  ToyOptions(const ::gradflow::Scope& scope, const ::gradflow::Input& default_);
  ToyOptions(const ::gradflow::Scope& scope,
             const ::gradflow::Input& default_,
             const Attrs& attrs);

  static Attrs S(::absl::string_view x) { return Attrs().S(x); }
  static Attrs NumBits(int64_t x) { return Attrs().NumBits(x); }
  static Attrs Small(float x) { return Attrs().Small(x); }
  static Attrs Large(float x) { return Attrs().Large(x); }
  static Attrs Whole(float x) { return Attrs().Whole(x); }
  static Attrs Flag(bool x) { return Attrs().Flag(x); }
  static Attrs OutType(::gradflow::DataType x) { return Attrs().OutType(x); }
  static Attrs Shape(const ::gradflow::PartialTensorShape& x) { return Attrs().Shape(x); }
  static Attrs Any(const ::gradflow::PartialTensorShape& x) { return Attrs().Any(x); }
  static Attrs Strings(::absl::Span<const ::absl::string_view> x) { return Attrs().Strings(x); }
  static Attrs Axes(::absl::Span<const int> x) { return Attrs().Axes(x); }
  static Attrs Floats(::absl::Span<const float> x) { return Attrs().Floats(x); }
  static Attrs Bools(::absl::Span<const bool> x) { return Attrs().Bools(x); }
  static Attrs Types(::absl::Span<const ::gradflow::DataType> x) { return Attrs().Types(x); }
  static Attrs Shapes(::absl::Span<const ::gradflow::PartialTensorShape> x) { return Attrs().Shapes(x); }
  static Attrs Color(const ::gradflow::Tensor& x) { return Attrs().Color(x); }
  static Attrs ToyOptions_(int64_t x) { return Attrs().ToyOptions_(x); }
  static Attrs Class(int64_t x) { return Attrs().Class(x); }

  ::gradflow::Operation operation;
  ::gradflow::Output operation_;
  ::gradflow::Output output;
};

// Takes a tensor.
//
// Arguments:
// * scope: The scope that the node is added to.
// * x: The tensor.
//
// Members:
// * operation: The node.
class ToySink {
 public:
  ToySink(const ::gradflow::Scope& scope, const ::gradflow::Input& x);
  operator ::gradflow::Operation() const { return operation; }

  ::gradflow::Operation operation;
};

// Needs every attribute.
//
// Arguments:
// * scope: The scope that the node is added to.
// * dtype:
// * s:
// * i:
// * f:
// * b:
// * shape:
// * t:
// * ls:
// * li:
//
// Members:
// * node_:
// * operation: The node.
class ToySource {
 public:
  ToySource(const ::gradflow::Scope& scope,
            ::gradflow::DataType dtype,
            ::absl::string_view s,
            int64_t i,
            float f,
            bool b,
            const ::gradflow::PartialTensorShape& shape,
            const ::gradflow::Tensor& t,
            ::absl::Span<const ::absl::string_view> ls,
            ::absl::Span<const int> li);
  operator ::gradflow::Output() const { return node_; }
  operator ::gradflow::Input() const { return node_; }
  ::gradflow::Node* node() const { return node_.node(); }

  ::gradflow::Operation operation;
  ::gradflow::Output node_;
};

// Splits.
//
// Arguments:
// * scope: The scope that the node is added to.
// * value: A tensor.
// * num: How many.
//
// Members:
// * first: One.
// * parts: The rest.
// * count: Some.
// * operation: The node.
class ToySplit {
 public:
  ToySplit(const ::gradflow::Scope& scope, const ::gradflow::Input& value, int64_t num);

  ::gradflow::Operation operation;
  ::gradflow::Output first;
  ::gradflow::OutputList parts;
  ::gradflow::Output count;
};

}  // namespace ops
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // TESTS_DATA_GOLDEN_TOY_OPS_H_
