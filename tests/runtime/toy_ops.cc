#include "tests/runtime/toy_ops.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <stdexcept>
#include <thread>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace testing {
namespace {

using Clock = std::chrono::steady_clock;

// Converts to signed with wrap-around.
int64_t Wrap(uint64_t value) { return static_cast<int64_t>(value); }
float Negate(float x) { return -x; }
int64_t Negate(int64_t x) { return Wrap(-static_cast<uint64_t>(x)); }
float Sum(float x, float y) { return x + y; }
int64_t Sum(int64_t x, int64_t y) {
  return Wrap(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}

absl::Status SetScalar(KernelContext& ctx, int i, int64_t value) {
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, TensorShape(), &out));
  out->scalar<int64_t>()() = value;
  return absl::OkStatus();
}

absl::Status Unfed(KernelContext&) { return errors::InvalidArgument("must be fed"); }
absl::Status Nothing(KernelContext&) { return absl::OkStatus(); }
absl::Status PassOn(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
}

template <typename F>
absl::Status Elementwise(KernelContext& ctx, F fn) {
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &out));
  DispatchType(TypeList<float, int64_t>(), out->dtype(),
               [&](auto tag) { fn(tag, out->flat<typename decltype(tag)::type>()); });
  return absl::OkStatus();
}

absl::Status ComputeNeg(KernelContext& ctx) {
  return Elementwise(ctx, [&](auto tag, auto out) {
    const auto x = ctx.input(0).flat<typename decltype(tag)::type>();
    for (int64_t i = 0; i < x.size(); ++i) out(i) = Negate(x(i));
  });
}

absl::Status ComputeAdd(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "x", 1, "y"));
  return Elementwise(ctx, [&](auto tag, auto out) {
    const auto x = ctx.input(0).flat<typename decltype(tag)::type>();
    const auto y = ctx.input(1).flat<typename decltype(tag)::type>();
    for (int64_t i = 0; i < x.size(); ++i) out(i) = Sum(x(i), y(i));
  });
}

absl::Status ComputeAddN(KernelContext& ctx) {
  int64_t sum = 0;
  for (int i = 0; i < ctx.num_inputs(); ++i) sum = Sum(sum, ctx.input(i).scalar<int64_t>()());
  return SetScalar(ctx, 0, sum);
}

absl::Status ComputeMix(KernelContext& ctx) {
  const int64_t a = ctx.input(0).scalar<int64_t>()();
  const int64_t b = ctx.input(1).scalar<int64_t>()();
  GRADFLOW_RETURN_IF_ERROR(
      SetScalar(ctx, 0, Wrap(3 * static_cast<uint64_t>(a) - static_cast<uint64_t>(b))));
  return SetScalar(ctx, 1, a ^ b);
}

absl::Status ComputeReuse(KernelContext& ctx) {
  const void* const before = ctx.input(0).raw_data();
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &out));
  const bool reused = before != nullptr && out->raw_data() == before;
  const auto x = ctx.input(0).flat<float>();
  for (int64_t i = 0; i < x.size(); ++i) out->flat<float>()(i) = x(i);
  ctx.set_output(1, Tensor(reused));
  return absl::OkStatus();
}

absl::Status ComputeSetFirst(KernelContext& ctx) {
  ctx.set_output(0, Tensor(int64_t{1}));
  return absl::OkStatus();
}

absl::Status ComputeLoopLimit(KernelContext& ctx) {
  ctx.set_output(0, Tensor(int64_t{ctx.run().max_loop_threads}));
  return absl::OkStatus();
}

absl::Status ComputeSetOtherType(KernelContext& ctx) {
  ctx.set_output(0, Tensor(int32_t{1}));
  return absl::OkStatus();
}

absl::Status ComputeSetUninitialized(KernelContext& ctx) {
  ctx.set_output(0, Tensor(DT_INT64, TensorShape({-1})));
  return absl::OkStatus();
}

absl::Status ComputeCancel(KernelContext& ctx) {
  ToyCancelled()->Raise();
  return PassOn(ctx);
}

// Increments the number. Returns true once the number is at least `count`, or false after 20
// seconds.
bool MeetAt(std::atomic<int>* number, int64_t count) {
  number->fetch_add(1);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
  while (number->load() < count && Clock::now() < end) std::this_thread::yield();
  return number->load() >= count;
}

