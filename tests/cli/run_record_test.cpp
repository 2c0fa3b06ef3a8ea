// The records of a run in files and in run.json.
#include "readout/run/run_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/sha256.h"
#include "cli/system.h"
#include "formats/file_marks.h"

namespace rodeo::readout {
namespace {

namespace fs = std::filesystem;

class RunRecord : public ::testing::Test {
 protected:
  RunRecord() { fs::create_directories(directory_); }
  ~RunRecord() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  Result<void> record(const std::string& condition, const std::string& file) const {
    const Json report = Json::object({{"run", Json::object({{"condition", condition}})}, {"files", Json::array()}});
    return write_run_files(report, {{.path = path(file), .bytes = 12, .events = 3, .adler32 = 0xab}},
                           {"Rodeo-Software=1 abc", "Rodeo-Configuration={\"run.number\":\"7\"}"});
  }

  std::string condition_of(const std::string& file) const {
    const auto run = RunRecords().report_of(path(file));
    return run ? run->find("run")->find("condition")->string() : "none";
  }

  const fs::path directory_ = fs::temp_directory_path() / ("rodeo-run-record-" + std::to_string(::getpid()));
};

TEST_F(RunRecord, TheVerdictOfAFileIsFoundBesideItAndNoneReplacesAnother) {
  ASSERT_TRUE(record("GOOD", "a.data"));
  ASSERT_TRUE(record("INCOMPLETE", "b.data"));
  std::ofstream(path("run-3.json")) << "{ no JSON";
  EXPECT_EQ(condition_of("a.data"), "GOOD");
  EXPECT_EQ(condition_of("b.data"), "INCOMPLETE");
  EXPECT_EQ(condition_of("c.data"), "none");
  EXPECT_TRUE(fs::exists(path("run.json")) && fs::exists(path("run-2.json")));
  const auto run = RunRecords().report_of(path("b.data"));
  ASSERT_TRUE(run);
  const Json& file = run->find("files")->elements().at(0);
  EXPECT_EQ(file.find("name")->string(), "b.data");
  EXPECT_EQ(file.find("size_bytes")->number(), 12);
  EXPECT_EQ(file.find("adler32")->string(), "000000ab");
  EXPECT_EQ(run->find("software")->string(), "1 abc");
  EXPECT_EQ(run->find("configuration")->find("run.number")->string(), "7");
  for (const auto& entry : fs::directory_iterator(directory_)) EXPECT_NE(entry.path().extension(), ".part");
}

TEST_F(RunRecord, IsReadOnceForAllFilesOfADirectoryAndNamesOfThemTheOneThatWasAskedFor) {
  const Json report = Json::object({{"run", Json::object({{"condition", "GOOD"}})}});
  ASSERT_TRUE(write_run_files(report, {{.path = path("a.data")}, {.path = path("b.data")}}, {}));
  RunRecords runs;
  for (const char* name : {"b.data", "a.data"}) {
    const auto run = runs.report_of(path(name));
    ASSERT_TRUE(run);
    ASSERT_EQ(run->find("files")->elements().size(), 1U);
    EXPECT_EQ(run->find("files")->elements()[0].find("name")->string(), name);
    fs::remove(path("run.json"));
  }
  EXPECT_FALSE(runs.report_of(directory_ / "elsewhere" / "a.data"));
}

TEST_F(RunRecord, TheReportThatAKilledRunDidNotWriteIsNamed) {
  EXPECT_EQ(why_no_record(path("old.data")), "no run.json in its directory names this file");
  EXPECT_TRUE(why_no_record(path("a.writing")).starts_with("run.json is missing: ")) << why_no_record(path("a.writing"));
  ASSERT_TRUE(record("GOOD", "a.data"));
  EXPECT_TRUE(why_no_record(path("b.writing")).starts_with("run-2.json is missing: ")) << why_no_record(path("b.writing"));
}

TEST_F(RunRecord, ADirectoryThatTakesNoFileIsAnError) {
  const auto written = write_run_files(Json::object(), {{.path = path("not/there.data")}}, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, "file.write");
}

constexpr const char* kConfiguration = R"(
[run]
number = 12
[readout.input]
type = "generator"
[[readout.rob]]
source_id = "0x00610001"
)";

std::string value_of(const std::vector<std::string>& strings, std::string_view key) {
  for (const std::string& text : strings) {
    if (text.starts_with(std::string(key) + "=")) return text.substr(key.size() + 1);
  }
  return "";
}

TEST(RunStrings, HaveEveryValueAsLoadedAndItsHash) {
  const auto loaded = cli::load_readout(
      {.file = "run.toml", .text = kConfiguration, .overrides = {"readout.builder.timeout=77ms"}, .environment = false});
  ASSERT_TRUE(loaded);
  const auto& strings = loaded->settings.run.free_strings;
  const std::string text = value_of(strings, kConfigurationKey);
  EXPECT_EQ(value_of(strings, kConfigurationHashKey), base::sha256_hex(std::as_bytes(std::span(text))));
  EXPECT_EQ(text.find('\n'), std::string::npos) << "one line";
  const auto values = Json::parse(text);
  ASSERT_TRUE(values);
  const auto value = [&](std::string_view key) { return values->find(key) == nullptr ? "" : values->find(key)->string(); };
  EXPECT_EQ(value("run.number"), "12");
  EXPECT_EQ(value("readout.builder.timeout"), "77ms");
  EXPECT_EQ(value("readout.builder.workers"), "1") << "a default";
  EXPECT_NE(value("readout.rob[0].source_id"), "");
  for (const auto& [key, ignored] : values->members()) EXPECT_FALSE(key.starts_with("emulator.")) << key;
}

TEST(RunStrings, ANameOfAConsumerMayHaveBlanksAndNoControlCharacters) {
  const auto refused = [](const std::string& name) {
    const std::string consumer = "[[readout.consumer]]\ntype = \"event_sampler\"\nname = \"" + name + "\"\n";
    const auto loaded = cli::load_readout({.file = "run.toml", .text = kConfiguration + consumer, .environment = false});
    return loaded ? "" : loaded.error().front().code;
  };
  EXPECT_EQ(refused("for the shifters"), "");
  EXPECT_EQ(refused("half\\u001b[3"), "config.bad_value");
}

TEST(RunStrings, NamesThatStandInFilesAreChecked) {
  const auto refused = [](const std::string& setting) {
    const auto loaded =
        cli::load_readout({.file = "run.toml", .text = kConfiguration, .overrides = {setting}, .environment = false});
    return loaded ? "" : loaded.error().front().code;
  };
  EXPECT_EQ(refused("run.stream=a\"/><Tag name=\"b"), "config.bad_value");
  EXPECT_EQ(refused("run.stream=a/b"), "config.bad_value");
  EXPECT_EQ(refused("run.project="), "config.bad_value");
  EXPECT_NE(refused("run.stream_type=nonsense"), "");
  EXPECT_NE(refused("run.number=2147483648"), "");
  EXPECT_EQ(refused("run.number=2147483647"), "");
  EXPECT_EQ(refused("run.stream=Main_2.a-b"), "");
}

TEST(RunStrings, TheSourceIdOfTheFullEventIsThatOfTheConfiguration) {
  const auto loaded = cli::load_readout(
      {.file = "run.toml", .text = kConfiguration, .overrides = {"run.source_id=0x00123456"}, .environment = false});
  ASSERT_TRUE(loaded);
  EXPECT_EQ(readout::event_frame_settings(loaded->settings.run).source_id, SourceId{0x00123456});
}

}  // namespace
}  // namespace rodeo::readout
