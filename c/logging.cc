// Log entries.
#include "tensorflow/c/logging.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gradflow/c/status.h"
#include "tensorflow/c/c_api.h"

namespace gradflow::capi {
namespace {

using Listener = void (*)(const char*);

std::atomic<Listener>& LogListener() {
  static std::atomic<Listener> listener{nullptr};
  return listener;
}

void Log(char level, const char* format, va_list args) {
  CallQuietly([&] {
    va_list copy;
    va_copy(copy, args);
    const int size = std::vsnprintf(nullptr, 0, format, copy);
    va_end(copy);
    if (size < 0) return;
    std::vector<char> text(static_cast<size_t>(size) + 1);
    std::vsnprintf(text.data(), text.size(), format, args);
    std::fprintf(stderr, "%c %s\n", level, text.data());
    if (const Listener listener = LogListener().load()) listener(text.data());
  });
}

// Returns true if details of this level are logged.
bool LogsDetails(int level) {
  static const int max_level = [] {
    const char* const text = std::getenv("TF_CPP_MAX_VLOG_LEVEL");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return level <= max_level && max_level > 0;
}

}  // namespace
}  // namespace gradflow::capi

void TF_RegisterLogListener(void (*listener)(const char*)) {
  gradflow::capi::LogListener().store(listener);
}

void TF_Log(TF_LogLevel level, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  gradflow::capi::Log("IWEF"[level < TF_INFO || level > TF_FATAL ? TF_INFO : level], fmt, args);
  va_end(args);
  if (level == TF_FATAL) std::abort();
}

void TF_VLog(int level, const char* fmt, ...) {
  if (!gradflow::capi::LogsDetails(level)) return;
  va_list args;
  va_start(args, fmt);
  gradflow::capi::Log('I', fmt, args);
  va_end(args);
}

void TF_DVLog(int level, const char* fmt, ...) {
#ifndef NDEBUG
  if (!gradflow::capi::LogsDetails(level)) return;
  va_list args;
  va_start(args, fmt);
  gradflow::capi::Log('I', fmt, args);
  va_end(args);
#else
  static_cast<void>(level);
  static_cast<void>(fmt);
#endif
}