absl::Status ComputeMeet(KernelContext& ctx) {
  ctx.set_output(0, Tensor(MeetAt(&ToyMeetings(), 2)));
  return absl::OkStatus();
}

class MeetInLoopKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("n", &n_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    std::atomic<bool> met{MeetAt(&ToyMeetings(), 2)};
    if (std::this_thread::get_id() != ToyCaller()) {
      std::atomic<int> blocks{0};
      ParallelFor(ctx, n_, 1, [&](int64_t, int64_t) {
        if (!MeetAt(&blocks, n_)) met = false;
      });
    }
    ctx.set_output(0, Tensor(met.load()));
    return absl::OkStatus();
  }

 private:
  int64_t n_ = 0;
};

absl::Status ComputeArenaSlots(KernelContext& ctx) {
  std::atomic<int64_t> slots{0};
  ParallelFor(ctx, 2, 1,
              [&](int64_t, int64_t) { slots = tbb::this_task_arena::max_concurrency(); });
  return SetScalar(ctx, 0, slots);
}

absl::Status ComputeThreads(KernelContext& ctx) {
  // Counts threads at work, because threads may leave and be replaced.
  std::atomic<int64_t> now{0};
  std::atomic<int64_t> most{0};
  ParallelFor(ctx, 200, 1, [&](int64_t, int64_t) {
    const int64_t threads = ++now;
    for (int64_t before = most; before < threads && !most.compare_exchange_weak(before, threads);) {
    }
    for (const auto end = Clock::now() + std::chrono::microseconds(20); Clock::now() < end;) {
    }
    --now;
  });
  return SetScalar(ctx, 0, most);
}

class ConstKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("value", &value_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    ctx.set_output(0, value_);
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  Tensor value_;
};

class TickKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("counter", &counter_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    ToyCounter(counter_).fetch_add(1);
    return PassOn(ctx);
  }

 private:
  int32_t counter_ = 0;
};

class FailKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("message", &message_);
  }
  absl::Status Compute(KernelContext&) const override { return errors::InvalidArgument(message_); }

 private:
  std::string message_;
};

class ThrowKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("what", &what_);
  }
  absl::Status Compute(KernelContext&) const override {
    if (what_ == "memory") throw std::bad_alloc();
    if (what_ == "number") throw 1;
    throw std::runtime_error(what_);
  }

 private:
  std::string what_;
};

class EvenKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    int64_t n = 0;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("n", &n));
    if (n % 2 != 0) return errors::InvalidArgument("n must be even, but is ", n);
    if (n == 666) throw std::runtime_error("no such kernel");
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override { return PassOn(ctx); }
};

class WaitForKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("ms", &milliseconds_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(milliseconds_);
    while (Clock::now() < end) std::this_thread::yield();
    return PassOn(ctx);
  }

 private:
  int64_t milliseconds_ = 0;
};

class LoopForeverKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("counter", &counter_));
    return construction.GetAttr("ask", &ask_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    ToyCounter(counter_).fetch_add(1);
    if (ask_) {
      while (!ctx.ShouldStop()) std::this_thread::yield();
      return errors::Internal("what a stopped kernel says does not matter");
    }
    ParallelFor(ctx, INT64_MAX, 1, [](int64_t, int64_t) {});
    return PassOn(ctx);
  }

 private:
  int32_t counter_ = 0;
  bool ask_ = false;
};

class WaitForCounterKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("counter", &counter_));
    return construction.GetAttr("value", &value_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
    while (ToyCounter(counter_).load() < value_ && Clock::now() < end) std::this_thread::yield();
    return PassOn(ctx);
  }

 private:
  int32_t counter_ = 0;
  int32_t value_ = 0;
};

class MostAtOnceKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("counter", &counter_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    int most = ToyCounter(counter_).fetch_add(1) + 1;
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(1);
    while (Clock::now() < end) most = std::max(most, ToyCounter(counter_).load());
    ToyCounter(counter_).fetch_sub(1);
    return SetScalar(ctx, 0, most);
  }

 private:
  int32_t counter_ = 0;
};

class HookedKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction&) {
    if (ToyHooks().make != nullptr) ToyHooks().make();
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    if (ToyHooks().compute != nullptr) ToyHooks().compute(ctx);
    return PassOn(ctx);
  }
};

std::atomic<int> toy_resources{0};

