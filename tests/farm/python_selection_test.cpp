// A selection in Python, called as a node's worker calls it: its results, and the handling of errors, crashes and hangs.
#include "farm/selection/python_selection.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "farm/selection/register.h"
#include "formats/encode_event.h"
#include "formats/rod_data.h"
#include "formats/temporary_directory.h"
#include "rodeo/settings.h"

namespace {

using rodeo::EventRob;
using rodeo::Parameters;
using rodeo::Selected;
using rodeo::SourceId;
using rodeo::WholeEvent;
using rodeo::farm::PythonSelection;
using rodeo::test::TemporaryDirectory;

class PythonSelectionTest : public testing::Test {
 protected:
  PythonSelectionTest() {
    rodeo::farm::set_python_command({RODEO_TEST_PYTHON, "-B", "-m"});
    ::setenv("PYTHONPATH", RODEO_TEST_PYTHON_PATH, 1);
    const rodeo::formats::RodHeader rod{.source_id = {0x510001}, .run_number = 7, .l1id = {5}};
    rob_ = rodeo::formats::encode_rob({.source_id = {0x510001}},
                                      rodeo::formats::encode_rod(rod, std::vector<std::uint32_t>{0}, data_));
  }

  std::string file(const std::string& text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    rodeo::test::write_file(directory_.file("mine.py"), {bytes, bytes + text.size()});
    return directory_.file("mine.py");
  }
  static Parameters parameters(const std::string& file, std::int64_t timeout_ms = 60'000) {
    Parameters parameters;
    parameters.set("file", file);
    parameters.set("timeout", timeout_ms * 1'000'000);
    parameters.set("start_timeout", std::int64_t{60'000'000'000});
    return parameters;
  }
  WholeEvent event(std::uint64_t id = 0x1'0000'0005) {
    // A fragment may arrive in two pieces.
    parts_ = {std::span<const std::byte>(rob_).first(20), std::span<const std::byte>(rob_).subspan(20)};
    robs_ = {{.source_id = {0x510001}, .status = 3, .parts = parts_}};
    return {.global_id = id,
            .l1id = {5},
            .run_number = 7,
            .lumi_block = 2,
            .scan_step = 4,
            .bcid = 6,
            .trigger_type = 8,
            .robs = robs_};
  }
  static std::string error_of(PythonSelection& selection, const WholeEvent& event) {
    try {
      (void)selection.select(event);
    } catch (const std::runtime_error& thrown) {
      return thrown.what();
    }
    return "";
  }
  static std::uint64_t count(const PythonSelection& selection, const std::string& name) {
    for (const auto& counter : selection.counters()) {
      if (counter.name == name) return counter.value;
    }
    return 0;
  }

  TemporaryDirectory directory_;
  std::vector<std::byte> data_ = std::vector<std::byte>(1000, std::byte{0x2a});
  std::vector<std::byte> rob_;
  std::vector<std::span<const std::byte>> parts_;
  std::vector<EventRob> robs_;
};

TEST_F(PythonSelectionTest, SeesTheEventAndSaysItsStreams) {
  PythonSelection selection(parameters(file(R"(
import rodeo
@rodeo.select(first=[0x510001])
def mine(event):
    rob = event.robs[0x510001]
    assert (event.global_id, event.l1id, event.run_number, event.lumi_block) == (0x100000005, 5, 7, 2)
    assert (event.scan_step, event.bcid, event.trigger_type, event.step) == (4, 6, 8, 0)
    assert rob.status == 3 and rob.word(0) == 0xdd1234dd and bytes(rob.data) == b"\x2a" * 1000
    return ["Main", rodeo.Stream("Sample", type="calibration", obeys_lumi_block=False)]
)")));
  EXPECT_EQ(selection.first_robs(), std::vector<SourceId>{{0x510001}});
  const Selected selected = selection.select(event());
  ASSERT_EQ(selected.verdict, Selected::Verdict::accepted);
  ASSERT_EQ(selected.streams.size(), 2U);
  EXPECT_EQ(selected.streams[0].name, "Main");
  EXPECT_EQ(selected.streams[0].type, "physics");
  EXPECT_TRUE(selected.streams[0].obeys_lumi_block);
  EXPECT_EQ(selected.streams[1].type, "calibration");
  EXPECT_FALSE(selected.streams[1].obeys_lumi_block);
}

TEST_F(PythonSelectionTest, RejectsAndAsksForMore) {
  PythonSelection selection(parameters(file(R"(
import rodeo
@rodeo.select
def mine(event):
    return {1: rodeo.reject(), 2: False, 3: rodeo.more(0x42, 0x43), 4: True}[event.global_id]
)")));
  EXPECT_EQ(selection.select(event(1)).verdict, Selected::Verdict::rejected);
  EXPECT_EQ(selection.select(event(2)).verdict, Selected::Verdict::rejected);
  const Selected more = selection.select(event(3));
  EXPECT_EQ(more.verdict, Selected::Verdict::more);
  EXPECT_EQ(more.robs, (std::vector<SourceId>{{0x42}, {0x43}}));
  EXPECT_EQ(selection.select(event(4)).verdict, Selected::Verdict::accepted);
}

TEST_F(PythonSelectionTest, LargeEventsGetMoreMemory) {
  PythonSelection selection(parameters(file(R"(
import rodeo
@rodeo.select
def mine(event):
    return rodeo.accept("Main") if len(event.robs[0x510001].raw) > 3_000_000 else rodeo.reject()
)")));
  EXPECT_EQ(selection.select(event()).verdict, Selected::Verdict::rejected);
  data_.resize(4 << 20);
  rob_ = rodeo::formats::encode_rob({.source_id = {0x510001}},
                                    rodeo::formats::encode_rod({.source_id = {0x510001}}, {}, data_));
  EXPECT_EQ(selection.select(event()).verdict, Selected::Verdict::accepted);
}

TEST_F(PythonSelectionTest, WhatItRaisesAndNonsenseFailTheEventAlone) {
  PythonSelection selection(parameters(file(R"(
import rodeo
@rodeo.select
def mine(event):
    if event.global_id == 1: raise ValueError("out of range")
    if event.global_id == 2: return 3.14
    if event.global_id == 3: return ["../x"]
    return True
)")));
  EXPECT_NE(error_of(selection, event(1)).find("ValueError: out of range (mine.py:5)"), std::string::npos)
      << error_of(selection, event(1));
  EXPECT_NE(error_of(selection, event(2)).find("3.14"), std::string::npos);
  EXPECT_NE(error_of(selection, event(3)).find("not a valid stream name"), std::string::npos);
  EXPECT_EQ(error_of(selection, event(4)), "");
  EXPECT_EQ(count(selection, "python_crashed"), 0U);
}

TEST_F(PythonSelectionTest, ACrashFailsTheEventAndTheNextHasANewProcess) {
  PythonSelection selection(parameters(file(R"(
import os, rodeo
@rodeo.select
def mine(event):
    if event.global_id == 1: os.kill(os.getpid(), 11)
    if event.global_id == 2: os._exit(3)
    return True
)")));
  for (const std::uint64_t id : {1, 2}) {
    EXPECT_NE(error_of(selection, event(id)), "") << id;
    EXPECT_EQ(selection.select(event(9)).verdict, Selected::Verdict::accepted);
    EXPECT_EQ(count(selection, "python_crashed"), id);
  }
}

TEST_F(PythonSelectionTest, AHangFailsTheEventAndTheNextHasANewProcess) {
  PythonSelection selection(parameters(file(R"(
import time, rodeo
@rodeo.select
def mine(event):
    if event.global_id == 1: time.sleep(3600)
    return True
)"),
                                       2000));
  EXPECT_NE(error_of(selection, event(1)).find("did not answer in time"), std::string::npos);
  EXPECT_EQ(count(selection, "python_hung"), 1U);
  EXPECT_EQ(selection.select(event(2)).verdict, Selected::Verdict::accepted);
}

TEST_F(PythonSelectionTest, AFileThatIsNoneIsRefusedWithWhatPythonSays) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"import rodeo\nx = (", "SyntaxError"},
           {"import no_such_module", "no_such_module"},
           {"import sys; sys.exit(4)", "SystemExit"},
           {"x = 1", "has 0 functions"},
           {"import rodeo\n@rodeo.select\ndef a(e): pass\n@rodeo.select\ndef b(e): pass\n", "has 2 functions"}}) {
    try {
      const PythonSelection selection(parameters(file(text)));
      ADD_FAILURE() << text;
    } catch (const rodeo::SetupError& error) {
      EXPECT_EQ(error.error().code, "farm.python");
      EXPECT_NE(error.error().message().find(says), std::string::npos) << error.error().message();
    }
  }
}

}  // namespace
