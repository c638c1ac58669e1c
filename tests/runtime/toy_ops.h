// A registry of toy ops for the tests of the runtime, and a short way to write graphs of them.
//
//   Graph graph(ToyRegistry());
//   GRADFLOW_ASSERT_OK(AddToy(&graph, "x", "Placeholder", {}, {{"dtype", DT_FLOAT}}));
//   GRADFLOW_ASSERT_OK(AddToy(&graph, "y", "Neg", {"x"}, {{"T", DT_FLOAT}}));
#ifndef GRADFLOW_TESTS_RUNTIME_TOY_OPS_H_
#define GRADFLOW_TESTS_RUNTIME_TOY_OPS_H_

#include <atomic>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/graph.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow {
namespace testing {

// The ops, for int64 unless there is a T. Those marked * say that they are cheap. Those that do or
// see more than their inputs and outputs are stateful.
//
//   Placeholder*, Const*, Identity*, NoOp*   as usual
//   Neg, Add          elementwise, of any T in {float, int64}; in place if they may
//   AddN              of any number of equal scalars
//   Mix               (a, b) -> (3 a - b, a ^ b)
//   Tick              passes on its input and adds 1 to ToyCounter(counter)
//   Reuse             float -> itself in place if it may, and whether it could
//   Fail              INVALID_ARGUMENT `message`
//   Throw             throws what `what` says
//   SetNothing, SetOtherType, SetUninitialized   what a kernel may not do
//   Even              cannot be made unless its attribute `n` is even
//   NoKernel          has none
//   WaitFor           lasts until the clock has gone on by `ms`
//   Meet              waits until two of it run at once: whether they did, in 20 seconds
//   Threads           the most threads at once that ran blocks of a parallel loop
//   LoopForever       adds 1 to ToyCounter(counter), then lasts until the run is stopped: in a
//                     parallel loop, or if `ask` in a loop of its own
//   LoopForeverPurely the same, but not stateful
//   Cancel            passes on its input and makes ToyCancelled() true
//   WaitForCounter    lasts until ToyCounter(counter) is at least `value`, or 20 seconds
//   CountRuns         how often one of the resource (container, name) has been run
//   Hooked            passes on its input; does what ToyHooks() say. Not stateful
//   MostAtOnce        adds 1 to ToyCounter(counter) and takes it off again 1 ms later; the most
//                     that it has seen there
const Registry& ToyRegistry();

// A counter of the Tick ops and others, from 0 to 999.
std::atomic<int>& ToyCounter(int index);
// How often a Meet has been run.
std::atomic<int>& ToyMeetings();

// What Hooked does when its kernel is made and when it runs; nothing if empty. To be changed while
// none of them does either.
struct Hooks {
  std::function<void()> make;
  std::function<void(KernelContext&)> compute;
};
Hooks& ToyHooks();

// Set by Cancel.
std::atomic<bool>& ToyCancelled();
// How many resources of CountRuns there are.
int ToyResources();
// Of all kinds, also those of oneTBB.
int NumThreadsOfThisProcess();

// An attribute of any type that SetAttrValue takes.
struct ToyAttr {
  template <typename T>
  ToyAttr(const char* n, const T& v) : name(n) {
    SetAttrValue(v, &value);
  }
  std::string name;
  AttrValue value;
};
using ToyAttrs = std::vector<ToyAttr>;

NodeDef ToyNode(const std::string& name, const std::string& op,
                const std::vector<std::string>& inputs, const ToyAttrs& attrs = {});
absl::Status AddToy(Graph* graph, const std::string& name, const std::string& op,
                    const std::vector<std::string>& inputs, const ToyAttrs& attrs = {});

Tensor Int(int64_t value);
Tensor Floats(std::initializer_list<float> values);

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_RUNTIME_TOY_OPS_H_
