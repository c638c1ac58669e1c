// Tests of flags, texts, numbers, threads and other parts of TensorFlow's platform that programs
// use.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>

#include "tensorflow/core/lib/gtl/cleanup.h"
#include "tensorflow/core/lib/gtl/map_util.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/lib/random/random_distributions.h"
#include "tensorflow/core/lib/random/simple_philox.h"
#include "tensorflow/core/lib/strings/numbers.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/lib/strings/stringprintf.h"
#include "tensorflow/core/platform/blocking_counter.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/notification.h"
#include "tensorflow/core/platform/random.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow/core/util/work_sharder.h"
#include "tsl/platform/threadpool.h"
#include "xla/tsl/lib/core/status_test_util.h"
#include "xla/tsl/platform/env.h"
#include "xla/tsl/platform/errors.h"
#include "xla/tsl/platform/str_util.h"
#include "xla/tsl/util/command_line_flags.h"

namespace tensorflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Options {
  int32 runs = 10;
  int64 big = 1;
  float rate = 0.5;
  bool verbose = false;
  bool quiet = true;
  std::string name = "x";
  bool name_given = false;
  std::vector<std::string> hooked;

  std::vector<tsl::Flag> Flags() {
    return {
        tsl::Flag("runs", &runs, "number of runs"),
        tsl::Flag("big", &big, "a big number"),
        tsl::Flag("rate", &rate, "a rate"),
        tsl::Flag("verbose", &verbose, "print more"),
        tsl::Flag("quiet", &quiet, "print less"),
        tsl::Flag("name", &name, "a name", &name_given),
        tsl::Flag(
            "hook", [this](std::string value) { return hooked.push_back(value), value != "bad"; },
            "none", "calls a function")};
  }
  // Parses arguments. The unused ones are stored in `rest`.
  bool Parse(std::vector<const char*> arguments, std::vector<std::string>* rest) {
    arguments.insert(arguments.begin(), "program");
    std::vector<char*> argv;
    for (const char* argument : arguments) argv.push_back(const_cast<char*>(argument));
    int argc = static_cast<int>(argv.size());
    argv.push_back(nullptr);
    const bool ok = tsl::Flags::Parse(&argc, argv.data(), Flags());
    rest->assign(argv.data() + 1, argv.data() + argc);
    EXPECT_EQ(argv[argc], nullptr);
    return ok;
  }
};

TEST(FlagsTest, SetsOptionsAndKeepsOtherArguments) {
  Options o;
  std::vector<std::string> rest;
  EXPECT_TRUE(o.Parse({"--runs=3", "file", "--big=123456789012", "--rate=2e-3", "--verbose",
                       "--quiet=false", "--name=", "--hook=a=b", "--runsx=4", "--", "--runs=5"},
                      &rest));
  EXPECT_EQ(o.runs, 3);
  EXPECT_EQ(o.big, 123456789012);
  EXPECT_FLOAT_EQ(o.rate, 2e-3);
  EXPECT_TRUE(o.verbose);
  EXPECT_FALSE(o.quiet);
  EXPECT_EQ(o.name, "");
  EXPECT_TRUE(o.name_given);
  EXPECT_THAT(o.hooked, ElementsAre("a=b"));
  EXPECT_THAT(rest, ElementsAre("file", "--runsx=4", "--", "--runs=5"));
}

TEST(FlagsTest, RejectsValues) {
  std::vector<std::string> rest;
  for (const char* argument :
       {"--runs=x", "--runs=99999999999", "--runs=", "--runs", "--big=1.5",
        "--rate=", "--verbose=maybe", "--verbose=", "--hook=bad", "--name"}) {
    Options o;
    EXPECT_FALSE(o.Parse({argument}, &rest)) << argument;
    EXPECT_THAT(rest, ElementsAre()) << argument;
    EXPECT_FALSE(o.name_given);
  }
  EXPECT_FALSE(Options().Parse({"--help"}, &rest));
}

