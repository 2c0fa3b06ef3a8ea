// The content of system files, and errors beyond their keys.
#include "process/control_configuration.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace rodeo::process {
namespace {

namespace fs = std::filesystem;

class SystemFile : public ::testing::Test {
 protected:
  SystemFile() {
    std::string pattern = (fs::temp_directory_path() / "rodeo-system-XXXXXX").string();
    scratch_ = ::mkdtemp(pattern.data());
    std::ofstream(scratch_ / "readout.toml") << "[readout]\n";
    std::ofstream(scratch_ / "cards.toml") << "[emulator]\n";
    std::ofstream(scratch_ / "farm.toml") << "[farm.supervisor]\n[farm.node]\n[farm.recorder]\n";
    std::ofstream(scratch_ / "broken.toml") << "[readout\n";
  }
  ~SystemFile() override { fs::remove_all(scratch_); }

  std::vector<Error> errors(const std::string& text) const {
    base::ComponentRegistry registry;
    base::PluginHost plugins(registry, {});
    const auto configuration = settings::load_configuration(
        {.file = scratch_ / "system.toml", .text = text, .environment = false}, control_tables(), registry, plugins);
    return configuration ? check_control(*configuration) : configuration.error();
  }
  /// "code: what" for a system with one readout and these lines.
  std::string wrong(const std::string& lines, const std::string& control = "") const {
    std::string all;
    for (const Error& error :
         errors(fmt::format("[control]\n{}\n[[control.process]]\nname = \"readout\"\n{}", control, lines))) {
      EXPECT_NE(error.where.find("system.toml:"), std::string::npos) << error.message();
      all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", error.code, error.what);
    }
    return all;
  }