class RunCounter final : public ResourceBase {
 public:
  RunCounter() { ++toy_resources; }
  ~RunCounter() override { --toy_resources; }
  std::string DebugString() const override { return std::to_string(runs.load()); }

  std::atomic<int64_t> runs{0};
};

class CountRunsKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("container", &container_));
    return construction.GetAttr("name", &name_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(
        const std::shared_ptr<RunCounter> counter,
        ctx.resource_manager()->LookupOrCreate<RunCounter>(
            container_, name_, [] { return std::make_shared<RunCounter>(); }));
    return SetScalar(ctx, 0, counter->runs.fetch_add(1) + 1);
  }

 private:
  std::string container_;
  std::string name_;
};

// Calls functions on a separate thread, in any order.
class LaterThread {
 public:
  static LaterThread& Get() {
    static auto* const thread = new LaterThread;
    return *thread;
  }
  void Add(std::function<void()> fn) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(fn));
    changed_.notify_all();
  }
  // Waits until all calls have ended.
  void WaitUntilIdle() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
  }

 private:
  LaterThread() {
    std::thread([this] { Work(); }).detach();
  }
  [[noreturn]] void Work() {
    std::mt19937 random(1);
    for (;;) {
      std::function<void()> fn;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !queue_.empty(); });
        std::swap(queue_[random() % queue_.size()], queue_.back());
        fn = std::move(queue_.back());
        queue_.pop_back();
        busy_ = true;
      }
      fn();
      fn = nullptr;
      const std::lock_guard<std::mutex> lock(mutex_);
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> queue_;
  bool busy_ = false;
};

class HoldKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("stops", &stops_);
  }
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    // The context is invalid once the node has ended.
    const auto ended = std::make_shared<std::atomic<bool>>(false);
    if (stops_) {
      const auto stop = [done, ended] {
        *ended = true;
        done(absl::CancelledError("given up"));
      };
      if (ctx.run().stop->AddCallback(stop) == 0) stop();
    }
    ToyHeld::Get().Add([&ctx, done, ended] {
      if (!ended->exchange(true)) ctx.set_output(0, ctx.input(0));
      return done(absl::OkStatus());
    });
  }

 private:
  bool stops_ = false;
};

class HookedAsyncKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    ctx.set_output(0, ctx.input(0));
    ToyHooks().compute_async(ctx, done);
  }
};

class LaterKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    static std::atomic<int> count{0};
    const auto end = [&ctx, done] { done(PassOn(ctx)); };
    // One of three nodes ends before this function returns.
    if (count.fetch_add(1) % 3 == 0) return end();
    LaterThread::Get().Add(end);
  }
};

class NegLaterKernel final : public AsyncOpKernel {
 public:
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    LaterThread::Get().Add([&ctx, done] { done(ComputeNeg(ctx)); });
  }
};

struct Awaiting {
  std::mutex mutex;
  std::multimap<int, AsyncDone> waiting;
};
Awaiting& ToyAwaiting() {
  static auto* const awaiting = new Awaiting;
  return *awaiting;
}

class AwaitKernel final : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("counter", &counter_);
  }
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    ctx.set_output(0, Tensor(int64_t{1}));
    const std::lock_guard<std::mutex> lock(ToyAwaiting().mutex);
    if (ToyCounter(counter_) > 0) {
      done(absl::OkStatus());
    } else {
      ToyAwaiting().waiting.emplace(counter_, done);
    }
  }

 private:
  int counter_ = 0;
};

class IncrementKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("counter", &counter_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const std::lock_guard<std::mutex> lock(ToyAwaiting().mutex);
    ++ToyCounter(counter_);
    auto& waiting = ToyAwaiting().waiting;
    const auto [begin, end] = waiting.equal_range(counter_);
    for (auto it = begin; it != end; ++it) it->second(absl::OkStatus());
    waiting.erase(begin, end);
    return PassOn(ctx);
  }

 private:
  int counter_ = 0;
};

