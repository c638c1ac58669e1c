// The command line tool: parses the arguments and calls a subcommand.
//
// Exit status: 0 on success; 1 on failure, with one line "CODE: text" on standard error; 2 on wrong
// usage, with the usage on standard error.
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/libraries.h"
#include "gradflow/core/status.h"
#include "gradflow/core/version.h"
#include "gradflow/io/libraries.h"
#include "gradflow/io/plugin.h"
#include "gradflow/ops/common/libraries.h"
#include "gradflow/ops/common/simd.h"
#include "tools/commands.h"
#include "tools/terminal.h"
#include "tools/test_command.h"
#include "tools/time_limit.h"

namespace gradflow::tools {
namespace {

// Checks that an option is a number of at least 0 and at most `max`. CLI11's own checks accept NaN
// and print limits with 309 digits.
CLI::Validator NumberUpTo(double max) {
  CLI::Validator validator("");
  validator.name("NUMBER").operation([max](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= 0 && value <= max) return "";
    return absl::StrCat("expected a number from 0 to ", max, ", but found '",
                        errors::Printable(text), "'");
  });
  return validator;
}
CLI::Validator IntegerUpTo(int64_t min, int64_t max) {
  CLI::Validator validator("");
  validator.name("INTEGER").operation([min, max](const std::string& text) -> std::string {
    int64_t value = 0;
    if (absl::SimpleAtoi(text, &value) && value >= min && value <= max) return "";
    return absl::StrCat("expected an integer from ", min, " to ", max, ", but found '",
                        errors::Printable(text), "'");
  });
  return validator;
}
// The largest tolerance of an option. Any finite limit would do, but help texts print it.
constexpr double kMaxTolerance = 1e300;
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

void AddGraphLimitFlag(CLI::App* command, std::vector<std::string>* limits) {
  command->add_option("--graph-limit", *limits, "Replace a limit on the size of a graph")
      ->option_text("NAME=NUMBER")
      ->allow_extra_args(false);
}

// Adds the options of CommandLimits.
void AddLimitFlags(CLI::App* command, CommandLimits* limits) {
  command->add_option("--timeout", limits->timeout_seconds, "Time limit; 0: no limit")
      ->option_text("SECONDS")
      ->check(NumberUpTo(1e9));
  command
      ->add_option("--memory-limit", limits->memory_limit,
                   "Limit on memory of messages, constants, shapes and tensors; 0: no limit")
      ->option_text("BYTES")
      ->check(IntegerUpTo(0, kMaxInt64));
}

void AddFileFlags(CLI::App* command, FileFlags* files) {
  command
      ->add_option("--allow-read", files->allow_read,
                   "Let the graph read files below a folder, such as by ReadFile and RestoreV2")
      ->option_text("DIR")
      ->allow_extra_args(false);
  command
      ->add_option("--allow-write", files->allow_write,
                   "Let the graph write files below a folder, such as by WriteFile and SaveV2")
      ->option_text("DIR")
      ->allow_extra_args(false);
}

void AddTagFlag(CLI::App* command, std::string* tag) {
  command->add_option("--tag", *tag, "Tags of the graph of a SavedModel; default: serve")
      ->option_text("TAG,...");
}

// Adds the argument MODEL.
void AddModelArgument(CLI::App* command, std::string* model, std::string* tag) {
  command->add_option("model", *model, "GraphDef, binary or text, or the folder of a SavedModel")
      ->required()
      ->option_text("MODEL");
  AddTagFlag(command, tag);
}

void AddSignatureFlag(CLI::App* command, std::string* signature) {
  command
      ->add_option("--signature", *signature,
                   "Signature of a SavedModel whose names are used; default: serving_default")
      ->option_text("NAME");
}

void AddGraphFlags(CLI::App* command, GraphFlags* flags) {
  AddModelArgument(command, &flags->graph, &flags->tag);
  AddSignatureFlag(command, &flags->signature);
  command->add_option("--checkpoint", flags->checkpoint, "Read the values of variables")
      ->option_text("CKPT");
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
      ->check(IntegerUpTo(0, kMaxInt));
  command
      ->add_option("--memory-limit", flags->memory_limit, "Limit on memory of tensors; 0: no limit")
      ->option_text("BYTES")
      ->check(IntegerUpTo(0, kMaxInt64));
  command->add_flag("--fast", flags->fast,
                    "Fold batch normalization into weights, and use the blocked layout for images; "
                    "changes the last bits of results, and ReLUs may hide NaN");
  command
      ->add_flag("--int8{nearest}", flags->int8,
                 "Compute in 8-bit integers between the graph's fake-quantization nodes; "
                 "--int8=tflite rounds as TensorFlow Lite does")
      ->check(CLI::IsMember({std::string("nearest"), std::string(kTfLiteRounding)}));
  AddFileFlags(command, &flags->files);
  command->add_flag("--raw-prints", flags->raw_prints,
                    "Let Print and PrintV2 write control characters to a terminal");
  AddGraphLimitFlag(command, &flags->graph_limits);
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
      command->add_option("--atol", flags->atol, "Absolute tolerance, added to the relative one")
          ->option_text("NUMBER")
          ->check(NumberUpTo(kMaxTolerance))
          ->excludes(update);
  CLI::Option* rtol = command->add_option("--rtol", flags->rtol, "Relative tolerance")
                          ->option_text("NUMBER")
                          ->check(NumberUpTo(kMaxTolerance))
                          ->excludes(update);
  command->add_option("--ulps", flags->ulps, "Tolerance in units in the last place")
      ->option_text("N")
      ->check(IntegerUpTo(0, kMaxInt))
      ->excludes(update)
      ->excludes(atol)
      ->excludes(rtol);
  command->add_option("--threads", flags->threads, "Number of threads; 0: all cores")
      ->option_text("N")
      ->check(IntegerUpTo(0, kMaxInt));
  command
      ->add_option("--memory-limit", flags->memory_limit,
                   "Limit on memory of tensors of a case; 0: no limit")
      ->option_text("BYTES")
      ->check(IntegerUpTo(0, kMaxInt64));
  command->add_option("--timeout", flags->timeout_seconds, "Time limit of a case; 0: no limit")
      ->option_text("SECONDS")
      ->check(NumberUpTo(1e9));
  AddGraphLimitFlag(command, &flags->graph_limits);
}

void AddGradientsFlags(CLI::App* command, GradientsFlags* flags) {
  AddModelArgument(command, &flags->graph, &flags->tag);
  command->add_option("--of", flags->of, "Tensor to differentiate; its elements are summed")
      ->required()
      ->option_text("NAME");
  command
      ->add_option(
          "--wrt", flags->wrt,
          "Tensors to differentiate with respect to: names, all placeholders (the default), or "
          "all variables")
      ->option_text("NAME,...|placeholders|variables");
  command->add_option("-o,--output", flags->output, "Graph with gradients to write")
      ->required()
      ->option_text("OUT");
  command
      ->add_option("--check", flags->check,
                   "Feed a tensor from a file, and compare its gradient with central differences")
      ->option_text("NAME=FILE.npy")
      ->allow_extra_args(false);
  command->add_flag(
      "--recompute", flags->recompute,
      "Save memory: compute forward tensors again in the backward pass (checkpointing)");
  AddLimitFlags(command, &flags->limits);
  AddFileFlags(command, &flags->files);
  AddGraphLimitFlag(command, &flags->graph_limits);
}

void AddQuantizeFlags(CLI::App* command, QuantizeFlags* flags) {
  AddModelArgument(command, &flags->graph, &flags->tag);
  command
      ->add_option("--data", flags->data, "Feed a run with tensors from files, to find the ranges")
      ->required()
      ->option_text("NAME=FILE.npy,...")
      ->allow_extra_args(false);
  command->add_option("--method", flags->method, "How to find ranges")
      ->option_text("min-max|moving-average|percentile|least-squares")
      ->check(CLI::IsMember({"min-max", "moving-average", "percentile", "least-squares"}));
  command
      ->add_option("--percentile", flags->percentile,
                   "Percentage of the numbers of a tensor within its range")
      ->option_text("P")
      ->check(NumberUpTo(100));
  command->add_flag("--bias-correction", flags->bias_correction,
                    "Add the mean error of each channel of a product to its result");
  command->add_option("-o,--output", flags->output, "Quantized graph to write")
      ->required()
      ->option_text("OUT");
  command
      ->add_option("--report", flags->report,
                   "Write a page with the ranges, their histograms, and the error of each product")
      ->option_text("FILE.html");
  AddLimitFlags(command, &flags->limits);
  AddGraphLimitFlag(command, &flags->graph_limits);
}

void AddCheckpointFlags(CLI::App* command, CheckpointFlags* flags) {
  command
      ->add_option("checkpoint", flags->checkpoint,
                   "Checkpoint: its prefix, its index, or a folder for its latest checkpoint")
      ->required()
      ->option_text("CKPT");
  CLI::Option* const tensor =
      command->add_option("--tensor", flags->tensor, "Print a tensor, or write it to a file")
          ->option_text("NAME");
  command->add_option("-o,--output", flags->output, "File for the tensor")
      ->option_text("FILE.npy")
      ->needs(tensor);
  command->add_option("--diff", flags->diff, "Show the differences of this checkpoint")
      ->option_text("NEW")
      ->excludes(tensor);
  AddLimitFlags(command, &flags->limits);
}

void AddFreezeFlags(CLI::App* command, FreezeFlags* flags) {
  AddModelArgument(command, &flags->graph, &flags->tag);
  AddSignatureFlag(command, &flags->signature);
  command
      ->add_option(
          "checkpoint", flags->checkpoint,
          "Checkpoint: its prefix, its index, or a folder for its latest checkpoint; none for a "
          "SavedModel")
      ->option_text("[CKPT]");
  command
      ->add_option("--outputs", flags->outputs,
                   "Outputs that the frozen graph computes; default: the outputs of the signature")
      ->option_text("NAME,...");
  command->add_option("-o,--output", flags->output, "Graph without variables to write")
      ->required()
      ->option_text("OUT");
  AddLimitFlags(command, &flags->limits);
  AddGraphLimitFlag(command, &flags->graph_limits);
}

// Returns the version, a line for each library, and a line for SIMD.
std::string Version() {
  std::string text = "gradflow " GRADFLOW_VERSION_STRING;
  for (const auto& libraries : {CoreLibraries(), KernelLibraries(), FileLibraries()}) {
    for (const Library& library : libraries) {
      absl::StrAppendFormat(&text, "\n%-17s %s", library.name, library.version);
    }
  }
  absl::StrAppendFormat(&text, "\n%-17s %s (this processor has %s)", "SIMD", CurrentSimdTarget(),
                        absl::StrJoin(SimdTargets(), ", "));
  return text;
}

int Main(int argc, char** argv) {
  CLI::App app("Runs and examines TensorFlow graphs.", "gradflow");
  app.require_subcommand(1);
  // After wrong usage, prints the usage, not just a hint at --help.
  app.failure_message(CLI::FailureMessage::help);
  app.set_version_flag("--version", Version);
  std::vector<std::string> plugins;

  RunFlags run;
  CLI::App* run_command = app.add_subcommand("run", "Run a graph once");
  AddGraphFlags(run_command, &run.graph);
  run_command->add_option("--timeout", run.timeout_seconds, "Time limit; 0: no limit")
      ->option_text("SECONDS")
      ->check(NumberUpTo(1e9));
  run_command->add_option("--trace", run.trace, "Write a trace of the run, for ui.perfetto.dev")
      ->option_text("FILE.json");
  run_command->add_option("--report", run.report, "Write a page that shows the graph and the run")
      ->option_text("FILE.html");
  run_command
      ->add_option(
          "--report-tensors", run.report_tensors,
          "Outputs whose values the page shows: fetched outputs (outputs, the default), all, or "
          "outputs whose name matches REGEX")
      ->option_text("outputs|all|REGEX");
  AddPluginFlag(run_command, &plugins);

  BenchFlags bench;
  CLI::App* bench_command = app.add_subcommand("bench", "Time runs of a graph after warm-up");
  AddGraphFlags(bench_command, &bench.graph);
  bench_command->add_option("--repeat", bench.repeat, "Number of runs to time, up to a million")
      ->option_text("N")
      ->check(IntegerUpTo(1, 1000000));
  bench_command->add_flag("--json", bench.json, "Print the result as JSON");
  bench_command->add_flag("--progress", bench.progress,
                          "Report progress; default: on a terminal only");
  bench_command
      ->add_option("--report", bench.report, "Write a page that shows the graph and one more run")
      ->option_text("FILE.html");
  AddPluginFlag(bench_command, &plugins);

  InspectFlags inspect;
  CLI::App* inspect_command =
      app.add_subcommand("inspect", "List a graph's ops, inputs, outputs, and import errors");
  AddModelArgument(inspect_command, &inspect.graph, &inspect.tag);
  CLI::Option* plan = inspect_command->add_flag(
      "--plan", inspect.plan, "List the nodes that a run eliminates, folds and fuses");
  inspect_command->add_flag("--fast", inspect.fast, "Include the changes of run --fast")
      ->needs(plan);
  inspect_command
      ->add_flag("--int8{nearest}", inspect.int8,
                 "Include the changes of run --int8, or of run --int8=tflite")
      ->check(CLI::IsMember({std::string("nearest"), std::string(kTfLiteRounding)}))
      ->needs(plan);
  AddLimitFlags(inspect_command, &inspect.limits);
  AddGraphLimitFlag(inspect_command, &inspect.graph_limits);
  AddPluginFlag(inspect_command, &plugins);

  GradientsFlags gradients;
  CLI::App* gradients_command =
      app.add_subcommand("gradients", "Add the gradients of a tensor to a graph");
  AddGradientsFlags(gradients_command, &gradients);
  AddPluginFlag(gradients_command, &plugins);

  CheckpointFlags checkpoint;
  CLI::App* checkpoint_command =
      app.add_subcommand("checkpoint", "List the tensors of a checkpoint, or compare two");
  AddCheckpointFlags(checkpoint_command, &checkpoint);

  QuantizeFlags quantize;
  CLI::App* quantize_command =
      app.add_subcommand("quantize", "Prepare a frozen graph for inference in 8-bit integers");
  AddQuantizeFlags(quantize_command, &quantize);
  AddPluginFlag(quantize_command, &plugins);

  FreezeFlags freeze;
  CLI::App* freeze_command =
      app.add_subcommand("freeze", "Replace a graph's variables by their values in a checkpoint");
  AddFreezeFlags(freeze_command, &freeze);
  AddPluginFlag(freeze_command, &plugins);

  OpsFlags ops;
  CLI::App* ops_command = app.add_subcommand("ops", "List the registered ops");
  ops_command->add_option("--format", ops.format, "Output format")
      ->option_text("text|pbtxt")
      ->check(CLI::IsMember({"text", "pbtxt"}));
  ops_command->add_option("name", ops.name, "Describe only this op, with its documentation")
      ->option_text("[NAME]");
  ops_command->add_option("--of", ops.of, "List the ops of this graph, for CMake's GRADFLOW_OPS")
      ->option_text("GRAPH")
      ->excludes("name")
      ->excludes("--format");
  AddPluginFlag(ops_command, &plugins);

  ConvertFlags convert;
  CLI::App* convert_command = app.add_subcommand(
      "convert", "Convert a GraphDef between binary (.pb) and text (.pbtxt), or to C++ (.cc)");
  convert_command->add_option("in", convert.from, "GraphDef or folder of a SavedModel to read")
      ->required()
      ->option_text("IN");
  AddTagFlag(convert_command, &convert.tag);
  convert_command->add_option("out", convert.to, "GraphDef to write")
      ->required()
      ->option_text("OUT");
  AddLimitFlags(convert_command, &convert.limits);
  AddGraphLimitFlag(convert_command, &convert.graph_limits);

  ViewFlags view;
  CLI::App* view_command = app.add_subcommand(
      "view", "Show a graph, or the differences of two, as a page or for Graphviz");
  AddModelArgument(view_command, &view.graph, &view.tag);
  view_command->add_option("-o,--output", view.output, "File to write: .html, .dot or .gv")
      ->required()
      ->option_text("FILE");
  view_command->add_option("--diff", view.diff, "Show the differences of this graph")
      ->option_text("NEW");
  AddLimitFlags(view_command, &view.limits);
  AddGraphLimitFlag(view_command, &view.graph_limits);
  AddPluginFlag(view_command, &plugins);

  EditFlags edit;
  CLI::App* edit_command =
      app.add_subcommand("edit", "Edit and run a graph in a browser, until Ctrl-C");
  edit_command
      ->add_option("model", edit.graph,
                   "GraphDef to edit, which need not exist, or the folder of a SavedModel")
      ->option_text("[MODEL]");
  AddTagFlag(edit_command, &edit.tag);
  edit_command
      ->add_option("-o,--output", edit.output, "Write a page that edits the graph without a server")
      ->option_text("FILE.html");
  edit_command->add_option("--port", edit.port, "Port of the server; 0: any free port")
      ->option_text("N")
      ->check(IntegerUpTo(0, 65535));
  edit_command->add_option("--threads", edit.threads, "Number of threads of runs; 0: all cores")
      ->option_text("N")
      ->check(IntegerUpTo(0, kMaxInt));
  edit_command
      ->add_option("--memory-limit", edit.memory_limit,
                   "Limit on memory of tensors of a run; 0: no limit")
      ->option_text("BYTES")
      ->check(IntegerUpTo(0, kMaxInt64));
  edit_command->add_option("--timeout", edit.timeout_seconds, "Time limit of a run; 0: no limit")
      ->option_text("SECONDS")
      ->check(NumberUpTo(1e9));
  AddFileFlags(edit_command, &edit.files);
  AddGraphLimitFlag(edit_command, &edit.graph_limits);
  AddPluginFlag(edit_command, &plugins);

  TestFlags test;
  CLI::App* test_command = app.add_subcommand(
      "test", "Run golden cases: folders with a graph, feeds/ and expected/ as .npy files");
  AddTestFlags(test_command, &test);
  AddFileFlags(test_command, &test.files);
  AddPluginFlag(test_command, &plugins);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Requested help goes to standard output and is not an error.
    return app.exit(error) == 0 ? 0 : 2;
  }

