// The reports to the watchdog of each process of a farm: the part that waits, and the reason.
#include <gtest/gtest.h>

#include "farm/node/service.h"
#include "farm/recorder/service.h"
#include "farm/supervisor/service.h"

namespace rodeo::farm {
namespace {

std::string text(const std::vector<process::WatchedPart>& parts) {
  std::string out;
  for (const auto& part : parts) out += part.name + ": " + part.waits_for + " (" + std::to_string(part.progress) + ")\n";
  return out;
}

TEST(WatchedParts, OfASupervisorAreEventsAndClears) {
  SupervisorStatus status;
  status.nodes = {{.name = "a", .connected = true, .events = 3, .assigned = 10, .decisions = 7},
                  {.name = "b", .events = 1, .assigned = 2, .decisions = 1},
                  {.name = "c", .connected = true, .assigned = 5, .decisions = 5}};
  status.readouts = {{.name = "r", .connected = true, .behind = 2, .answered = 9},
                     {.name = "away", .lives = false, .behind = 4}};
  status.waiting = 6;
  EXPECT_EQ(text(watched_parts(status)),
            "events at node a: its decisions (7)\n"
            "events at node b: the node, which is not connected (1)\n"
            "events without a node: room at a filter node (17)\n"
            "clears for readout r: its answer (9)\n");
  status = {};
  status.waiting = 1;
  EXPECT_EQ(text(watched_parts(status)), "events without a node: a filter node (0)\n");
}

TEST(WatchedParts, OfANodeAreItsEventsByWhatTheyLack) {
  NodeStatus status;
  EXPECT_EQ(text(watched_parts(status)), "");
  status.counters = {{"accepted", 5}, {"rejected", 4}, {"recorded_bytes", 100}};
  status.fetching = status.selecting = status.recording = 1;
  status.unsafe_decisions = 2;
  status.readouts = {{"r1", true, "", 0}, {"r2", false, "", 0}};
  EXPECT_EQ(text(watched_parts(status)),
            "events that are built: readout r2, which is not connected (11)\n"
            "events at the selection: its verdict (10)\n"
            "accepted events: a recorder's answer (100)\n"
            "decisions: the supervisor, which is not connected (7)\n");
}

TEST(WatchedParts, OfARecorderAreEventsThatAreNotSafeAndFilesThatCannotBeStored) {
  RecorderService::Shown shown;
  shown.recorder.counters = {{"events_recorded", 8}};
  shown.recorder.events_waiting = 1;
  shown.target = {.stored_files = 2, .files_left = 1, .trouble = {}};
  EXPECT_EQ(text(RecorderService::watched_parts(shown)), "events that are not safe: the disk (8)\n");
  shown.recorder.events_waiting = 0;
  shown.target.trouble = "no space";
  EXPECT_EQ(text(RecorderService::watched_parts(shown)), "closed files: their target (2)\n");
}

}  // namespace
}  // namespace rodeo::farm