class CallKernel : public AsyncOpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("held", &held_));
    return construction.GetAttr("f", &function_);
  }
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    if (!held_) return Call(ctx, ctx.input(0), 0, done);
    ToyHeld::Get().Add([this, &ctx, done] {
      Call(ctx, ctx.input(0), 0, done);
      // A refused call has already called done().
      return !done(absl::CancelledError("the call was not refused"));
    });
  }

 protected:
  // Sets output 0 to the function's result for `arg`, plus `add`.
  void Call(KernelContext& ctx, const Tensor& arg, int64_t add, const AsyncDone& done) const {
    FunctionRunner* const functions = ctx.run().functions;
    const auto function = functions->Find(function_);
    if (!function.ok()) {
      done(function.status());
      return;
    }
    functions->RunAsync(*function, ctx, {arg},
                        [&ctx, add, done](absl::Status status, std::vector<Tensor> results) {
                          if (status.ok()) {
                            ctx.set_output(0, Tensor(results[0].scalar<int64_t>()() + add));
                          }
                          done(std::move(status));
                        });
  }

 private:
  std::string function_;
  bool held_ = false;
};

class RecurseKernel final : public CallKernel {
 public:
  void ComputeAsync(KernelContext& ctx, AsyncDone done) const override {
    const int64_t n = ctx.input(0).scalar<int64_t>()();
    if (n == 0) {
      ctx.set_output(0, Tensor(int64_t{0}));
      done(absl::OkStatus());
    } else {
      Call(ctx, Tensor(n - 1), 1, done);
    }
  }
};

absl::Status ComputeLess(KernelContext& ctx) {
  const bool less = ctx.input(0).scalar<int64_t>()() < ctx.input(1).scalar<int64_t>()();
  ctx.set_output(0, Tensor(less));
  return absl::OkStatus();
}

absl::Status ComputeBranch(KernelContext& ctx) {
  const int taken = ctx.input(1).scalar<bool>()() ? 1 : 0;
  ctx.set_output(taken, ctx.input(0));
  ctx.SetOutputDead(1 - taken);
  return absl::OkStatus();
}

void RegisterAsyncToys(Registry& registry) {
  registry.Op("Hold").Stateful().Input("x: int64").Output("y: int64").Attr("stops: bool = false");
  registry.Kernel("Hold", MakeKernel<HoldKernel>);
  registry.Op("HookedAsync").Stateful().Input("x: int64").Output("y: int64");
  registry.Kernel("HookedAsync", MakeKernel<HookedAsyncKernel>);
  registry.Op("Later").Input("x: int64").Output("y: int64").Stateful();
  registry.Kernel("Later", MakeKernel<LaterKernel>);
  registry.Op("NegLater").Input("x: T").Output("y: T").Attr("T: {float, int64}").Stateful();
  registry.Kernel("NegLater", MakeKernel<NegLaterKernel>).Device("NPU");
  registry.Op("Await").Stateful().Output("y: int64").Attr("counter: int");
  registry.Kernel("Await", MakeKernel<AwaitKernel>);
  registry.Op("Increment").Stateful().Input("x: int64").Output("y: int64").Attr("counter: int");
  registry.Kernel("Increment", MakeKernel<IncrementKernel>);
  for (const char* op : {"Call", "Recurse"}) {
    registry.Op(op)
        .Stateful()
        .Input("x: int64")
        .Output("y: int64")
        .Attr("f: string")
        .Attr("held: bool = false");
  }
  registry.Kernel("Call", MakeKernel<CallKernel>);
  registry.Kernel("Recurse", MakeKernel<RecurseKernel>);
  registry.Op("Branch")
      .Input("x: int64")
      .Input("flag: bool")
      .Output("no: int64")
      .Output("yes: int64");
  registry.Kernel("Branch", MakeFunctionKernel<ComputeBranch>);
}

