#include "gradflow/codegen/definitions.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gradflow/codegen/wrapper_generator.h"
#include "gradflow/core/registry.h"
#include "gradflow/ops/register.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow::testing {
namespace {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr char kOpsDir[] = GRADFLOW_TEST_DATA_DIR "/../../ops";

void RegisterOne(Registry& registry) {
  registry.Op("One")
      .Group("toy_ops")
      .Alias("Uno")
      .Rename("x", "value")
      .HandWritten()
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {float, double} = DT_FLOAT")
      .Attr("scale: float = 0.1")
      .Doc("Does \"one\" thing.\n\nx: The input.");
}
void RegisterTwo(Registry& registry) { registry.Op("Two").Group("toy_ops").Output("y: float"); }
void RegisterKernelAlone(Registry& registry) { registry.Kernel("One", nullptr); }

constexpr OpFamily kToys[] = {{"first/one", &RegisterOne}, {"second/two", &RegisterTwo}};

TEST(DefinitionsTest, FilesMatchTheRegisteredOps) {
  ASSERT_TRUE(LeftOutOps().empty());
  const auto texts = DefinitionsText(StandardOpFamilies());
  GRADFLOW_ASSERT_OK(texts.status());
  for (const auto& [folder, text] : *texts) {
    const auto file = ReadTextFile(absl::StrCat(kOpsDir, "/", folder, "/definitions.pbtxt"));
    GRADFLOW_ASSERT_OK(file.status());
    EXPECT_TRUE(*file == text) << "ops/" << folder
                               << "/definitions.pbtxt is stale: run `./dev ops`";
  }
}

TEST(DefinitionsTest, HaveTheDefinitionsAndWrapperPropertiesOfAllOps) {
  const auto texts = DefinitionsText(StandardOpFamilies());
  GRADFLOW_ASSERT_OK(texts.status());
  Registry registry;
  for (const auto& [folder, text] : *texts) {
    GRADFLOW_ASSERT_OK(RegisterDefinitions(text, &registry));
  }
  Registry standard;
  RegisterStandardOps(standard);
  ASSERT_EQ(registry.Ops().size(), standard.Ops().size());
  for (const OpRegistration* op : standard.Ops()) {
    const OpRegistration* read = registry.FindOp(op->def().name());
    ASSERT_NE(read, nullptr) << op->def().name();
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(read->def(), op->def()))
        << op->def().name();
    EXPECT_EQ(read->api().group, op->api().group);
    EXPECT_EQ(read->api().aliases, op->api().aliases);
    EXPECT_EQ(read->api().renames, op->api().renames);
    EXPECT_EQ(read->api().hand_written, op->api().hand_written);
  }
}

TEST(DefinitionsTest, GroupsOpsByFolderAndNamesTheirFamilies) {
  const auto texts = DefinitionsText(kToys);
  GRADFLOW_ASSERT_OK(texts.status());
  ASSERT_EQ(texts->size(), 2u);
  EXPECT_THAT(texts->at("first"),
              AllOf(HasSubstr("family: \"first/one\"\n"), HasSubstr("    name: \"One\"\n"),
                    HasSubstr("alias: \"Uno\"\n"), HasSubstr("hand_written: true\n")));
  EXPECT_THAT(texts->at("second"), HasSubstr("family: \"second/two\"\n"));
}

TEST(DefinitionsTest, NamesTheFamilyThatNeedsAnother) {
  constexpr OpFamily kFamilies[] = {{"first/kernel", &RegisterKernelAlone}};
  EXPECT_THAT(
      DefinitionsText(kFamilies),
      StatusIs(absl::StatusCode::kNotFound,
               Eq("ops/first/kernel.cc: cannot register a kernel: op 'One' is not registered")));
}

TEST(DefinitionsTest, RejectsTextThatIsNotAListOfDefinitions) {
  Registry registry;
  EXPECT_THAT(
      RegisterDefinitions("op {\n  famly: \"x\"\n}\n", &registry),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("expected a list of op definitions: 2:"), HasSubstr("famly"))));
}

TEST(DefinitionsTest, RejectsAnOpThatIsDefinedTwice) {
  const auto texts = DefinitionsText(kToys);
  GRADFLOW_ASSERT_OK(texts.status());
  Registry registry;
  GRADFLOW_ASSERT_OK(RegisterDefinitions(texts->at("second"), &registry));
  EXPECT_THAT(RegisterDefinitions(texts->at("second"), &registry),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'Two'")));
}

}  // namespace
}  // namespace gradflow::testing
