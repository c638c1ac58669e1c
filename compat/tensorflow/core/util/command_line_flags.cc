#include "tensorflow/core/util/command_line_flags.h"

#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/lib/strings/stringprintf.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace {

template <typename T>
bool ParseValue(absl::string_view text, T* value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return *value = std::string(text), true;
  } else if constexpr (std::is_same_v<T, bool>) {
    *value = text.empty() || text == "true" || text == "1";
    return *value || text == "false" || text == "0";
  } else if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(text, value);
  } else {
    return absl::SimpleAtoi(text, value);
  }
}

std::string Show(bool value) { return value ? "true" : "false"; }
std::string Show(const std::string& value) { return absl::StrCat("\"", value, "\""); }
template <typename T>
std::string Show(T value) {
  return absl::StrCat(value);
}

template <typename T>
std::function<bool(T)> Store(T* destination, bool* updated) {
  return [destination, updated](T value) {
    *destination = std::move(value);
    if (updated != nullptr) *updated = true;
    return true;
  };
}

}  // namespace

template <typename T>
void Flag::Init(std::function<bool(T)> hook) {
  set_ = [hook = std::move(hook)](absl::string_view text) {
    T value;
    return ParseValue(text, &value) && hook(std::move(value));
  };
}

#define GRADFLOW_COMPAT_FLAG(T, type)                                                             \
  Flag::Flag(const char* name, T* destination, const std::string& usage, bool* updated)           \
      : name_(name), usage_(usage), type_(type), default_(Show(*destination)) {                   \
    Init<T>(Store(destination, updated));                                                         \
  }                                                                                               \
  Flag::Flag(const char* name, std::function<bool(T)> hook, T default_for_display,                \
             const std::string& usage)                                                            \
      : name_(name), usage_(usage), type_(type), default_(Show(std::move(default_for_display))) { \
    Init<T>(std::move(hook));                                                                     \
  }
GRADFLOW_COMPAT_FLAG(int32, "int32")
GRADFLOW_COMPAT_FLAG(int64, "int64")
GRADFLOW_COMPAT_FLAG(float, "float")
GRADFLOW_COMPAT_FLAG(bool, "bool")
GRADFLOW_COMPAT_FLAG(std::string, "string")
#undef GRADFLOW_COMPAT_FLAG

bool Flags::Parse(std::vector<std::string>& arguments, const std::vector<Flag>& flags) {
  bool ok = true;
  std::vector<std::string> rest;
  bool ended = false;
  for (std::string& argument : arguments) {
    ended |= argument == "--";
    const Flag* match = nullptr;
    absl::string_view value;
    for (const Flag& flag : flags) {
      absl::string_view text = argument;
      if (ended || !absl::ConsumePrefix(&text, "--") || !absl::ConsumePrefix(&text, flag.name_)) {
        continue;
      }
      // "--name" without a value is only valid for a bool.
      const bool has_value = absl::ConsumePrefix(&text, "=");
      if (!has_value && !text.empty()) continue;
      match = &flag;
      value = text;
      if (has_value && value.empty() && flag.type_ != "string") {
        ok = false;
      } else if (!has_value && flag.type_ != "bool") {
        ok = false;
      } else if (flag.set_(value)) {
        break;
      } else {
        ok = false;
      }
      LOG(ERROR) << "Couldn't interpret value '" << value << "' for flag " << flag.name_
                 << ", expected a value of type " << flag.type_;
      break;
    }
    if (match == nullptr) rest.push_back(std::move(argument));
  }
  arguments = std::move(rest);
  return ok && (arguments.empty() || arguments[0] != "--help");
}

bool Flags::Parse(int* argc, char** argv, const std::vector<Flag>& flags) {
  std::vector<std::string> arguments(argv + (*argc > 0 ? 1 : 0), argv + *argc);
  std::vector<std::string> rest = arguments;
  const bool ok = Parse(rest, flags);
  // Keeps the remaining strings of the caller, in order.
  int kept = *argc > 0 ? 1 : 0;
  size_t next = 0;
  for (size_t i = 0; i < arguments.size() && next < rest.size(); ++i) {
    if (arguments[i] != rest[next]) continue;
    argv[kept++] = argv[i + 1];
    ++next;
  }
  *argc = kept;
  argv[kept] = nullptr;
  return ok;
}

std::string Flags::Usage(const std::string& program, const std::vector<Flag>& flags) {
  std::string text = absl::StrCat("usage: ", program, "\n");
  if (!flags.empty()) text += "Flags:\n";
  for (const Flag& flag : flags) {
    strings::Appendf(&text, "\t%-32s\t%s\t%s\n",
                     absl::StrCat("--", flag.name_, "=", flag.default_).c_str(), flag.type_.c_str(),
                     flag.usage_.c_str());
  }
  return text;
}

}  // namespace tensorflow
