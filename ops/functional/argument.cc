// _Arg, _Retval, _DeviceArg and _DeviceRetval: the arguments and results in the graph of a
// function.
#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"

namespace gradflow::argument {
namespace {

constexpr char kDevice[] = ", in memory of the device";

// No class is generated for ops whose names begin with an underscore.
void RegisterArg(Registry& registry, const char* name, const char* place) {
  registry.Op(name)
      .Group("functional_ops")
      .Output("output: T")
      .Attr("T: type")
      .Attr("index: int >= 0")
      .Stateful()
      .Functional(FunctionalOp::kArg)
      .Shape(UnknownShape)
      .Doc(absl::StrCat("Returns an argument of the function that the node belongs to", place, R"(.

output: The argument.
T: The type of the argument.
index: The number of the argument, from 0.)"));
}

void RegisterRetval(Registry& registry, const char* name, const char* place) {
  registry.Op(name)
      .Group("functional_ops")
      .Input("input: T")
      .Attr("T: type")
      .Attr("index: int >= 0")
      .Stateful()
      .Functional(FunctionalOp::kRetval)
      .Shape(UnknownShape)
      .Doc(absl::StrCat("Makes a tensor a result of the function that the node belongs to", place,
                        R"(.

input: The result.
T: The type of the result.
index: The number of the result, from 0.)"));
}

}  // namespace

void Register(Registry& registry) {
  RegisterArg(registry, "_Arg", "");
  RegisterArg(registry, "_DeviceArg", kDevice);
  RegisterRetval(registry, "_Retval", "");
  RegisterRetval(registry, "_DeviceRetval", kDevice);
}

}  // namespace gradflow::argument