  double timeout_seconds = 0;
  for (const auto& [command, limits] : std::initializer_list<std::pair<CLI::App*, CommandLimits*>>{
           {inspect_command, &inspect.limits},
           {gradients_command, &gradients.limits},
           {checkpoint_command, &checkpoint.limits},
           {freeze_command, &freeze.limits},
           {quantize_command, &quantize.limits},
           {convert_command, &convert.limits},
           {view_command, &view.limits}}) {
    if (command->parsed()) timeout_seconds = limits->timeout_seconds;
  }
  TimeLimit time_limit(timeout_seconds);
  TerminalOutput terminal(&std::cout, STDOUT_FILENO);
  std::ostream& out = terminal.stream();
  // With a time limit, prints the complete result or nothing.
  std::ostringstream kept;
  std::ostream& to = timeout_seconds > 0 ? kept : out;

  // Converts std::bad_alloc to an error.
  absl::Status status = CallSafely([&] {
    for (const std::string& plugin : plugins) GRADFLOW_RETURN_IF_ERROR(LoadLibrary(plugin));
    if (run_command->parsed()) return RunCommand(run, out);
    if (bench_command->parsed()) return BenchCommand(bench, out);
    if (inspect_command->parsed()) return InspectCommand(inspect, to);
    if (gradients_command->parsed()) return GradientsCommand(gradients, to);
    if (checkpoint_command->parsed()) return CheckpointCommand(checkpoint, to);
    if (freeze_command->parsed()) return FreezeCommand(freeze, to);
    if (quantize_command->parsed()) return QuantizeCommand(quantize, to);
    if (ops_command->parsed()) return OpsCommand(ops, out);
    if (test_command->parsed()) return TestCommand(test, out);
    if (view_command->parsed()) return ViewCommand(view);
    if (edit_command->parsed()) return EditCommand(edit, out);
    return ConvertCommand(convert);
  });
  time_limit.End();
  if (timeout_seconds > 0) out << kept.str();
  out.flush();
  if (status.ok() && !std::cout) {
    status = absl::UnavailableError("standard output could not be written");
  }
  if (status.ok()) return 0;
  // Some parts of the message, such as file names, are not escaped yet.
  constexpr size_t kMaxMessage = 16384;
  std::cerr << absl::StatusCodeToString(status.code()) << ": "
            << errors::Printable(absl::StrReplaceAll(status.message(), {{"\n", "; "}}), kMaxMessage)
            << "\n";
  return 1;
}

}  // namespace
}  // namespace gradflow::tools

int main(int argc, char** argv) { return gradflow::tools::Main(argc, argv); }
