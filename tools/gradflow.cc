// The command line tool: parses the arguments and calls a subcommand.
//
// Exit status: 0 on success; 1 on failure, with one line "CODE: text" on standard error; 2 on wrong
// usage, with the usage on standard error.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/core/version.h"
#include "gradflow/io/plugin.h"
#include "tools/commands.h"
#include "tools/test_command.h"

namespace gradflow::tools {
namespace {

void AddGraphFlags(CLI::App* command, GraphFlags* flags) {
  command->add_option("graph", flags->graph, "GraphDef, binary or text")
      ->required()
      ->option_text("GRAPH");
  command->add_option("--feed", flags->feeds, "Feed a tensor from a file")
      ->option_text("NAME=FILE.npy")
      ->allow_extra_args(false);
  command->add_option("--fetch", flags->fetches, "Fetch a tensor; write it to a file, or print it")
      ->option_text("NAME[=FILE.npy]")
      ->allow_extra_args(false);
  command->add_option("--target", flags->targets, "Run a node without fetching its outputs")
      ->option_text("NODE")
      ->allow_extra_args(false);
  command->add_option("--threads", flags->threads, "Number of threads; 0: all cores")
      ->option_text("N")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--memory-limit", flags->memory_limit, "Limit on memory of tensors; 0: no limit")
      ->option_text("BYTES")
      ->check(CLI::NonNegativeNumber);
}

void AddPluginFlag(CLI::App* command, std::vector<std::string>* plugins) {
  command->add_option("--plugin", *plugins, "Load ops and kernels from a shared library")
      ->option_text("FILE.so")
      ->allow_extra_args(false);
}

void AddTestFlags(CLI::App* command, TestFlags* flags) {
  command->add_option("folder", flags->folders, "A case, or a folder with cases")
      ->required()
      ->option_text("FOLDER...");
  CLI::Option* update =
      command->add_flag("--update", flags->update, "Replace expected outputs by actual ones");
  CLI::Option* atol =
      command->add_option("--atol", flags->atol, "Absolute tolerance, added to that of --rtol")
          ->option_text("NUMBER")
          ->check(CLI::NonNegativeNumber)
          ->excludes(update);
  CLI::Option* rtol = command->add_option("--rtol", flags->rtol, "Relative tolerance")
                          ->option_text("NUMBER")
                          ->check(CLI::NonNegativeNumber)
                          ->excludes(update);
  command->add_option("--ulps", flags->ulps, "Tolerance in units in the last place")
      ->option_text("N")
      ->check(CLI::NonNegativeNumber)
      ->excludes(update)
      ->excludes(atol)
      ->excludes(rtol);
  command->add_option("--threads", flags->threads, "Number of threads; 0: all cores")
      ->option_text("N")
      ->check(CLI::NonNegativeNumber);
}

int Main(int argc, char** argv) {
  CLI::App app("Runs and examines TensorFlow graphs of gradient ops.", "gradflow");
  app.require_subcommand(1);
  // On wrong usage prints the usage, not just a hint at --help.
  app.failure_message(CLI::FailureMessage::help);
  app.set_version_flag("--version", "gradflow " GRADFLOW_VERSION_STRING);
  std::vector<std::string> plugins;

  RunFlags run;
  CLI::App* run_command = app.add_subcommand("run", "Run a graph once");
  AddGraphFlags(run_command, &run.graph);
  run_command->add_option("--timeout", run.timeout_seconds, "Time limit; 0: no limit")
      ->option_text("SECONDS")
      ->check(CLI::Range(0.0, 1e9));
  run_command->add_option("--trace", run.trace, "Write a trace of the run, for ui.perfetto.dev")
      ->option_text("FILE.json");
  AddPluginFlag(run_command, &plugins);

  BenchFlags bench;
  CLI::App* bench_command = app.add_subcommand("bench", "Time runs of a graph after warm-up");
  AddGraphFlags(bench_command, &bench.graph);
  bench_command->add_option("--repeat", bench.repeat, "Number of runs to time, up to a million")
      ->option_text("N")
      ->check(CLI::Range(1, 1000000));
  bench_command->add_flag("--json", bench.json, "Print the result as JSON");
  bench_command->add_flag("--progress", bench.progress,
                          "Report progress; default: on a terminal only");
  AddPluginFlag(bench_command, &plugins);

  std::string inspect;
  CLI::App* inspect_command =
      app.add_subcommand("inspect", "List a graph's ops, inputs, outputs, and import errors");
  inspect_command->add_option("graph", inspect, "GraphDef, binary or text")
      ->required()
      ->option_text("GRAPH");
  AddPluginFlag(inspect_command, &plugins);

  OpsFlags ops;
  CLI::App* ops_command = app.add_subcommand("ops", "List the registered ops");
  ops_command->add_option("--format", ops.format, "Output format")
      ->option_text("text|pbtxt")
      ->check(CLI::IsMember({"text", "pbtxt"}));
  ops_command->add_option("name", ops.name, "Describe only this op, with its documentation")
      ->option_text("[NAME]");
  AddPluginFlag(ops_command, &plugins);

  std::string from, to;
  CLI::App* convert_command =
      app.add_subcommand("convert", "Convert a GraphDef between binary (.pb) and text (.pbtxt)");
  convert_command->add_option("in", from, "GraphDef to read")->required()->option_text("IN");
  convert_command->add_option("out", to, "GraphDef to write")->required()->option_text("OUT");

  TestFlags test;
  CLI::App* test_command = app.add_subcommand(
      "test", "Run golden cases: folders with a graph, feeds/ and expected/ as .npy files");
  AddTestFlags(test_command, &test);
  AddPluginFlag(test_command, &plugins);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Requested help goes to standard output and is not an error.
    return app.exit(error) == 0 ? 0 : 2;
  }

  // Converts std::bad_alloc to an error.
  absl::Status status = CallSafely([&] {
    for (const std::string& plugin : plugins) GRADFLOW_RETURN_IF_ERROR(LoadLibrary(plugin));
    if (run_command->parsed()) return RunCommand(run, std::cout);
    if (bench_command->parsed()) return BenchCommand(bench, std::cout);
    if (inspect_command->parsed()) return InspectCommand(inspect, std::cout);
    if (ops_command->parsed()) return OpsCommand(ops, std::cout);
    if (test_command->parsed()) return TestCommand(test, std::cout);
    return ConvertCommand(from, to);
  });
  std::cout.flush();
  if (status.ok() && !std::cout) {
    status = absl::UnavailableError("standard output could not be written");
  }
  if (status.ok()) return 0;
  std::cerr << absl::StatusCodeToString(status.code()) << ": "
            << absl::StrReplaceAll(status.message(), {{"\n", "; "}}) << "\n";
  return 1;
}

}  // namespace
}  // namespace gradflow::tools

int main(int argc, char** argv) { return gradflow::tools::Main(argc, argv); }