TEST(FlagsTest, ShowsUsage) {
  Options o;
  const auto line = [](const std::string& flag, const std::string& rest) {
    return "\t" + flag + std::string(32 - flag.size(), ' ') + "\t" + rest + "\n";
  };
  EXPECT_EQ(Flags::Usage("program", o.Flags()),
            "usage: program\nFlags:\n" + line("--runs=10", "int32\tnumber of runs") +
                line("--big=1", "int64\ta big number") + line("--rate=0.5", "float\ta rate") +
                line("--verbose=false", "bool\tprint more") +
                line("--quiet=true", "bool\tprint less") + line("--name=\"x\"", "string\ta name") +
                line("--hook=\"none\"", "string\tcalls a function"));
  EXPECT_EQ(Flags::Usage("program", {}), "usage: program\n");
}

TEST(FlagsTest, KeepsTheStringsOfTheCaller) {
  Options o;
  char program[] = "program", other[] = "a", runs[] = "--runs=3", again[] = "a", end[] = "--";
  char* argv[] = {program, other, runs, again, end, runs, nullptr};
  int argc = 6;
  EXPECT_TRUE(Flags::Parse(&argc, argv, o.Flags()));
  EXPECT_THAT(std::vector<char*>(argv, argv + argc + 1),
              ElementsAre(program, other, again, end, runs, nullptr));
  char* none[] = {program};
  argc = 0;
  EXPECT_TRUE(Flags::Parse(&argc, none, o.Flags()));
  EXPECT_EQ(argc, 0);
  EXPECT_EQ(none[0], nullptr);
}

TEST(FlagsTest, ChecksForHelpFirst) {
  std::vector<std::string> rest;
  EXPECT_FALSE(Options().Parse({"--runs=1", "--help", "a"}, &rest));
  EXPECT_TRUE(Options().Parse({"a", "--help"}, &rest));
  EXPECT_THAT(rest, ElementsAre("a", "--help"));
}

TEST(FlagsTest, ReadsValuesOfTheirTypes) {
  for (const auto& [text, value] :
       {std::pair("--verbose", true), std::pair("--verbose=true", true),
        std::pair("--verbose=1", true), std::pair("--verbose=false", false),
        std::pair("--verbose=0", false)}) {
    Options o;
    std::vector<std::string> rest;
    o.verbose = !value;
    EXPECT_TRUE(o.Parse({text}, &rest)) << text;
    EXPECT_EQ(o.verbose, value) << text;
  }
  int64 sum = 0;
  float product = 1;
  bool flag = false;
  const std::vector<Flag> flags = {
      Flag(
          "i", [&](int32 x) { return sum += x, true; }, 1, "an int32"),
      Flag(
          "j", [&](int64 x) { return sum += x, true; }, int64{2}, "an int64"),
      Flag(
          "f", [&](float x) { return product *= x, x > 0; }, 1.5f, "a float"),
      Flag(
          "b", [&](bool x) { return flag = x, true; }, true, "a bool")};
  std::vector<std::string> arguments = {"--i=3", "--j=4", "--f=2.5", "--b", "--unknown"};
  EXPECT_TRUE(Flags::Parse(arguments, flags));
  EXPECT_THAT(arguments, ElementsAre("--unknown"));
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(product, 2.5f);
  EXPECT_TRUE(flag);
  arguments = {"--f=-1", "--i=5"};
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(Flags::Parse(arguments, flags));
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("Couldn't interpret value '-1' for flag f, expected a value of type float"));
  EXPECT_EQ(sum, 12);
}

TEST(StringsTest, FormatsLikePrintf) {
  EXPECT_EQ(strings::Printf("%d %s %.2f", 3, "x", 1.5), "3 x 1.50");
  std::string text = "a";
  strings::Appendf(&text, "%s", std::string(5000, 'b').c_str());
  EXPECT_EQ(text, "a" + std::string(5000, 'b'));
  strings::Appendf(&text, "%s", "");
  EXPECT_EQ(text.size(), 5001);
  EXPECT_EQ(strings::StrCat("0x", strings::Hex(255, strings::kZeroPad4)), "0x00ff");
}