void RegisterToys(Registry& registry) {
  RegisterAsyncToys(registry);
  registry.Op("Placeholder")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape = { unknown_rank: true }");
  registry.Kernel("Placeholder", MakeFunctionKernel<Unfed, /*Cheap=*/true>);
  registry.Op("Const").Output("output: dtype").Attr("value: tensor").Attr("dtype: type");
  registry.Kernel("Const", MakeKernel<ConstKernel>);
  registry.Op("Identity").Input("x: T").Output("y: T").Attr("T: type");
  registry.Kernel("Identity", MakeFunctionKernel<PassOn, /*Cheap=*/true>);
  registry.Op("NoOp");
  registry.Kernel("NoOp", MakeFunctionKernel<Nothing, /*Cheap=*/true>);
  for (const auto& [op, functional] :
       {std::pair("_Arg", FunctionalOp::kArg), std::pair("_Retval", FunctionalOp::kRetval)}) {
    Registry::OpRegistrar end = registry.Op(op);
    functional == FunctionalOp::kArg ? end.Output("output: T") : end.Input("input: T");
    end.Attr("T: type").Attr("index: int >= 0").Functional(functional);
  }
  registry.Op("If")
      .Input("cond: bool")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: list(type)")
      .Attr("then_branch: func")
      .Attr("else_branch: func")
      .Functional(FunctionalOp::kIf);
  registry.Op("While")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: list(type)")
      .Attr("cond: func")
      .Attr("body: func")
      .Functional(FunctionalOp::kWhile);
  registry.Op("Less").Input("x: int64").Input("y: int64").Output("z: bool");
  registry.Kernel("Less", MakeFunctionKernel<ComputeLess>);
  registry.Op("Neg").Input("x: T").Output("y: T").Attr("T: {float, int64}");
  registry.Kernel("Neg", MakeFunctionKernel<ComputeNeg>);
  registry.Kernel("Neg", MakeFunctionKernel<ComputeNeg>).Device("NPU");
  registry.Op("Add").Input("x: T").Input("y: T").Output("z: T").Attr("T: {float, int64}");
  registry.Kernel("Add", MakeFunctionKernel<ComputeAdd>);
  registry.Op("AddN").Input("x: N * int64").Output("y: int64").Attr("N: int >= 1");
  registry.Kernel("AddN", MakeFunctionKernel<ComputeAddN>);
  registry.Op("Mix").Input("a: int64").Input("b: int64").Output("x: int64").Output("y: int64");
  registry.Kernel("Mix", MakeFunctionKernel<ComputeMix>);
  registry.Op("Tick").Stateful().Input("x: int64").Output("y: int64").Attr("counter: int");
  registry.Kernel("Tick", MakeKernel<TickKernel>);
  registry.Op("TickPurely").Input("x: int64").Output("y: int64").Attr("counter: int");
  registry.Kernel("TickPurely", MakeKernel<TickKernel>);
  registry.Op("Reuse").Input("x: float").Output("y: float").Output("reused: bool");
  registry.Kernel("Reuse", MakeFunctionKernel<ComputeReuse>);
  registry.Op("ByType").Input("x: int64").Output("y: int64").Attr("S: {float, int64}");
  registry.Kernel("ByType", MakeFunctionKernel<PassOn>).Type<int64_t>("S");
  registry.Kernel("ByType", MakeFunctionKernel<ComputeNeg>).Type<float>("S");
  registry.Op("Fail").Input("x: int64").Output("y: int64").Attr("message: string = 'failed'");
  registry.Kernel("Fail", MakeKernel<FailKernel>);
  registry.Op("Throw").Output("y: int64").Attr("what: string");
  registry.Kernel("Throw", MakeKernel<ThrowKernel>);
  for (const char* op : {"SetNothing", "SetOtherType", "SetUninitialized", "NoKernel"}) {
    registry.Op(op).Output("y: int64");
  }
  registry.Op("SetFirst").Input("x: int64").Output("y: int64").Output("z: int64");
  registry.Kernel("SetFirst", MakeFunctionKernel<ComputeSetFirst>);
  registry.Op("LoopLimit").Stateful().Output("threads: int64");
  registry.Kernel("LoopLimit", MakeFunctionKernel<ComputeLoopLimit>);
  registry.Kernel("SetNothing", MakeFunctionKernel<Nothing>);
  registry.Kernel("SetOtherType", MakeFunctionKernel<ComputeSetOtherType>);
  registry.Kernel("SetUninitialized", MakeFunctionKernel<ComputeSetUninitialized>);
  registry.Op("Even").Input("x: int64").Output("y: int64").Attr("n: int");
  registry.Kernel("Even", MakeKernel<EvenKernel>);
  registry.Op("WaitFor").Stateful().Input("x: int64").Output("y: int64").Attr("ms: int");
  registry.Kernel("WaitFor", MakeKernel<WaitForKernel>);
  registry.Op("Meet").Stateful().Output("met: bool");
  registry.Kernel("Meet", MakeFunctionKernel<ComputeMeet>);
  registry.Op("Threads").Stateful().Output("number: int64");
  registry.Kernel("Threads", MakeFunctionKernel<ComputeThreads>);
  registry.Op("MeetInLoop").Stateful().Output("met: bool").Attr("n: int");
  registry.Kernel("MeetInLoop", MakeKernel<MeetInLoopKernel>);
  registry.Op("ArenaSlots").Stateful().Output("number: int64");
  registry.Kernel("ArenaSlots", MakeFunctionKernel<ComputeArenaSlots>);
  registry.Op("LoopForever")
      .Stateful()
      .Input("x: int64")
      .Output("y: int64")
      .Attr("counter: int")
      .Attr("ask: bool = false");
  registry.Kernel("LoopForever", MakeKernel<LoopForeverKernel>);
  registry.Op("LoopForeverPurely")
      .Input("x: int64")
      .Output("y: int64")
      .Attr("counter: int")
      .Attr("ask: bool = false");
  registry.Kernel("LoopForeverPurely", MakeKernel<LoopForeverKernel>);
  registry.Op("WaitForCounter")
      .Stateful()
      .Input("x: int64")
      .Output("y: int64")
      .Attr("counter: int")
      .Attr("value: int");
  registry.Kernel("WaitForCounter", MakeKernel<WaitForCounterKernel>);
  registry.Op("Cancel").Stateful().Input("x: int64").Output("y: int64");
  registry.Kernel("Cancel", MakeFunctionKernel<ComputeCancel>);
  registry.Op("CountRuns")
      .Output("runs: int64")
      .Attr("container: string = ''")
      .Attr("name: string")
      .Stateful();
  registry.Kernel("CountRuns", MakeKernel<CountRunsKernel>);
  registry.Op("Hooked").Input("x: int64").Output("y: int64");
  registry.Kernel("Hooked", MakeKernel<HookedKernel>);
  registry.Op("MostAtOnce").Stateful().Input("x: int64").Output("most: int64").Attr("counter: int");
  registry.Kernel("MostAtOnce", MakeKernel<MostAtOnceKernel>);
}

}  // namespace