  static constexpr const char* kReadout = "kind = \"readout\"\nconfiguration = \"readout.toml\"\n";
  fs::path scratch_;
};

TEST_F(SystemFile, WithEveryKindOfProcessIsGood) {
  const auto found = errors(R"(
[control]
name = "lab"
listen = "[::1]:8080"
disk_stop = "1GB"
[[control.process]]
name = "cards"
kind = "emulator"
configuration = "cards.toml"
hosts = ["node1", "local"]
count = 2
[[control.process]]
name = "readout"
kind = "readout"
configuration = "readout.toml"
role = "at_least"
at_least = 0.9
count = 20
restart = "in_run"
set = ["readout.name=x={index}"]
[[control.process]]
name = "supervisor"
kind = "supervisor"
configuration = "farm.toml"
[[control.process]]
name = "node"
kind = "node"
configuration = "farm.toml"
count = 40
[[control.process]]
name = "recorder"
kind = "recorder"
configuration = "farm.toml"
count = 2
[[control.process]]
name = "notes"
kind = "program"
command = ["/bin/sh", "-c", "true"]
role = "expendable"
[[control.host]]
name = "node1"
launcher = "ssh"
)");
  for (const Error& error : found) ADD_FAILURE() << error.message();
}

TEST_F(SystemFile, ListensOnLoopbackOnly) {
  for (const char* good : {"127.0.0.1:0", "127.9.9.9:80", "localhost:8080", "[::1]:1"})
    EXPECT_EQ(wrong(kReadout, fmt::format("listen = \"{}\"", good)), "") << good;
  for (const char* open : {"0.0.0.0:80", "192.168.1.1:80", "[::]:80", "example.org:80", "127.0.0.1.example.org:80", ":80"})
    EXPECT_TRUE(wrong(kReadout, fmt::format("listen = \"{}\"", open)).starts_with("control.not_loopback: ")) << open;
  for (const char* none :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80 "})
    EXPECT_TRUE(wrong(kReadout, fmt::format("listen = \"{}\"", none)).starts_with("config.bad_value: ")) << none;
}

TEST_F(SystemFile, WhatIsWrongWithAClassIsSaid) {
  struct Case {
    std::string lines;
    std::string says;
  };
  const std::string readout = kReadout;
  for (const Case& one : std::vector<Case>{
           {"kind = \"readout\"", "control.bad_system: a readout needs a configuration"},
           {"kind = \"emulator\"", "control.bad_system: an emulator needs a configuration"},
           {"kind = \"program\"", "control.bad_system: a program needs a command"},
           {"kind = \"program\"\ncommand = [\"x\"]\nconfiguration = \"readout.toml\"",
            "control.bad_system: a program has no configuration"},
           {"kind = \"radeout\"\nconfiguration = \"readout.toml\"", "config.bad_choice: control.process[0].kind"},
           {"kind = \"emulator\"\nconfiguration = \"readout.toml\"",
            "control.bad_system: " + scratch_.string() + "/readout.toml has no [emulator]"},
           {"kind = \"node\"\nconfiguration = \"readout.toml\"",
            "control.bad_system: " + scratch_.string() + "/readout.toml has no [farm.node]"},
           {"kind = \"supervisor\"\nconfiguration = \"farm.toml\"\ncount = 2",
            "control.bad_system: a system has one supervisor"},
           {"kind = \"supervisor\"\nconfiguration = \"farm.toml\"\n[[control.process]]\nname = \"s\"\nkind = "
            "\"supervisor\"\n"
            "configuration = \"farm.toml\"",
            "control.bad_system: a system has one supervisor"},
           {"kind = \"readout\"\nconfiguration = \"nowhere.toml\"", "config.unreadable: control.process[0].configuration"},
           {readout + "command = [\"x\"]", "control.bad_system: what a readout runs is known"},
           {readout + "hosts = [\"nod1\"]", "control.bad_system: there is no host `nod1`"},
           {readout + "set = [\"=3\"]", "control.bad_system: `=3` is not KEY=VALUE"},
           {readout + "role = \"at_least\"\nat_least = 2", "control.bad_system: at least 2 of 1 process"},
           {readout + "role = \"at_least\"\nat_least = 0", "control.bad_system: at least 0 of 1 process"},
           {readout + "at_least = 1", "control.bad_system: at_least is for role"},
           {readout + "restart = \"in_run\"", "control.bad_system: an essential process is not restarted in a run"},
           {fmt::format("{0}[[control.process]]\nname = \"readout\"\n{0}", readout),
            "control.bad_system: two processes would be called `readout`"},
           {fmt::format("{0}count = 2\n[[control.process]]\nname = \"readout-2\"\n{0}", readout),
            "control.bad_system: two processes would be called `readout-2`"},
           {fmt::format("{0}[[control.process]]\nname = \"a b\"\n{0}", readout),
            "config.bad_value: control.process[1].name"},
           {fmt::format("{0}[[control.process]]\nname = \"{1:x>60}\"\n{0}", readout, ""), "control.bad_system: `rodeo-xxxx"},
           {readout + "[[control.host]]\nname = \"a\"\n[[control.host]]\nname = \"a\"",
            "control.bad_system: two hosts are called `a`"},
           {readout + "[[control.host]]\nname = \"local\"\nlauncher = \"ssh\"",
            "control.bad_system: the host `local` is this one"},
       })
    EXPECT_TRUE(wrong(one.lines).starts_with(one.says)) << one.lines << "\n  " << wrong(one.lines);
}

TEST_F(SystemFile, WhatIsWrongInTheFileOfAClassIsSaidWithItsPlaceThere) {
  const auto found =
      errors("[control]\n[[control.process]]\nname = \"r\"\nkind = \"readout\"\nconfiguration = \"broken.toml\"");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().code, "config.syntax");
  EXPECT_NE(found.front().where.find("broken.toml:1:"), std::string::npos) << found.front().where;
}

TEST_F(SystemFile, WithAlarmsAndExternalProgramsIsGood) {
  EXPECT_EQ(wrong(std::string(kReadout) + R"(
[[control.external]]
name = "high_voltage"
address = "http://hv.example:9100/metrics"
keep = ["hv_volts"]
[[control.alarm]]
name = "hv_low"
of = "high_voltage"
value = 'hv_volts{channel="3"}'
comparison = "<"
limit = 1450
times = 3
of_last = 5
priority = "alarm"
text = "channel 3 has {value} V"
do = "call the expert"
[[control.alarm]]
name = "late"
of = "readout"
value = "chunks.lost.late"
per_second = true
limit = 10
hold = "5s"
[[control.alarm]]
name = "rate"
value = "trigger_rate_hz"
comparison = "<"
limit = 1
[[control.alarm]]
name = "dead_time"
limit = 0.2
priority = "alarm"
[[control.alarm]]
name = "back_pressure"
enabled = false
)"),
            "");
}

TEST_F(SystemFile, WhatIsWrongWithAnAlarmIsSaidAndWhatWasMeant) {
  struct Case {
    std::string lines;
    std::string says;
    std::string next;
  };
  const std::string alarm = "[[control.alarm]]\nname = \"mine\"\n";
  for (const Case& one : std::vector<Case>{
           {"[[control.alarm]]\nname = \"ded_time\"\nlimit = 1\n", "the alarm `ded_time` has no value",
            "did you mean `dead_time`"},
           {alarm + "value = \"events\"", "the alarm `mine` has no limit", "limit = NUMBER"},
           {alarm + "value = \"dead_time\"\nlimit = 1", "`dead_time` is not a number of the system",
            "did you mean `dead_time_fraction`?"},
           {alarm + "of = \"readout\"\nvalue = \"rate\"\nlimit = 1", "`rate` is not a number of a process",
            "did you mean `rate_hz`?"},
           {alarm + "of = \"radeout\"\nvalue = \"rate_hz\"\nlimit = 1",
            "there is no class of processes and no external program `radeout`", "did you mean `readout`?"},
           {alarm + "value = \"events\"\nlimit = 1\ntimes = 5\nof_last = 3", "5 of the last 3 looks", "times is at most"},
           {alarm + "value = \"events\"\nlimit = 1\nhold = \"5s\"\ntimes = 2\nof_last = 3", "hold and of_last both",
            "leave one out"},
           {fmt::format("{0}value = \"events\"\nlimit = 1\n{0}value = \"events\"\nlimit = 2", alarm),
            "two alarms are called `mine`", "the other stands at"},
           {"[[control.alarm]]\nname = \"stall\"\nlimit = 1\n", "the built-in rule `stall` has no limit", ""},
           {"[[control.alarm]]\nname = \"stall\"\nvalue = \"events\"\n", "`stall` is a built-in rule", "leave it out"},
           {"[[control.external]]\nname = \"hv\"\naddress = \"hv:9100\"\n", "`hv:9100` is not an HTTP address", "http://"},
           {"[[control.external]]\nname = \"readout\"\naddress = \"http://hv\"\n",
            "another part of the system is already called `readout`", ""},
       }) {
    const auto found = errors("[control]\n[[control.process]]\nname = \"readout\"\n" + std::string(kReadout) + one.lines);
    ASSERT_EQ(found.size(), 1U) << one.lines;
    EXPECT_EQ(found.front().code, "control.bad_alarm");
    EXPECT_TRUE(found.front().what.starts_with(one.says)) << found.front().message();
    EXPECT_NE(found.front().next.find(one.next), std::string::npos) << found.front().message();
    EXPECT_NE(found.front().where.find("system.toml:"), std::string::npos) << found.front().message();
  }
}

TEST_F(SystemFile, WithoutProcessesIsNone) {
  const auto found = errors("[control]\nname = \"lab\"");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().code, "control.bad_system");
  EXPECT_TRUE(errors("").empty()) << "a file without a system is not checked here";
}

