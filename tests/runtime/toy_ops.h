// A registry of toy ops for the tests of the runtime, and a helper to build graphs of them.
//
//   Graph graph(ToyRegistry());
//   GRADFLOW_ASSERT_OK(AddToy(&graph, "x", "Placeholder", {}, {{"dtype", DT_FLOAT}}));
//   GRADFLOW_ASSERT_OK(AddToy(&graph, "y", "Neg", {"x"}, {{"T", DT_FLOAT}}));
#ifndef GRADFLOW_TESTS_RUNTIME_TOY_OPS_H_
#define GRADFLOW_TESTS_RUNTIME_TOY_OPS_H_

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
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

// The ops. Their tensors have type int64 unless the op has an attribute T or the list states
// another type. In the first part, * marks ops with cheap kernels; in the second part, it marks
// asynchronous ops. Ops are stateful if they have side effects or depend on more than their inputs,
// except the ops that are called not stateful here.
//
//   Placeholder*, Const*, Identity*, NoOp*   like TensorFlow's ops
//   _Arg, _Retval, If, While   like TensorFlow's ops
//   Less              compares two scalars
//   Neg, Add          elementwise, for T in {float, int64}; in place if possible. Neg also has a
//                     kernel for the device type NPU
//   AddN              adds any number of scalars
//   Mix               (a, b) -> (3 a - b, a ^ b)
//   Tick              returns its input and adds 1 to ToyCounter(counter)
//   TickPurely        like Tick, but not stateful
//   Reuse             float -> the input, in place if possible, and whether that was possible
//   ByType            returns its input if S is int64, or else the negated input
//   Fail              fails with INVALID_ARGUMENT `message`
//   Throw             throws the exception that `what` names
//   SetNothing, SetOtherType, SetUninitialized   violate the contract of kernels
//   SetFirst          (x) -> (1, nothing), which also violates the contract. Not stateful
//   LoopLimit         the largest number of threads that a loop may use; 0 for all
//   Even              can only be made if its attribute `n` is even
//   NoKernel          an op without a kernel
//   WaitFor           waits for `ms` milliseconds
//   Meet              waits until two Meet nodes run at once; returns false after 20 seconds
//   MeetInLoop        waits until two MeetInLoop nodes run at once. The node on thread ToyCaller()
//                     then ends. The other node waits in a loop until `n` blocks run at once.
//                     Returns false if either wait takes 20 seconds
//   ArenaSlots        the number of slots of the arena that runs the blocks of a parallel loop
//   Threads           the largest number of threads that ran blocks of a parallel loop at once
//   LoopForever       adds 1 to ToyCounter(counter), then loops until the run is stopped: in a
//                     parallel loop, or in a plain loop if `ask`
//   LoopForeverPurely like LoopForever, but not stateful
//   Cancel            returns its input and raises ToyCancelled()
//   WaitForCounter    waits until ToyCounter(counter) is at least `value`, at most 20 seconds
//   CountRuns         the number of runs of all nodes that share the resource (container, name)
//   Hooked            returns its input and calls the functions of ToyHooks(). Not stateful
//   MostAtOnce        adds 1 to ToyCounter(counter) and subtracts it 1 ms later; returns the
//   largest
//                     value of the counter that it has seen
//
//   Hold*             leaves a function in ToyHeld(); returns its input when another thread calls
//                     that function. If `stops`, it also ends when the run is stopped
//   HookedAsync*      returns its input; ToyHooks().compute_async ends it
//   Later*            returns its input, either at once or later from another thread
//   NegLater*         like Neg, but from another thread, and only for the device type NPU
//   Await*            ends when an Increment increases ToyCounter(counter); returns the counter
//   Increment         returns its input, increases ToyCounter(counter) and wakes each Await
//   Call*             returns the result of function `f` for its input. If `held`, leaves a
//   function
//                     in ToyHeld() that makes the call and returns whether the call was refused
//   Recurse*          n -> 0 if n is 0, or else 1 + the result of function `f` for n - 1
//   Branch            (x, flag) -> x as output 1 if `flag`, or else as output 0. The other output
//                     has no value
const Registry& ToyRegistry();

// Waits until every Later has ended, including the nodes of runs that are over.
void ToyWaitForLater();

// Ends the Hold nodes that are under way.
class ToyHeld {
 public:
  static ToyHeld& Get();
  void Add(std::function<bool()> end);
  int size() const;
  // Waits up to 20 seconds until there are `count` functions. Returns whether there are.
  bool WaitFor(int count) const;
  // Removes and returns all functions.
  std::vector<std::function<bool()>> TakeAll();

 private:
  mutable std::mutex mutex_;
  std::vector<std::function<bool()>> held_;
};

// Returns a counter for Tick and other ops. `index` is from 0 to 999.
std::atomic<int>& ToyCounter(int index);
// Returns the number of runs of Meet and MeetInLoop.
std::atomic<int>& ToyMeetings();
// Returns the id of the thread that calls Run, for MeetInLoop. Tests set it before a run.
std::thread::id& ToyCaller();

// Functions that Hooked calls when its kernel is created and when it runs, and that HookedAsync
// calls. The first two may be empty. Must not be changed during a run.
struct Hooks {
  std::function<void()> make;
  std::function<void(KernelContext&)> compute;
  std::function<void(KernelContext&, const AsyncDone&)> compute_async;
};
Hooks& ToyHooks();

// The flag that Cancel raises.
std::unique_ptr<CancelFlag>& ToyCancelled();
// Returns the number of resources that CountRuns has made.
int ToyResources();
// Returns the number of all threads of the process, including threads of oneTBB.
int NumThreadsOfThisProcess();

// An attribute of any type that SetAttrValue accepts.
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
