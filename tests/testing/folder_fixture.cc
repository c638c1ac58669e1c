#include "tests/testing/folder_fixture.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gradflow {
namespace testing {
namespace {

// The name contains the process id, because tests run in concurrent processes.
std::string NewFolder() {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/gradflow_test_", getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

FolderFixture::FolderFixture() : folder_(NewFolder()) {}

FolderFixture::~FolderFixture() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace testing
}  // namespace gradflow
