// Tests of Rendezvous and CancellationManager objects that a program makes.
#include "tensorflow/core/framework/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/notification.h"

namespace tensorflow {
namespace rendezvous_test {

using ::testing::ElementsAre;

constexpr char kCpu[] = "/job:a/replica:0/task:1/device:CPU:0";

Rendezvous::ParsedKey Key(const std::string& name) {
  Rendezvous::ParsedKey key;
  TF_CHECK_OK(
      Rendezvous::ParseKey(Rendezvous::CreateKey(kCpu, 26, kCpu, name, FrameAndIter(0, 0)), &key));
  return key;
}

struct Fixture {
  core::RefCountPtr<Rendezvous> rendezvous{NewLocalRendezvous()};
  Rendezvous::Args args;

  absl::Status Send(const std::string& name, int32 value) {
    return rendezvous->Send(Key(name), args, test::AsScalar<int32>(value), false);
  }
  absl::StatusOr<int32> Receive(const std::string& name) {
    Tensor tensor;
    bool is_dead;
    TF_RETURN_IF_ERROR(rendezvous->Recv(Key(name), args, &tensor, &is_dead));
    return tensor.scalar<int32>()();
  }
  // Adds the received value, or the code of the error, to *results.
  void ReceiveLater(const std::string& name, const Rendezvous::Args& receiver,
                    std::vector<std::string>* results) {
    rendezvous->RecvAsync(Key(name), receiver,
                          [results](const absl::Status& status, const Rendezvous::Args&,
                                    const Rendezvous::Args&, const Tensor& tensor, bool) {
                            results->push_back(status.ok()
                                                   ? absl::StrCat(tensor.scalar<int32>()())
                                                   : absl::StatusCodeToString(status.code()));
                          });
  }
};

TEST(RendezvousTest, KeysHaveFiveParts) {
  const std::string text = Rendezvous::CreateKey(kCpu, 26, "/job:b/replica:2/task:3/device:GPU:1",
                                                 "x:0", FrameAndIter(4, 5));
  EXPECT_EQ(text, absl::StrCat(kCpu, ";000000000000001a;/job:b/replica:2/task:3/device:GPU:1;x:0;",
                               "4:5"));
  Rendezvous::ParsedKey copy;
  {
    Rendezvous::ParsedKey key;
    TF_ASSERT_OK(Rendezvous::ParseKey(text, &key));
    copy = key;
  }
  // The views of the copy point into the copy.
  EXPECT_EQ(copy.FullKey(), text);
  EXPECT_EQ(copy.src_device, kCpu);
  EXPECT_EQ(copy.src.job, "a");
  EXPECT_EQ(copy.src_incarnation, 26);
  EXPECT_EQ(copy.dst_device, "/job:b/replica:2/task:3/device:GPU:1");
  EXPECT_EQ(copy.dst.type, "GPU");
  EXPECT_EQ(copy.edge_name, "x:0");
  EXPECT_EQ(copy.edge_name.data(), copy.FullKey().data() + text.find("x:0"));
  EXPECT_EQ(Rendezvous::ParsedKey(Rendezvous::ParsedKey()).edge_name, "");

  Rendezvous::ParsedKey key;
  for (const std::string& bad :
       {std::string("a;b;c"), text + ";", std::string(kCpu) + ";1a;" + kCpu + ";;0:0",
        std::string(kCpu) + ";xy;" + kCpu + ";x;0:0", std::string(kCpu) + ";1a;" + kCpu + ";x;",
        "no device;1a;" + std::string(kCpu) + ";x;0:0",
        std::string(kCpu) + ";1a;no device;x;0:0"}) {
    EXPECT_EQ(Rendezvous::ParseKey(bad, &key).code(), error::INVALID_ARGUMENT) << bad;
  }
}

TEST(RendezvousTest, PassesTensorsInOrder) {
  Fixture f;
  TF_ASSERT_OK(f.Send("x", 1));
  TF_ASSERT_OK(f.Send("y", 10));
  TF_ASSERT_OK(f.Send("x", 2));
  EXPECT_EQ(f.Receive("x").value(), 1);
  std::vector<std::string> results;
  f.ReceiveLater("x", f.args, &results);
  f.ReceiveLater("x", f.args, &results);
  f.ReceiveLater("x", f.args, &results);
  TF_ASSERT_OK(f.Send("x", 3));
  TF_ASSERT_OK(f.Send("x", 4));
  TF_ASSERT_OK(f.Send("x", 5));
  EXPECT_EQ(f.Receive("x").value(), 5);
  EXPECT_THAT(results, ElementsAre("2", "3", "4"));
  EXPECT_EQ(f.Receive("y").value(), 10);
}

TEST(RendezvousTest, WaitsForAnotherThread) {
  Fixture f;
  std::thread sender([&f] { TF_CHECK_OK(f.Send("x", f.Receive("start").value() + 1)); });
  TF_ASSERT_OK(f.Send("start", 6));
  EXPECT_EQ(f.Receive("x").value(), 7);
  sender.join();
}

TEST(RendezvousTest, PassesOnArgumentsAndDeadness) {
  class Context : public DeviceContext {};
  Fixture f;
  const core::RefCountPtr<Context> sent(new Context);
  const core::RefCountPtr<Context> received(new Context);
  Rendezvous::Args sender, receiver;
  sender.device_context = sent.get();
  receiver.device_context = received.get();
  TF_ASSERT_OK(f.rendezvous->Send(Key("x"), sender, test::AsScalar<int32>(1), true));
  // The rendezvous holds a reference until the tensor is received.
  EXPECT_EQ(sent->RefCount(), 2);
  int calls = 0;
  f.rendezvous->RecvAsync(Key("x"), receiver,
                          [&](const absl::Status& status, const Rendezvous::Args& from,
                              const Rendezvous::Args& to, const Tensor&, bool is_dead) {
                            TF_EXPECT_OK(status);
                            EXPECT_EQ(from.device_context, sent.get());
                            EXPECT_EQ(to.device_context, received.get());
                            EXPECT_TRUE(is_dead);
                            ++calls;
                          });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(sent->RefCount(), 1);
  EXPECT_EQ(received->RefCount(), 1);
}

TEST(RendezvousTest, CancellationEndsTheWaitsOfItsManager) {
  Fixture f;
  std::vector<std::string> results;
  CancellationManager manager;
  Rendezvous::Args cancellable;
  cancellable.cancellation_manager = &manager;
  f.ReceiveLater("x", cancellable, &results);
  f.ReceiveLater("x", f.args, &results);
  f.ReceiveLater("x", cancellable, &results);
  TF_ASSERT_OK(f.Send("x", 1));
  EXPECT_THAT(results, ElementsAre("1"));
  manager.StartCancel();
  EXPECT_THAT(results, ElementsAre("1", "CANCELLED"));
  f.ReceiveLater("x", cancellable, &results);
  EXPECT_THAT(results, ElementsAre("1", "CANCELLED", "CANCELLED"));
  TF_ASSERT_OK(f.Send("x", 2));
  EXPECT_THAT(results, ElementsAre("1", "CANCELLED", "CANCELLED", "2"));
  // A tensor that has already arrived is still received.
  TF_ASSERT_OK(f.Send("x", 3));
  f.ReceiveLater("x", cancellable, &results);
  EXPECT_EQ(results.back(), "3");
}

TEST(RendezvousTest, CancellationLeavesOtherWaitsOfAKey) {
  Fixture f;
  std::vector<std::string> results;
  std::vector<std::string> cancelled;
  CancellationManager manager;
  Rendezvous::Args cancellable;
  cancellable.cancellation_manager = &manager;
  f.ReceiveLater("x", f.args, &results);
  f.ReceiveLater("x", cancellable, &cancelled);
  manager.StartCancel();
  EXPECT_THAT(cancelled, ElementsAre("CANCELLED"));
  EXPECT_THAT(results, ElementsAre());
  TF_ASSERT_OK(f.Send("x", 1));
  EXPECT_THAT(results, ElementsAre("1"));
}

TEST(RendezvousTest, CancellationKeepsTheOrderOfOtherWaits) {
  class Context : public DeviceContext {};
  Fixture f;
  CancellationManager manager;
  std::vector<std::string> results;
  std::vector<core::RefCountPtr<Context>> contexts;
  for (int i = 0; i < 5; ++i) {
    contexts.emplace_back(new Context);
    Rendezvous::Args args;
    args.device_context = contexts[i].get();
    if (i == 2) args.cancellation_manager = &manager;
    f.rendezvous->RecvAsync(Key("x"), args,
                            [&, i](const absl::Status& status, const Rendezvous::Args& from,
                                   const Rendezvous::Args& to, const Tensor& tensor, bool is_dead) {
                              EXPECT_EQ(to.device_context, contexts[i].get());
                              EXPECT_EQ(from.device_context, nullptr);
                              EXPECT_FALSE(is_dead);
                              results.push_back(status.ok()
                                                    ? absl::StrCat(i, ":", tensor.scalar<int32>()())
                                                    : std::string(status.message()));
                            });
  }
  manager.StartCancel();
  for (int i = 0; i < 4; ++i) TF_ASSERT_OK(f.Send("x", i));
  EXPECT_THAT(results, ElementsAre("RecvAsync is cancelled.", "0:0", "1:1", "3:2", "4:3"));
  for (const auto& context : contexts) EXPECT_EQ(context->RefCount(), 1);
}

TEST(RendezvousTest, RecvReturnsDeadnessAndErrors) {
  Fixture f;
  TF_ASSERT_OK(f.rendezvous->Send(Key("x"), f.args, test::AsScalar<int32>(7), /*is_dead=*/true));
  TF_ASSERT_OK(f.Send("x", 8));
  Tensor tensor;
  bool is_dead = false;
  TF_ASSERT_OK(f.rendezvous->Recv(Key("x"), f.args, &tensor, &is_dead));
  EXPECT_TRUE(is_dead);
  EXPECT_EQ(tensor.scalar<int32>()(), 7);
  TF_ASSERT_OK(f.rendezvous->Recv(Key("x"), f.args, &tensor, &is_dead, -1));
  EXPECT_FALSE(is_dead);
  EXPECT_EQ(f.rendezvous->Recv(Key("x"), f.args, &tensor, &is_dead, 1).message(),
            absl::StrCat("no tensor of key '", Key("x").FullKey(), "' within 1 ms"));
  f.rendezvous->StartAbort(errors::Aborted("first"));
  f.rendezvous->StartAbort(errors::Internal("second"));
  EXPECT_EQ(f.rendezvous->Recv(Key("x"), f.args, &tensor, &is_dead, 1).message(), "first");
  EXPECT_EQ(f.Send("x", 9).message(), "first");
  Rendezvous::ParsedKey key = Key("x");
  const Rendezvous::ParsedKey& self = key;
  key = self;
  EXPECT_EQ(key.edge_name, "x");
  EXPECT_EQ(key.dst.type, "CPU");
}

TEST(RendezvousTest, AManagerMayOutliveTheRendezvous) {
  CancellationManager manager;
  std::vector<std::string> results;
  {
    Fixture f;
    Rendezvous::Args cancellable;
    cancellable.cancellation_manager = &manager;
    f.ReceiveLater("x", cancellable, &results);
  }
  EXPECT_THAT(results, ElementsAre("CANCELLED"));
  manager.StartCancel();
  EXPECT_THAT(results, ElementsAre("CANCELLED"));
}

TEST(RendezvousTest, AbortEndsAllWaits) {
  Fixture f;
  std::vector<std::string> results;
  f.ReceiveLater("x", f.args, &results);
  TF_ASSERT_OK(f.Send("y", 1));
  f.rendezvous->StartAbort(errors::Aborted("stop"));
  EXPECT_THAT(results, ElementsAre("ABORTED"));
  f.rendezvous->StartAbort(errors::Internal("later"));
  EXPECT_EQ(f.Receive("y").status().code(), error::ABORTED);
  EXPECT_EQ(f.Send("y", 2).code(), error::ABORTED);
}

TEST(RendezvousTest, RecvHasATimeout) {
  Fixture f;
  Tensor tensor;
  bool is_dead = false;
  EXPECT_EQ(f.rendezvous->Recv(Key("x"), f.args, &tensor, &is_dead, 1).code(),
            error::DEADLINE_EXCEEDED);
  // The next receiver gets the next tensor. Its timeout does not overflow.
  TF_ASSERT_OK(f.Send("x", 1));
  TF_ASSERT_OK(
      f.rendezvous->Recv(Key("x"), f.args, &tensor, &is_dead, std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(tensor.scalar<int32>()(), 1);
  // The caller's manager may be destroyed after the call.
  {
    CancellationManager manager;
    RendezvousInterface::Args args = f.args;
    args.cancellation_manager = &manager;
    EXPECT_EQ(f.rendezvous->Recv(Key("y"), args, &tensor, &is_dead, 1).code(),
              error::DEADLINE_EXCEEDED);
  }
  TF_ASSERT_OK(f.Send("y", 2));
  {
    CancellationManager manager;
    RendezvousInterface::Args args = f.args;
    args.cancellation_manager = &manager;
    manager.StartCancel();
    EXPECT_EQ(f.rendezvous->Recv(Key("z"), args, &tensor, &is_dead).code(), error::CANCELLED);
  }
}

TEST(RendezvousTest, RecvEndsWhenItsManagerCancels) {
  // Cancels as soon as a receiver waits.
  struct CancellingRendezvous : Rendezvous {
    absl::Status Send(const ParsedKey&, const Args&, const Tensor&, bool) override {
      return errors::Unimplemented("not called");
    }
    void RecvAsync(const ParsedKey& key, const Args& args, DoneCallback done) override {
      inner->RecvAsync(key, args, std::move(done));
      manager.StartCancel();
    }
    void StartAbort(const absl::Status&) override {}
    core::RefCountPtr<Rendezvous> inner{NewLocalRendezvous()};
    CancellationManager manager;
  };
  const core::RefCountPtr<CancellingRendezvous> rendezvous(new CancellingRendezvous);
  Rendezvous::Args args;
  args.cancellation_manager = &rendezvous->manager;
  Tensor tensor;
  bool is_dead = false;
  const absl::Status status = rendezvous->Recv(Key("x"), args, &tensor, &is_dead);
  EXPECT_EQ(status.code(), error::CANCELLED);
  EXPECT_EQ(status.message(), "RecvAsync is cancelled.");
}

TEST(CancellationManagerTest, CallsRegisteredCallbacks) {
  std::vector<std::string> calls;
  {
    CancellationManager manager;
    const CancellationToken a = manager.get_cancellation_token();
    const CancellationToken b = manager.get_cancellation_token();
    const CancellationToken c = manager.get_cancellation_token();
    EXPECT_NE(a, b);
    EXPECT_TRUE(manager.RegisterCallback(a, [&] {
      calls.push_back("a");
      EXPECT_TRUE(manager.IsCancelling());
      EXPECT_FALSE(manager.IsCancelled());
      // Removing or adding other callbacks is no longer possible.
      EXPECT_FALSE(manager.TryDeregisterCallback(b));
      EXPECT_FALSE(manager.RegisterCallback(c, [] {}));
      // A second call returns while the callback still runs.
      manager.StartCancel();
      EXPECT_FALSE(manager.IsCancelled());
    }));
    EXPECT_TRUE(manager.RegisterCallback(b, [&] { calls.push_back("b"); }));
    EXPECT_TRUE(manager.RegisterCallback(c, [&] { calls.push_back("c"); }));
    EXPECT_TRUE(manager.DeregisterCallback(c));
    EXPECT_FALSE(manager.IsCancelled());
    manager.StartCancel();
    manager.StartCancel();
    EXPECT_TRUE(manager.IsCancelled());
    EXPECT_FALSE(manager.IsCancelling());
    EXPECT_FALSE(manager.DeregisterCallback(a));
    EXPECT_FALSE(manager.RegisterCallback(a, [] {}));
    EXPECT_THAT(calls, ElementsAre("a", "b"));

    CancellationManager destroyed;
    EXPECT_TRUE(destroyed.RegisterCallback(destroyed.get_cancellation_token(),
                                           [&] { calls.push_back("destroyed"); }));
    EXPECT_TRUE(destroyed.RegisterCallback(7, [&] { calls.push_back("no"); }));
    EXPECT_TRUE(destroyed.TryDeregisterCallback(7));
  }
  EXPECT_THAT(calls, ElementsAre("a", "b", "destroyed"));
}

TEST(CancellationManagerTest, DeregisterWaitsForCallbacks) {
  CancellationManager manager;
  Notification started, finish;
  bool done = false;
  ASSERT_TRUE(manager.RegisterCallback(0, [&] {
    started.Notify();
    finish.WaitForNotification();
    done = true;
  }));
  std::thread canceller([&] { manager.StartCancel(); });
  started.WaitForNotification();
  std::thread finisher([&] { finish.Notify(); });
  EXPECT_FALSE(manager.DeregisterCallback(0));
  EXPECT_TRUE(done);
  finisher.join();
  canceller.join();
}

}  // namespace rendezvous_test
}  // namespace tensorflow
