#include "gradflow/distributed/launch.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

// The port if a launcher gives an address without one, as for PyTorch.
constexpr int kDefaultPort = 29500;
// Jobs of Slurm that share a machine get different ports.
constexpr int kFirstSlurmPort = 20000;
constexpr int kNumSlurmPorts = 10000;

struct Launcher {
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {
    {"GRADFLOW_RANK", "GRADFLOW_SIZE"},
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"JOB_COMPLETION_INDEX", "GRADFLOW_SIZE"},
    // Last, because these are also set for programs that sbatch starts without srun.
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

absl::StatusOr<int> ReadNumber(const ReadVariable& read, const char* name) {
  const std::optional<std::string> text = read(name);
  int value = 0;
  if (!text.has_value()) return errors::InvalidArgument("the variable ", name, " is not set");
  if (absl::SimpleAtoi(*text, &value) && value >= 0) return value;
  return errors::InvalidArgument(name, " must be a number of at least 0, but is '",
                                 errors::Printable(*text), "'");
}

// Returns the first machine of a list such as "node[03-07,9],login".
std::string FirstNode(absl::string_view list) {
  const size_t end = list.find_first_of(",[");
  if (end == absl::string_view::npos || list[end] == ',') return std::string(list.substr(0, end));
  const absl::string_view numbers = list.substr(end + 1);
  const absl::string_view first = numbers.substr(0, numbers.find_first_of("-,]"));
  const size_t close = list.find(']', end);
  absl::string_view rest;
  if (close != absl::string_view::npos) {
    rest = list.substr(close + 1);
    rest = rest.substr(0, rest.find(','));
  }
  return absl::StrCat(list.substr(0, end), first, rest);
}

absl::StatusOr<std::string> ReadAddress(const ReadVariable& read) {
  if (const auto address = read("GRADFLOW_ADDRESS")) return *address;
  if (const auto host = read("MASTER_ADDR")) {
    int port = kDefaultPort;
    if (read("MASTER_PORT").has_value()) {
      GRADFLOW_ASSIGN_OR_RETURN(port, ReadNumber(read, "MASTER_PORT"));
    }
    return absl::StrCat(*host, ":", port);
  }
  for (const char* const name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    const auto nodes = read(name);
    if (!nodes.has_value() || !read("SLURM_PROCID").has_value()) continue;
    int job = 0;
    if (read("SLURM_JOB_ID").has_value()) {
      GRADFLOW_ASSIGN_OR_RETURN(job, ReadNumber(read, "SLURM_JOB_ID"));
    }
    return absl::StrCat(FirstNode(*nodes), ":", kFirstSlurmPort + job % kNumSlurmPorts);
  }
  // All ranks of mpirun are on this machine.
  const auto local = read("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (local.has_value() && local == read("OMPI_COMM_WORLD_SIZE")) {
    return absl::StrCat("127.0.0.1:", kDefaultPort);
  }
  return std::string();
}

}  // namespace

absl::StatusOr<LaunchOptions> LaunchOptionsFromEnvironment() {
  return LaunchOptionsFromEnvironment([](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  });
}

absl::StatusOr<LaunchOptions> LaunchOptionsFromEnvironment(const ReadVariable& read) {
  LaunchOptions options;
  for (const Launcher& launcher : kLaunchers) {
    if (!read(launcher.rank).has_value()) continue;
    GRADFLOW_ASSIGN_OR_RETURN(options.rank, ReadNumber(read, launcher.rank));
    GRADFLOW_ASSIGN_OR_RETURN(options.size, ReadNumber(read, launcher.size));
    if (options.rank >= options.size) {
      return errors::InvalidArgument(launcher.rank, " must be less than ", launcher.size, ", ",
                                     options.size, ", but is ", options.rank);
    }
    break;
  }
  GRADFLOW_ASSIGN_OR_RETURN(options.address, ReadAddress(read));
  if (options.size > 1 && options.address.empty()) {
    return errors::InvalidArgument(
        options.size, " ranks need an address: set GRADFLOW_ADDRESS to host:port of rank 0, or to ",
        "file:PATH");
  }
  return options;
}

}  // namespace gradflow
