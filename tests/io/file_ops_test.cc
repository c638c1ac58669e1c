#include "gradflow/io/file_ops.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "gradflow/core/registry.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

TEST(FileOps, EachOpThatUsesFilesReadsOrWritesThem) {
  const std::set<std::string> readers = {"ReadFile", "MatchingFiles", "Restore", "RestoreSlice",
                                         "RestoreV2"};
  int writers = 0;
  for (const OpRegistration* op : GlobalRegistry().Ops()) {
    if (op->api().group != "io_ops" || !op->def().is_stateful()) continue;
    const std::string& name = op->def().name();
    EXPECT_NE(internal::WritesFiles(name), readers.count(name) == 1) << name;
    writers += internal::WritesFiles(name) ? 1 : 0;
  }
  EXPECT_EQ(writers, 5);
}

}  // namespace
}  // namespace gradflow