TEST_F(SystemFile, AUmaskIsOctalAndLeavesItsOwnerAll) {
  for (const char* const good : {"0027", "027", "22", "0"})
    EXPECT_EQ(wrong(kReadout, fmt::format("umask = \"{}\"", good)), "") << good;
  for (const char* const bad : {"", "0x1b", "9", "0700", "01000", "rwx", "-1", "27 "})
    EXPECT_EQ(wrong(kReadout, fmt::format("umask = \"{}\"", bad)),
              fmt::format("config.bad_value: control.umask: `{}` is not a umask", bad));
}

TEST_F(SystemFile, NamesTheConfigurationsThatItsProcessesBeginWithEachOnce) {
  base::ComponentRegistry registry;
  base::PluginHost plugins(registry, {});
  const auto configuration = settings::load_configuration({.file = scratch_ / "system.toml",
                                                           .text = R"(
[control]
name = "lab"
[[control.process]]
name = "readout"
kind = "readout"
configuration = "readout.toml"
count = 2
set = ["a={number}{index}", "b={system}-{name}", "c={run_directory}", "d={other}"]
[[control.process]]
name = "same"
kind = "readout"
configuration = "readout.toml"
count = 3
[[control.process]]
name = "slow-control"
kind = "program"
command = ["true"]
)",
                                                           .environment = false},
                                                          control_tables(), registry, plugins);
  ASSERT_TRUE(configuration);
  const auto found = class_configurations(*configuration);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].process, "readout-1");
  EXPECT_EQ(found[0].overrides, (std::vector<std::string>{"a=10", "b=lab-readout-1", "c=lab/runs/000000", "d={other}"}));
  EXPECT_EQ(found[1].overrides[0], "a=21");
  EXPECT_EQ(found[1].file, scratch_ / "readout.toml");
  EXPECT_EQ(found[2].process, "same-1");
}

}  // namespace
}  // namespace rodeo::process