TEST(StringsTest, SplitsAndJoins) {
  EXPECT_THAT(str_util::Split("a,b,,c", ','), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(str_util::Split("a,b;c", ",;"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(str_util::Split("", ','), ElementsAre());
  EXPECT_THAT(str_util::Split("a,, b", ',', str_util::SkipEmpty()), ElementsAre("a", " b"));
  std::vector<int32> numbers;
  EXPECT_TRUE(str_util::SplitAndParseAsInts("1,-2", ',', &numbers));
  EXPECT_THAT(numbers, ElementsAre(1, -2));
  EXPECT_FALSE(str_util::SplitAndParseAsInts("1,x", ',', &numbers));
  std::vector<float> floats;
  EXPECT_TRUE(str_util::SplitAndParseAsFloats("1.5,2", ',', &floats));
  EXPECT_THAT(floats, ElementsAre(1.5f, 2.0f));
  EXPECT_EQ(str_util::Join(std::vector<int>{1, 2}, "-"), "1-2");
}

TEST(StringsTest, EditsStrings) {
  EXPECT_EQ(str_util::Lowercase("aBc"), "abc");
  EXPECT_EQ(str_util::Uppercase("aBc"), "ABC");
  std::string title = "hello big world";
  str_util::TitlecaseString(&title, " ");
  EXPECT_EQ(title, "Hello Big World");
  EXPECT_EQ(str_util::StringReplace("aXbX", "X", "yy", true), "ayybyy");
  EXPECT_EQ(str_util::StringReplace("aXbX", "X", "yy", false), "ayybX");
  EXPECT_EQ(str_util::StringReplace("a", "", "y", true), "a");
  EXPECT_EQ(str_util::ArgDefCase("OpName2"), "op_name2");
  StringPiece text = "  123 ab ";
  EXPECT_EQ(str_util::RemoveLeadingWhitespace(&text), 2);
  uint64 number;
  EXPECT_TRUE(str_util::ConsumeLeadingDigits(&text, &number));
  EXPECT_EQ(number, 123);
  EXPECT_FALSE(str_util::ConsumeLeadingDigits(&text, &number));
  EXPECT_EQ(str_util::RemoveWhitespaceContext(&text), 2);
  StringPiece word;
  EXPECT_TRUE(str_util::ConsumeNonWhitespace(&text, &word));
  EXPECT_EQ(word, "ab");
  text = "99999999999999999999";
  EXPECT_FALSE(str_util::ConsumeLeadingDigits(&text, &number));
}

TEST(StringsTest, ConvertsNumbers) {
  int32 i32;
  EXPECT_TRUE(strings::safe_strto32(" -12 ", &i32));
  EXPECT_EQ(i32, -12);
  EXPECT_FALSE(strings::safe_strto32("12x", &i32));
  uint64 u64;
  EXPECT_FALSE(strings::safe_strtou64("-1", &u64));
  float f;
  EXPECT_TRUE(strings::safe_strtof("1e-2", &f));
  EXPECT_EQ(f, 1e-2f);
  EXPECT_EQ(strings::FpToString(255), "00000000000000ff");
  EXPECT_TRUE(strings::HexStringToUint64("fF", &u64));
  EXPECT_EQ(u64, 255);
  EXPECT_FALSE(strings::HexStringToUint64("", &u64));
  EXPECT_FALSE(strings::HexStringToUint64("fg", &u64));
  EXPECT_EQ(strings::HumanReadableNum(823), "823");
  EXPECT_EQ(strings::HumanReadableNum(-1250), "-1.25k");
  EXPECT_EQ(strings::HumanReadableNum(1234567), "1.23M");
  EXPECT_EQ(strings::HumanReadableNumBytes(1023), "1023B");
  EXPECT_EQ(strings::HumanReadableNumBytes(1536), "1.5KiB");
  EXPECT_EQ(strings::HumanReadableNumBytes(int64{3} << 20), "3.00MiB");
  EXPECT_EQ(strings::HumanReadableElapsedTime(0.0012), "1.2 ms");
  EXPECT_EQ(strings::HumanReadableElapsedTime(90), "1.5 min");
}

TEST(ThreadsTest, PoolRunsAllFunctionsAndKnowsItsThreads) {
  std::atomic<int> sum = 0;
  std::atomic<bool> inside = true;
  {
    thread::ThreadPool pool(Env::Default(), "pool", 3);
    EXPECT_EQ(pool.NumThreads(), 3);
    EXPECT_EQ(pool.CurrentThreadId(), -1);
    BlockingCounter pending(50);
    for (int i = 0; i < 100; ++i) {
      pool.Schedule([&, i] {
        const int id = pool.CurrentThreadId();
        if (id < 0 || id >= 3) inside = false;
        sum += i;
        if (i < 50) pending.DecrementCount();
      });
    }
    pending.Wait();
    std::atomic<int64> total = 0;
    pool.ParallelFor(1000, 100, [&](int64 begin, int64 end) { total += end - begin; });
    EXPECT_EQ(total, 1000);
  }
  EXPECT_EQ(sum, 4950);
  EXPECT_TRUE(inside);
}

// A wait whose end overflows would return at once.
TEST(WaitTest, LongTimesDoNotOverflow) {
  Notification waits;
  Notification event;
  BlockingCounter counter(1);
  std::thread other([&] {
    waits.WaitForNotification();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    event.Notify();
    counter.DecrementCount();
  });
  waits.Notify();
  EXPECT_TRUE(WaitForNotificationWithTimeout(&event, std::numeric_limits<int64>::max()));
  EXPECT_TRUE(counter.WaitFor(std::chrono::milliseconds::max()));
  other.join();
  EXPECT_EQ(compat_internal::WaitTime(std::chrono::hours::max()), std::chrono::hours(876000));
  EXPECT_EQ(compat_internal::WaitTime(std::chrono::microseconds::min()),
            std::chrono::nanoseconds::zero());
  EXPECT_EQ(compat_internal::WaitTime(std::chrono::milliseconds(3)), std::chrono::milliseconds(3));
}

TEST(ThreadsTest, APoolWithoutThreadsRunsAtOnce) {
  thread::ThreadPool pool;
  EXPECT_EQ(pool.NumThreads(), static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  EXPECT_EQ(pool.CurrentThreadId(), -1);
  EXPECT_EQ(pool.run(), nullptr);
  std::thread::id ran;
  pool.Schedule([&] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
  EXPECT_EQ(thread::ThreadPool(Env::Default(), "pool", 0).NumThreads(), 1);
  for (const int64 block_size : {int64{0}, int64{1}, int64{7}, int64{100}}) {
    std::vector<std::atomic<int>> calls(20);
    std::atomic<bool> fits = true;
    pool.TransformRangeConcurrently(block_size, 20, [&](int64 begin, int64 end) {
      if (end - begin > std::max<int64>(block_size, 1)) fits = false;
      for (int64 i = begin; i < end; ++i) ++calls[i];
    });
    EXPECT_TRUE(fits) << block_size;
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadsTest, ShardRunsOnTheCallersThreadIfAsked) {
  thread::ThreadPool pool;
  for (const int parallelism : {0, 1, 4}) {
    std::atomic<int64> sum = 0;
    std::atomic<bool> alone = true;
    const std::thread::id caller = std::this_thread::get_id();
    Shard(parallelism, &pool, 1000, 100000, [&](int64 begin, int64 end) {
      for (int64 i = begin; i < end; ++i) sum += i;
      if (std::this_thread::get_id() != caller) alone = false;
    });
    EXPECT_EQ(sum, 499500);
    EXPECT_TRUE(alone || parallelism > 1);
    for (const int64 total : {0, -1}) {
      Shard(parallelism, &pool, total, 1, [](int64, int64) { ADD_FAILURE() << "nothing to do"; });
    }
  }
}

TEST(ThreadsTest, EnvRunsClosures) {
  Notification done;
  Env::Default()->SchedClosure([&] { done.Notify(); });
  done.WaitForNotification();
  const uint64 before = Env::Default()->NowMicros();
  const uint64 nanos = Env::Default()->NowNanos();
  EXPECT_LE(before, nanos / 1000);
  EXPECT_LE(nanos / 1000, Env::Default()->NowMicros());
}

TEST(RandomTest, NumbersDiffer) {
  EXPECT_NE(random::New64(), random::New64());
  EXPECT_NE(random::New64DefaultSeed(), random::New64DefaultSeed());
}

TEST(LoggingTest, ShowsSeverityAndPlace) {
  ::testing::internal::CaptureStderr();
  LOG(INFO) << "a" << 1;
  LOG(WARNING) << "b";
  LOG(ERROR) << "c";
  compat_internal::LogMessage("folder/sub/file.cc", 7, INFO) << "d";
  compat_internal::LogMessage("file.cc", 8, WARNING) << "e";
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, ::testing::MatchesRegex(
                       "I platform_test.cc:[0-9]+] a1\nW platform_test.cc:[0-9]+] b\n"
                       "E platform_test.cc:[0-9]+] c\nI file.cc:7] d\nW file.cc:8] e\n"));
  EXPECT_TRUE(VLOG_IS_ON(0));
  EXPECT_FALSE(VLOG_IS_ON(1));
}

TEST(LoggingDeathTest, FatalEndsTheProgram) {
  EXPECT_DEATH(LOG(FATAL) << "reason", "F platform_test.cc:[0-9]+] reason");
}

// The thread that ran a function destroys it without holding a lock.
TEST(ThreadsTest, PoolFreesFunctionsWithoutItsLock) {
  thread::ThreadPool pool(Env::Default(), "pool", 1);
  Notification released;
  Notification done;
  {
    const std::shared_ptr<int> last(new int, [&](int* value) {
      delete value;
      pool.Schedule([&] { done.Notify(); });
    });
    pool.Schedule([last, &released] { released.WaitForNotification(); });
  }
  released.Notify();
  done.WaitForNotification();
}

// One of the pool's threads destroys the last function that owns the pool.
TEST(ThreadsTest, PoolsEndOnTheirOwnThreads) {
  Notification released;
  Notification first;
  Notification second;
  Notification done;
  {
    const auto pool = std::make_shared<thread::ThreadPool>(Env::Default(), "pool", 2);
    pool->Schedule([pool, &released, &first] {
      released.WaitForNotification();
      first.Notify();
    });
    pool->Schedule([&released, &second] {
      released.WaitForNotification();
      second.Notify();
    });
    pool->Schedule([&done] { done.Notify(); });
  }
  released.Notify();
  for (Notification* ended : {&first, &second, &done}) ended->WaitForNotification();
}

TEST(ThreadsTest, EnvStartsThreads) {
  Notification started;
  const std::unique_ptr<Thread> thread(
      Env::Default()->StartThread(ThreadOptions(), "t", [&] { started.Notify(); }));
  started.WaitForNotification();
  Notification later;
  Env::Default()->SchedClosureAfter(1, [&] { later.Notify(); });
  later.WaitForNotification();
  Notification never;
  EXPECT_FALSE(WaitForNotificationWithTimeout(&never, 1000));
  const uint64 before = Env::Default()->NowMicros();
  Env::Default()->SleepForMicroseconds(2000);
  EXPECT_GE(Env::Default()->NowMicros() - before, 1000);
}

TEST(ThreadsTest, MutexesAwaitConditions) {
  mutex mu;
  bool ready = false;
  int reads = 0;
  std::thread writer([&] {
    const mutex_lock lock(mu);
    ready = true;
  });
  {
    const mutex_lock lock(mu);
    mu.Await(Condition(&ready));
    EXPECT_TRUE(ready);
  }
  writer.join();
  {
    const tf_shared_lock a(mu);
    const tf_shared_lock b(mu);
    ++reads;
    EXPECT_FALSE(mu.try_lock());
  }
  bool no = false, yes = true;
  const mutex_lock lock(mu);
  // If the condition holds, no wait is needed and the deadline may have passed.
  EXPECT_TRUE(mu.AwaitWithDeadline(Condition(&yes), 0));
  EXPECT_FALSE(mu.AwaitWithDeadline(Condition(&no), 0));
  EXPECT_FALSE(mu.try_lock());
  EXPECT_FALSE(mu.AwaitWithDeadline(Condition(&no), Env::Default()->NowNanos() + 1000000));
}

// A thread may delete a mutex as soon as it knows that no other thread will use it.
TEST(ThreadsTest, MutexesEndAfterTheirLastUnlock) {
  for (int i = 0; i < 200; ++i) {
    struct Shared {
      mutex mu;
      bool done = false;
    };
    auto* const shared = new Shared;
    std::thread other([shared] {
      const mutex_lock lock(shared->mu);
      shared->done = true;
    });
    bool done = false;
    while (!done) {
      // Yields between locks, so that the other thread can lock on a busy machine.
      std::this_thread::yield();
      const mutex_lock lock(shared->mu);
      done = shared->done;
    }
    delete shared;
    other.join();
  }
}

TEST(ThreadsTest, AwaitingThreadWakesOthers) {
  mutex mu;
  bool a = false;
  bool b = false;
  std::thread other([&] {
    const mutex_lock lock(mu);
    mu.Await(Condition(&a));
    b = true;
  });
  Env::Default()->SleepForMicroseconds(1000);
  {
    const mutex_lock lock(mu);
    a = true;
    mu.Await(Condition(&b));
    EXPECT_TRUE(b);
  }
  other.join();
}

TEST(ThreadsTest, ConditionVariablesNotify) {
  mutex mu;
  condition_variable changed;
  bool ready = false;
  std::thread setter([&] {
    const mutex_lock lock(mu);
    ready = true;
    changed.notify_all();
  });
  {
    mutex_lock lock(mu);
    while (!ready) changed.wait(lock);
    EXPECT_EQ(WaitForMilliseconds(&lock, &changed, 1), kCond_Timeout);
  }
  setter.join();
}

TEST(FilesTest, ReadsAndWrites) {
  Env* const env = Env::Default();
  const std::string folder = ::testing::TempDir() + "gradflow_files_test";
  int64 files, dirs;
  env->DeleteRecursively(folder, &files, &dirs).IgnoreError();
  TF_ASSERT_OK(env->CreateDir(folder));
  const std::string path = folder + "/a.txt";
  std::unique_ptr<WritableFile> out;
  TF_ASSERT_OK(env->NewWritableFile(path, &out));
  TF_ASSERT_OK(out->Append("hello"));
  TF_ASSERT_OK(out->Flush());
  int64 position;
  TF_ASSERT_OK(out->Tell(&position));
  EXPECT_EQ(position, 5);
  TF_ASSERT_OK(out->Close());
  EXPECT_EQ(out->Append("x").code(), error::FAILED_PRECONDITION);
  TF_ASSERT_OK(env->NewAppendableFile(path, &out));
  TF_ASSERT_OK(out->Append(" world"));
  TF_ASSERT_OK(out->Sync());
  out.reset();

  std::unique_ptr<RandomAccessFile> in;
  TF_ASSERT_OK(env->NewRandomAccessFile(path, &in));
  char scratch[100];
  StringPiece result;
  TF_ASSERT_OK(in->Read(6, 5, &result, scratch));
  EXPECT_EQ(result, "world");
  const absl::Status end = in->Read(6, 100, &result, scratch);
  EXPECT_EQ(end.code(), error::OUT_OF_RANGE) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("5 bytes from offset 6, expected 100"));
  EXPECT_EQ(result, "world");
  std::unique_ptr<ReadOnlyMemoryRegion> region;
  TF_ASSERT_OK(env->NewReadOnlyMemoryRegionFromFile(path, &region));
  EXPECT_EQ(region->length(), 11);
  TF_ASSERT_OK(env->CopyFile(path, folder + "/b.txt"));
  std::vector<std::string> found;
  TF_ASSERT_OK(env->GetMatchingPaths(folder + "/*.txt", &found));
  EXPECT_THAT(found, ElementsAre(path, folder + "/b.txt"));
  TF_ASSERT_OK(env->GetMatchingPaths(folder + "/*.png", &found));
  EXPECT_THAT(found, ElementsAre());
  FileStatistics stat;
  TF_ASSERT_OK(env->Stat(path, &stat));
  EXPECT_EQ(stat.length, 11);
  EXPECT_FALSE(stat.is_directory);
  EXPECT_EQ(env->Stat(folder + "/none", &stat).code(), error::NOT_FOUND);
  EXPECT_EQ(env->NewRandomAccessFile(folder + "/none", &in).code(), error::NOT_FOUND);
  std::string temporary;
  EXPECT_TRUE(env->LocalTempFilename(&temporary));
  TF_ASSERT_OK(env->DeleteRecursively(folder, &files, &dirs));
  EXPECT_EQ(env->DeleteRecursively(folder, &files, &dirs).code(), error::NOT_FOUND);
  EXPECT_EQ(dirs, 1);
}

TEST(EnvTest, TemporaryFilesAreInTheFolderOfTheEnvironment) {
  const char* const variable = std::getenv("TMPDIR");
  const std::string before = variable == nullptr ? "" : variable;
  const std::string folder = io::JoinPath(testing::TmpDir(), "compat_temporary");
  TF_ASSERT_OK(Env::Default()->RecursivelyCreateDir(folder));
  setenv("TMPDIR", folder.c_str(), 1);
  std::string name;
  EXPECT_TRUE(Env::Default()->LocalTempFilename(&name));
  EXPECT_THAT(name, ::testing::StartsWith(folder + "/"));
  setenv("TMPDIR", (folder + "/none").c_str(), 1);
  const std::string unchanged = name;
  EXPECT_FALSE(Env::Default()->LocalTempFilename(&name));
  EXPECT_EQ(name, unchanged);
  unsetenv("TMPDIR");
  EXPECT_TRUE(Env::Default()->LocalTempFilename(&name));
  EXPECT_THAT(name, ::testing::StartsWith("/tmp/"));
  if (variable != nullptr) setenv("TMPDIR", before.c_str(), 1);
  TF_ASSERT_OK(Env::Default()->DeleteDir(folder));
}

// The Philox authors publish these numbers for a key and a counter of zeros.
TEST(RandomTest, PhiloxHasPublishedNumbers) {
  random::PhiloxRandom gen(0);
  const auto first = gen();
  EXPECT_THAT(first, ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  random::PhiloxRandom skipped(0);
  skipped.Skip(2);
  gen();
  EXPECT_EQ(gen(), skipped());
  random::PhiloxRandom carry({}, {});
  carry.Skip(0xffffffff);
  carry.Skip(1);
  EXPECT_THAT(carry.counter(), ElementsAre(0, 1, 0, 0));

  random::PhiloxRandom source(7, 8);
  random::SimplePhilox simple(&source);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(simple.Uniform(7), 7);
    EXPECT_LT(simple.Uniform64(uint64{1} << 40), uint64{1} << 40);
    const double x = simple.RandDouble();
    EXPECT_TRUE(x >= 0 && x < 1);
  }
  random::NormalDistribution<random::PhiloxRandom, double> normal;
  random::UniformDistribution<random::PhiloxRandom, int32> dice(1, 7);
  double sum = 0, squares = 0;
  for (int i = 0; i < 10000; ++i) {
    for (const double x : normal(&source)) sum += x, squares += x * x;
    for (const int32 x : dice(&source)) EXPECT_TRUE(x >= 1 && x < 7);
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
}

TEST(RefCountTest, TheLastReferenceDeletes) {
  class Counted : public core::RefCounted {
   public:
    explicit Counted(int* deleted) : deleted_(deleted) {}

   private:
    ~Counted() override { ++*deleted_; }
    int* const deleted_;
  };
  int deleted = 0;
  auto* const object = new Counted(&deleted);
  {
    const core::RefCountPtr<Counted> second = core::GetNewRef(object);
    EXPECT_FALSE(object->RefCountIsOne());
    EXPECT_FALSE(object->Unref());
    EXPECT_TRUE(second->RefCountIsOne());
  }
  EXPECT_EQ(deleted, 1);
  { const core::ScopedUnref unref(new Counted(&deleted)); }
  EXPECT_EQ(deleted, 2);
}

TEST(GtlTest, HasCleanupAndMaps) {
  int runs = 0;
  {
    const auto cleanup = gtl::MakeCleanup([&] { ++runs; });
    auto released = gtl::MakeCleanup([&] { ++runs; });
    released.release();
  }
  EXPECT_EQ(runs, 1);
  std::map<std::string, int> map = {{"a", 1}};
  EXPECT_EQ(*gtl::FindOrNull(map, "a"), 1);
  EXPECT_EQ(gtl::FindOrNull(map, "b"), nullptr);
  EXPECT_EQ(gtl::FindWithDefault(map, "b", 7), 7);
  EXPECT_FALSE(gtl::InsertIfNotPresent(&map, "a", 2));
  EXPECT_FALSE(gtl::InsertOrUpdate(&map, "a", 3));
  EXPECT_EQ(map["a"], 3);
}

}  // namespace
}  // namespace tensorflow
