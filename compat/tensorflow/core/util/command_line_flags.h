// Flag and Flags: command-line options of a program.
//
//   int32 runs = 10;
//   std::vector<Flag> flags = {Flag("runs", &runs, "number of runs")};
//   if (!Flags::Parse(&argc, argv, flags)) LOG(ERROR) << Flags::Usage(argv[0], flags);
#ifndef GRADFLOW_COMPAT_CORE_UTIL_COMMAND_LINE_FLAGS_H_
#define GRADFLOW_COMPAT_CORE_UTIL_COMMAND_LINE_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// An option --name=value. A bool option may also be written as --name.
class Flag {
 public:
  // Store the value in *destination, which initially holds the default. If `updated` is not null,
  // also set *updated if the option is given.
  Flag(const char* name, int32* destination, const std::string& usage, bool* updated = nullptr);
  Flag(const char* name, int64* destination, const std::string& usage, bool* updated = nullptr);
  Flag(const char* name, float* destination, const std::string& usage, bool* updated = nullptr);
  Flag(const char* name, bool* destination, const std::string& usage, bool* updated = nullptr);
  Flag(const char* name, std::string* destination, const std::string& usage,
       bool* updated = nullptr);
  // Call `hook` with the value. It returns false if the value is invalid.
  Flag(const char* name, std::function<bool(int32)> hook, int32 default_for_display,
       const std::string& usage);
  Flag(const char* name, std::function<bool(int64)> hook, int64 default_for_display,
       const std::string& usage);
  Flag(const char* name, std::function<bool(float)> hook, float default_for_display,
       const std::string& usage);
  Flag(const char* name, std::function<bool(bool)> hook, bool default_for_display,
       const std::string& usage);
  Flag(const char* name, std::function<bool(std::string)> hook, std::string default_for_display,
       const std::string& usage);

 private:
  friend class Flags;
  template <typename T>
  void Init(std::function<bool(T)> hook);

  std::string name_;
  std::string usage_;
  // "int32", and the default value as text.
  std::string type_;
  std::string default_;
  // Parses the text of a value. Returns false if it is invalid.
  std::function<bool(absl::string_view)> set_;
};

class Flags {
 public:
  // Reads the options of `flags`, and removes them from the arguments, up to an argument "--". If a
  // value is invalid or the next remaining argument is --help, logs the reason and returns false.
  static bool Parse(int* argc, char** argv, const std::vector<Flag>& flags);
  // Parses arguments that do not include the program name.
  static bool Parse(std::vector<std::string>& arguments, const std::vector<Flag>& flags);
  // Returns text with a line for each option.
  static std::string Usage(const std::string& program, const std::vector<Flag>& flags);
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_COMMAND_LINE_FLAGS_H_
