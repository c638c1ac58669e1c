#include "tensorflow/core/platform/logging.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tensorflow {
namespace compat_internal {
namespace {

// Returns the number in an environment variable, or 0.
int LevelFromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::atoi(value);
}

}  // namespace

LogMessage::LogMessage(const char* file, int line, int severity)
    : file_(file), line_(line), severity_(severity) {}

LogMessage::~LogMessage() {
  static const int min_level = LevelFromEnvironment("TF_CPP_MIN_LOG_LEVEL");
  if (severity_ < FATAL && severity_ >= min_level) Print();
}

void LogMessage::Print() const {
  const char* slash = std::strrchr(file_, '/');
  // A single call keeps messages of different threads from interleaving.
  std::fprintf(stderr, "%c %s:%d] %s\n", "IWEF"[std::clamp(severity_, 0, 3)],
               slash == nullptr ? file_ : slash + 1, line_, str().c_str());
}

LogMessageFatal::LogMessageFatal(const char* file, int line) : LogMessage(file, line, FATAL) {}

LogMessageFatal::~LogMessageFatal() {
  Print();
  std::abort();
}

bool VlogIsOn(int level) {
  static const int max_level = LevelFromEnvironment("TF_CPP_MAX_VLOG_LEVEL");
  return level <= max_level;
}

}  // namespace compat_internal
}  // namespace tensorflow
