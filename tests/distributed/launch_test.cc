#include "gradflow/distributed/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

absl::StatusOr<LaunchOptions> Read(const Variables& variables) {
  return LaunchOptionsFromEnvironment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

// Returns "rank of size at address".
std::string Launch(const Variables& variables) {
  const absl::StatusOr<LaunchOptions> options = Read(variables);
  if (!options.ok()) return options.status().ToString();
  return absl::StrCat(options->rank, " of ", options->size, " at ", options->address);
}

TEST(LaunchOptions, NoVariablesMeanOneRank) { EXPECT_EQ(Launch({}), "0 of 1 at "); }

TEST(LaunchOptions, ReadsOwnVariables) {
  EXPECT_EQ(
      Launch(
          {{"GRADFLOW_RANK", "2"}, {"GRADFLOW_SIZE", "3"}, {"GRADFLOW_ADDRESS", "file:/tmp/meet"}}),
      "2 of 3 at file:/tmp/meet");
}

TEST(LaunchOptions, ReadsTheVariablesOfTorchrun) {
  EXPECT_EQ(Launch({{"RANK", "1"},
                    {"WORLD_SIZE", "4"},
                    {"MASTER_ADDR", "node1"},
                    {"MASTER_PORT", "1234"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_NTASKS", "1"}}),
            "1 of 4 at node1:1234");
  EXPECT_EQ(Launch({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node1"}}),
            "0 of 2 at node1:29500");
}

TEST(LaunchOptions, ReadsTheVariablesOfSlurm) {
  const auto launch = [](const std::string& nodes) {
    return Launch({{"SLURM_PROCID", "5"},
                   {"SLURM_NTASKS", "8"},
                   {"SLURM_STEP_NODELIST", nodes},
                   {"SLURM_JOB_ID", "1234567"}});
  };
  EXPECT_EQ(launch("node[03-07,9],login"), "5 of 8 at node03:24567");
  EXPECT_EQ(launch("node[3,5]"), "5 of 8 at node3:24567");
  EXPECT_EQ(launch("rack[1-2]-blade,other"), "5 of 8 at rack1-blade:24567");
  EXPECT_EQ(launch("a,b[1-2]"), "5 of 8 at a:24567");
  EXPECT_EQ(launch("single"), "5 of 8 at single:24567");
}

TEST(LaunchOptions, ReadsTheVariablesOfMpirun) {
  EXPECT_EQ(Launch({{"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
            "1 of 2 at 127.0.0.1:29500");
  EXPECT_EQ(Launch({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"GRADFLOW_ADDRESS", "head:1"}}),
            "1 of 2 at head:1");
}

TEST(LaunchOptions, ReadsTheVariablesOfAnIndexedJob) {
  EXPECT_EQ(Launch({{"JOB_COMPLETION_INDEX", "3"},
                    {"GRADFLOW_SIZE", "4"},
                    {"MASTER_ADDR", "train-0.train"}}),
            "3 of 4 at train-0.train:29500");
}

TEST(LaunchOptions, RejectsInvalidVariables) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Read({{"RANK", "x"}, {"WORLD_SIZE", "2"}}).status(),
              StatusIs(kInvalid, "RANK must be a number of at least 0, but is 'x'"));
  EXPECT_THAT(Read({{"RANK", "1"}}).status(),
              StatusIs(kInvalid, "the variable WORLD_SIZE is not set"));
  EXPECT_THAT(Read({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).status(),
              StatusIs(kInvalid, "RANK must be less than WORLD_SIZE, 2, but is 2"));
  EXPECT_THAT(Read({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).status(),
              StatusIs(kInvalid, HasSubstr("2 ranks need an address")));
}

}  // namespace
}  // namespace gradflow
