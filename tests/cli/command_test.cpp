#include "cli/command.h"

#include <gtest/gtest.h>

using namespace rodeo;
using namespace rodeo::cli;
using namespace std::chrono_literals;

namespace {

struct Options {
  std::string config;
  std::vector<std::string> set;
  std::vector<std::string> files;
  double rate_hz = 100e3;
  std::uint64_t size_bytes = 2u << 20;
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<int> links;
  bool keep = false;
};

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    Command& readout = root_.verb("readout", "runs");
    readout.option("CONFIG", options_.config, "configuration").required();
    readout.option("--set", options_.set, "override");
    readout.rate("--rate", options_.rate_hz, "rate");
    readout.size("--size", options_.size_bytes, "size");
    readout.duration("--timeout", options_.timeout, "time-out");
    readout.option("-n,--links", options_.links, "links");
    readout.flag("--keep", options_.keep, "keep");
    readout.run([] { return ExitCode::done; });
    Command& link = readout.verb("link", "takes a link out");
    link.option("FILE", options_.files, "files");
    link.run([] { return ExitCode::partial; });
    root_.verb("fail", "fails").run([]() -> Result<ExitCode> {
      return std::unexpected(Error{"base.plugin_abi", "too new", {}, "rebuild it"});
    });
    root_.verb("quote", "quotes another process").run([]() -> Result<ExitCode> {
      return std::unexpected(Error{"cli.part", "it said: \x1b]0;title\x07", "\x1b[31mplace", "look\x1b"});
    });
    root_.verb("throw", "throws").run([]() -> Result<ExitCode> { throw std::runtime_error("gone"); });
  }

  int run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "rodeo");
    testing::internal::CaptureStderr();
    const int status = run_command(root_, static_cast<int>(arguments.size()), arguments.data());
    said_ = testing::internal::GetCapturedStderr();
    return status;
  }

  Options options_;
  Command root_{"rodeo", "test"};
  std::string said_;
};

}  // namespace

TEST_F(CommandLine, ErrorsWithTextsOfOtherProcessesLeaveTheTerminalAsItIs) {
  EXPECT_NE(run({"quote"}), 0);
  EXPECT_NE(said_.find("it said: ?]0;title?"), std::string::npos) << said_;
  EXPECT_EQ(said_.find('\x1b'), std::string::npos) << said_;
}

TEST_F(CommandLine, ReadsQuantitiesWithUnits) {
  EXPECT_EQ(run({"readout", "run.toml", "--rate", "1MHz", "--size=5MB", "--timeout", "20ms", "--links", "24"}), 0);
  EXPECT_EQ(options_.config, "run.toml");
  EXPECT_EQ(options_.rate_hz, 1e6);
  EXPECT_EQ(options_.size_bytes, 5'000'000u);
  EXPECT_EQ(options_.timeout, 20ms);
  EXPECT_EQ(options_.links, 24);
}

TEST_F(CommandLine, WhatIsNotGivenKeepsItsDefault) {
  EXPECT_EQ(run({"readout", "run.toml"}), 0);
  EXPECT_EQ(options_.rate_hz, 100e3);
  EXPECT_FALSE(options_.timeout.has_value());
  EXPECT_FALSE(options_.keep);
}

