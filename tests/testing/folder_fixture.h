// FolderFixture: a GoogleTest fixture for tests that read and write files.
#ifndef GRADFLOW_TESTS_TESTING_FOLDER_FIXTURE_H_
#define GRADFLOW_TESTS_TESTING_FOLDER_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>

namespace gradflow {
namespace testing {

class FolderFixture : public ::testing::Test {
 protected:
  // Creates an empty folder for the test. The destructor removes it.
  FolderFixture();
  ~FolderFixture() override;

  const std::string& folder() const { return folder_; }
  // Returns the path of a file in the folder.
  std::string File(const std::string& name) const { return folder_ + "/" + name; }

 private:
  const std::string folder_;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_FOLDER_FIXTURE_H_
