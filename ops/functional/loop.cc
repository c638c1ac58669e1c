// While, StatelessWhile and For.
#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::loop {
namespace {

absl::Status WhileShape(ShapeContext& c) { return ListedShapes(c, "output_shapes"); }

absl::Status ForShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  return absl::OkStatus();
}

void RegisterWhile(Registry& registry, const char* name, const char* summary, bool is_stateful) {
  Registry::OpRegistrar op = registry.Op(name);
  op.Group("functional_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: list(type) >= 0")
      .Attr("cond: func")
      .Attr("body: func")
      .Attr("output_shapes: list(shape) = []")
      .Attr("parallel_iterations: int = 10")
      .Functional(FunctionalOp::kWhile)
      .Shape(WhileShape)
      .Doc(absl::StrCat(summary, R"(

    x = input
    while (cond(x)) x = body(x)
    output = x

input: The first values of the variables of the loop.
output: The values when the loop ends.
T: The types of the variables.
cond: Takes the variables and returns one tensor. A scalar number is true unless it is 0, a scalar
  string unless it is empty, and any other tensor unless it has no elements.
body: Takes the variables and returns their next values.
output_shapes: The shapes of the variables, or an empty list if they are not known.
parallel_iterations: Not used.)"));
  if (is_stateful) op.Stateful();
}

}  // namespace

void Register(Registry& registry) {
  RegisterWhile(registry, "While", "Calls a function as long as another one returns true.", true);
  RegisterWhile(registry, "StatelessWhile",
                "Calls a function as long as another one returns true. Neither has side effects.",
                false);

  registry.Op("For")
      .Group("functional_ops")
      .Input("start: int32")
      .Input("limit: int32")
      .Input("delta: int32")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: list(type) >= 0")
      .Attr("body: func")
      .Functional(FunctionalOp::kFor)
      .Shape(ForShape)
      .Doc(R"(Calls a function for each number of a range.

    x = input
    for (i = start; i < limit; i += delta) x = body(i, x)
    output = x

start: A scalar: the first number.
limit: A scalar: the numbers are less if `delta` is positive, and greater if it is negative.
delta: A scalar: the difference of two numbers in a row, not 0.
input: The first values of the variables of the loop.
output: The values when the loop ends.
T: The types of the variables.
body: Takes the number, of type int32, and the variables, and returns their next values.)");
}

}  // namespace gradflow::loop
