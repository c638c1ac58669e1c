// FolderFixture: a GoogleTest fixture for tests that read and write files.
#ifndef GRADFLOW_TESTS_TESTING_FOLDER_FIXTURE_H_
#define GRADFLOW_TESTS_TESTING_FOLDER_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>

namespace gradflow {
namespace testing {

class FolderFixture : public ::testing::Test {
 protected:
  // Makes an empty folder, of this test alone; it goes with the test.
  FolderFixture();
  ~FolderFixture() override;

  const std::string& folder() const { return folder_; }
  // The path of a file in it.
  std::string File(const std::string& name) const { return folder_ + "/" + name; }

 private:
  const std::string folder_;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_FOLDER_FIXTURE_H_
