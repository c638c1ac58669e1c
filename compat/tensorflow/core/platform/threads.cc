// Threads and the clock of Env.
#include <chrono>
#include <thread>
#include <utility>

#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace {

class LocalThread final : public Thread {
 public:
  explicit LocalThread(std::function<void()> fn) : thread_(std::move(fn)) {}
  ~LocalThread() override { thread_.join(); }

 private:
  std::thread thread_;
};

template <typename Unit>
uint64 SinceEpoch() {
  return static_cast<uint64>(
      std::chrono::duration_cast<Unit>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

uint64 Env::NowNanos() const { return SinceEpoch<std::chrono::nanoseconds>(); }

uint64 Env::NowMicros() const { return SinceEpoch<std::chrono::microseconds>(); }

void Env::SleepForMicroseconds(int64 micros) {
  std::this_thread::sleep_for(std::chrono::microseconds(micros));
}

Thread* Env::StartThread(const ThreadOptions&, const std::string&, std::function<void()> fn) {
  return new LocalThread(std::move(fn));
}

void Env::SchedClosure(std::function<void()> closure) { std::thread(std::move(closure)).detach(); }

void Env::SchedClosureAfter(int64 micros, std::function<void()> closure) {
  std::thread([micros, closure = std::move(closure)] {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
    closure();
  }).detach();
}

}  // namespace tensorflow
