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

// The ops, for int64 unless there is a T. Kernels of ops marked * are cheap. Ops with side effects,
// or that depend on more than their inputs, are stateful.
//
//   Placeholder*, Const*, Identity*, NoOp*   as usual
//   Neg, Add          elementwise, for T in {float, int64}; in place if possible. Neg also on NPUs
//   AddN              adds any number of equal scalars
//   Mix               (a, b) -> (3 a - b, a ^ b)
//   Tick              passes on its input and adds 1 to ToyCounter(counter)
//   Reuse             float -> itself in place if it may, and whether it could
//   ByType            passes on its input if S is int64, or else its negative
//   Fail              INVALID_ARGUMENT `message`
//   Throw             throws what `what` says
//   SetNothing, SetOtherType, SetUninitialized   what a kernel may not do
//   SetFirst          (x) -> (1, nothing), which a kernel may not do either. Not stateful
//   LoopLimit         the largest number of threads that a loop may take; 0 for all
//   Even              cannot be made unless its attribute `n` is even
//   NoKernel          has none
//   WaitFor           lasts until the clock has gone on by `ms`
//   Meet              waits until two of it run at once: whether they did, in 20 seconds
//   MeetInLoop        waits until two of it run at once. Then the one on the thread ToyCaller()
//   ends,
//                     and the other waits in a loop until `n` of its blocks run at once: whether
//                     both did, in 20 seconds
//   ArenaSlots        the slots of the arena in which blocks of a parallel loop run
//   Threads           the most threads at once that ran blocks of a parallel loop
//   LoopForever       adds 1 to ToyCounter(counter), then lasts until the run is stopped: in a
//                     parallel loop, or if `ask` in a loop of its own
//   LoopForeverPurely the same, but not stateful
//   Cancel            passes on its input and makes ToyCancelled() raised
//   WaitForCounter    lasts until ToyCounter(counter) is at least `value`, or 20 seconds
//   CountRuns         how often one of the resource (container, name) has been run
//   Hooked            passes on its input; does what ToyHooks() say. Not stateful
//   MostAtOnce        adds 1 to ToyCounter(counter) and takes it off again 1 ms later; the most
//                     that it has seen there
//   Hold*             passes on its input when another thread calls what it leaves in ToyHeld();
//                     ends by itself when the run is stopped, if `stops`
//   HookedAsync*      passes on its input; ToyHooks().compute_async ends it
//   Later*            passes on its input from another thread, some time, or at once
//   NegLater*         Neg from another thread, on NPUs alone
//   Await*            ends when ToyCounter(counter) is raised by an Increment, with its value
//   Increment         passes on its input, raises ToyCounter(counter) and wakes each Await
//   Call*             what function `f` makes of its input. If `held`, calls it when another thread
//                     calls what it leaves in ToyHeld(), which returns whether the call was refused
//   Recurse*          n -> 0 for 0, or else 1 + what function `f` makes of n - 1
//   Branch            (x, flag) -> x as output 1 if `flag`, or else 0; the other has no value
// In this second part, * marks asynchronous ops.
const Registry& ToyRegistry();

// Waits until every Later has ended, also those of runs that are over.
void ToyWaitForLater();

// Ends the Hold nodes that are under way.
class ToyHeld {
 public:
  static ToyHeld& Get();
  void Add(std::function<bool()> end);
  int size() const;
  // Waits until there are as many, in 20 seconds; returns whether there are.
  bool WaitFor(int count) const;
  // Takes all.
  std::vector<std::function<bool()>> TakeAll();

 private:
  mutable std::mutex mutex_;
  std::vector<std::function<bool()>> held_;
};

// A counter of the Tick ops and others, from 0 to 999.
std::atomic<int>& ToyCounter(int index);
// Returns the number of runs of Meet and MeetInLoop.
std::atomic<int>& ToyMeetings();
// The thread that calls Run, for MeetInLoop. Must not be changed meanwhile.
std::thread::id& ToyCaller();

// Functions that Hooked calls when its kernel is created and when it runs, and that HookedAsync
// calls. The first two may be empty. Must not be changed meanwhile.
struct Hooks {
  std::function<void()> make;
  std::function<void(KernelContext&)> compute;
  std::function<void(KernelContext&, const AsyncDone&)> compute_async;
};
Hooks& ToyHooks();

// The flag that Cancel sets.
std::unique_ptr<CancelFlag>& ToyCancelled();
// Returns the number of resources of CountRuns.
int ToyResources();
// Returns the number of all threads of the process, including those of oneTBB.
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