const Registry& ToyRegistry() {
  static const Registry* const registry = [] {
    auto* r = new Registry;
    RegisterToys(*r);
    return r;
  }();
  return *registry;
}

void ToyWaitForLater() { LaterThread::Get().WaitUntilIdle(); }

ToyHeld& ToyHeld::Get() {
  static auto* const held = new ToyHeld;
  return *held;
}

void ToyHeld::Add(std::function<bool()> end) {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_.push_back(std::move(end));
}

int ToyHeld::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(held_.size());
}

bool ToyHeld::WaitFor(int count) const {
  const Clock::time_point end = Clock::now() + std::chrono::seconds(20);
  while (size() < count && Clock::now() < end) std::this_thread::yield();
  return size() >= count;
}

std::vector<std::function<bool()>> ToyHeld::TakeAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(held_, {});
}

std::atomic<int>& ToyCounter(int index) {
  static std::array<std::atomic<int>, 1000> counters{};
  return counters.at(index);
}

std::unique_ptr<CancelFlag>& ToyCancelled() {
  static auto cancelled = std::make_unique<CancelFlag>();
  return cancelled;
}

Hooks& ToyHooks() {
  static Hooks* const hooks = new Hooks;
  return *hooks;
}

int ToyResources() { return toy_resources; }

int NumThreadsOfThisProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

std::atomic<int>& ToyMeetings() {
  static std::atomic<int> meetings{0};
  return meetings;
}

std::thread::id& ToyCaller() {
  static std::thread::id caller;
  return caller;
}

NodeDef ToyNode(const std::string& name, const std::string& op,
                const std::vector<std::string>& inputs, const ToyAttrs& attrs) {
  NodeDef node;
  node.set_name(name);
  node.set_op(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const ToyAttr& attr : attrs) (*node.mutable_attr())[attr.name] = attr.value;
  return node;
}

absl::Status AddToy(Graph* graph, const std::string& name, const std::string& op,
                    const std::vector<std::string>& inputs, const ToyAttrs& attrs) {
  return graph->AddNode(ToyNode(name, op, inputs, attrs)).status();
}

Tensor Int(int64_t value) { return Tensor(value); }

Tensor Floats(std::initializer_list<float> values) {
  Tensor tensor(DT_FLOAT, TensorShape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), tensor.flat<float>().begin());
  return tensor;
}

}  // namespace testing
}  // namespace gradflow