TEST_F(CommandLine, ARepeatableOptionTakesOneValueEachTime) {
  EXPECT_EQ(run({"readout", "--set", "a=1", "--set", "b=2", "run.toml", "--keep"}), 0);
  EXPECT_EQ(options_.set, (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(options_.config, "run.toml");
  EXPECT_TRUE(options_.keep);
}

TEST_F(CommandLine, ANounMayHaveAnActionBesideItsVerbs) {
  EXPECT_EQ(run({"readout", "link", "a", "b"}), 6);
  EXPECT_EQ(options_.files, (std::vector<std::string>{"a", "b"}));
}

TEST_F(CommandLine, ABadQuantityIsAUsageErrorWithAHint) {
  EXPECT_EQ(run({"readout", "run.toml", "--timeout", "20"}), 2);
  EXPECT_EQ(said_,
            "error[cli.bad_value]: rodeo readout: --timeout: \"20\" is not a duration: it has no unit\n"
            "  write it like 5s, 10ms or 1000us    rodeo readout --help\n");
}

TEST_F(CommandLine, WhatIsMistypedIsSaidBeforeWhatIsMissingThen) {
  EXPECT_EQ(run({"readout", "--kepe"}), 2);
  EXPECT_NE(said_.find("there is no option `--kepe`"), std::string::npos) << said_;
  EXPECT_NE(said_.find("did you mean `--keep`?"), std::string::npos) << said_;
}

TEST_F(CommandLine, AnEmptyValueIsNamedAndTakesNothingFromTheNextArgument) {
  EXPECT_EQ(run({"readout", "run.toml", "--timeout=", "--keep"}), 2);
  EXPECT_EQ(said_,
            "error[cli.bad_value]: rodeo readout: --timeout: the value is empty\n"
            "  give a value after the `=`, or leave out the option    rodeo readout --help\n");
  EXPECT_EQ(run({"readout", "run.toml", "--set", ""}), 2);
  EXPECT_NE(said_.find("--set: the value is empty"), std::string::npos);
  EXPECT_EQ(run({"readout", ""}), 2);
  EXPECT_EQ(run({"readout", "run.toml", "--set", "a="}), 0) << "a value that ends with =";
  EXPECT_EQ(options_.set, std::vector<std::string>{"a="});
  EXPECT_EQ(run({"readout", "run.toml", "--bogus="}), 2);
  EXPECT_NE(said_.find("there is no option `--bogus`"), std::string::npos);
}

TEST_F(CommandLine, ASizeNeedsItsUnitAndZeroDoesNot) {
  EXPECT_EQ(run({"readout", "run.toml", "--size", "5"}), 2);
  EXPECT_EQ(run({"readout", "run.toml", "--size", "1.5"}), 2);
  EXPECT_EQ(run({"readout", "run.toml", "--size", "5B"}), 0);
  EXPECT_EQ(options_.size_bytes, 5u);
  EXPECT_EQ(run({"readout", "run.toml", "--size", "0"}), 0);
  EXPECT_EQ(options_.size_bytes, 0u);
}

TEST_F(CommandLine, AMissingArgumentIsAUsageError) {
  EXPECT_EQ(run({"readout"}), 2);
  EXPECT_NE(said_.find("CONFIG"), std::string::npos);
}

TEST_F(CommandLine, OneArgumentTooManyIsAUsageError) {
  EXPECT_EQ(run({"readout", "a.toml", "b.toml"}), 2);
  EXPECT_NE(said_.find("unexpected argument `b.toml`"), std::string::npos);
}

TEST_F(CommandLine, AnErrorEndsInTheStatusOfItsCode) {
  EXPECT_EQ(run({"fail"}), 3);
  EXPECT_EQ(said_, "error[base.plugin_abi]: too new\n  rebuild it\n");
  EXPECT_EQ(run({"throw"}), 1);
  EXPECT_NE(said_.find("gone"), std::string::npos);
}

TEST_F(CommandLine, AnOptionHasItsEarlierNameForAWhileWithANotice) {
  Command& renamed = root_.verb("renamed", "has a new name");
  renamed.option("-n,--events", options_.links, "events").renamed_from("--count");
  renamed.run([] { return ExitCode::done; });
  EXPECT_EQ(run({"renamed", "--events", "3"}), 0);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(run({"renamed", "--count=5"}), 0);
  EXPECT_EQ(options_.links, 5);
  EXPECT_EQ(said_, "note: --count is now --events; the old name works until the next minor version\n");
  EXPECT_EQ(renamed.options().front()->names(), (std::vector<std::string>{"-n", "--events"})) << "no help shows it";
}
