// A whole readout whose fragments are fetched and cleared over the network, with a client that checks every byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "cli/system.h"
#include "formats/provable.h"
#include "formats/rod_data.h"
#include "formats/temporary_directory.h"
#include "readout/application.h"
#include "readout/fragments_client.h"
#include "readout/run_report.h"

namespace rodeo::readout {
namespace {

using namespace std::chrono_literals;
using test::FragmentsClient;

constexpr std::uint64_t kSeed = 11;

/// Two ROBs of eight links, the handler `hlt`, and the consumers in `more`.
std::string configuration(const std::filesystem::path& bus, std::uint64_t events, const std::string& builder,
                          const std::string& more = "") {
  return fmt::format(R"(
[readout]
name = "readout1"
control = false
[readout.input]
type = "generator"
links = 16
chunk_bytes = 40
rate = 0
events = {}
seed = {}
ecr_triggers = 300
[readout.builder]
{}
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610001"
links = ["0x1000000000000000+8"]
links_per_group = {}
[[readout.rob]]
source_id = "0x00620000"
links = ["0x1000000000400000+8"]
links_per_group = {}
[[readout.consumer]]
type = "hlt_request_handler"
name = "hlt"
max_fragments = 200
queue = 16
sending = 64
linger = "2s"
bus = "{}"
{}
)",
                     events, kSeed, builder, builder.find("full") == std::string::npos ? 0 : 1,
                     builder.find("full") == std::string::npos ? 0 : 1, bus.string(), more);
}

class HltApplicationTest : public testing::Test {
 protected:
  void start(const std::string& text) {
    auto loaded = cli::load_readout({.file = "run.toml", .text = text, .environment = false});
    ASSERT_TRUE(loaded) << loaded.error().front().message();
    configuration_ = std::make_unique<ReadoutConfiguration>(std::move(*loaded));
    application_ = std::make_unique<Application>(configuration_->settings, configuration_->library->registry());
    application_->start();
    stepper_ = std::jthread([this] {
      while (application_->phase() != Phase::stopped) {
        application_->step();
        held_back_ = application_->limited_by() == "hlt";
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  RunReport ended() {
    stepper_.join();
    return make_report(configuration_->settings, application_->status(), application_->limited_by(), false);
  }

  /// Fetches all ROBs event by event, checks every chunk, and clears in between. Returns the number of chunks.
  static std::uint64_t take_all(FragmentsClient& node, std::uint64_t events, std::size_t chunks_of_a_rob) {
    std::uint64_t chunks = 0;
    std::uint64_t taken = 0;
    const std::vector<SourceId> robs = node.describe().robs;
    for (std::uint32_t ecr = 0; taken < events; ++ecr) {
      for (std::uint32_t l1 = 0; l1 < 300 && taken < events; ++l1, ++taken) {
        const L1Id id = L1Id::of(ecr, l1);
        const auto answer = node.fetch(id.value, 60'000'000);
        EXPECT_EQ(answer.status, 0) << id.value;
        const auto views = FragmentsClient::robs(answer);
        if (views.size() != robs.size()) return ADD_FAILURE() << views.size() << " ROBs", chunks;
        for (std::size_t i = 0; i < robs.size(); ++i) {
          EXPECT_EQ(views[i].source_id, robs[i]);
          chunks += proven(views[i], id, chunks_of_a_rob);
        }
        if (l1 % 50 == 49 || l1 == 299 || taken + 1 == events)
          node.clear({.ranges = {{L1Id::of(ecr, l1 / 50 * 50).value, l1 % 50 + 1}}});
      }
    }
    return chunks;
  }

  static std::uint64_t proven(const formats::RobView& rob, L1Id id, std::size_t expected) {
    const auto rod = rob.rod();
    EXPECT_TRUE(rod) << rod.error().message();
    if (!rod) return 0;
    EXPECT_EQ(rod->header.l1id, id);
    EXPECT_EQ(rod->header.source_id, rob.source_id);
    const formats::Provable provable(kSeed, false);
    std::uint64_t chunks = 0;
    const auto whole = formats::for_each_chunk_record(rod->data.bytes(), [&](const formats::ChunkRecord& record) {
      EXPECT_TRUE(provable.matches(record.bytes, record.header.link_id, id));
      ++chunks;
    });
    EXPECT_TRUE(whole) << whole.error().message();
    EXPECT_EQ(chunks, expected);
    return chunks;
  }

  static std::uint64_t counter(const RunReport& report, std::size_t consumer, const char* name) {
    return counter_value(report.consumers[consumer].counters, name, ~0ULL);
  }

  test::TemporaryDirectory bus_;
  std::unique_ptr<ReadoutConfiguration> configuration_;
  std::unique_ptr<Application> application_;
  std::atomic<bool> held_back_{false};  // mostly the handler holds the run back; set by the thread that calls step()
  std::jthread stepper_;
};

TEST_F(HltApplicationTest, EveryEventIsFetchedProvedAndCleared) {
  constexpr std::uint64_t kEvents = 700;  // far more events than the handler keeps
  start(configuration(bus_.path(), kEvents, "type = \"gbt\"\nchunk_size = 40\nwindow = 256\nworkers = 2"));
  FragmentsClient node(bus_.path(), "readout1.hlt");
  EXPECT_EQ(take_all(node, kEvents, 8), 16 * kEvents);
  const RunReport report = ended();
  EXPECT_EQ(report.condition, Condition::good);
  EXPECT_EQ(counter(report, 0, "cleared"), 2 * kEvents);
  EXPECT_EQ(counter(report, 0, "uncleared"), 0u);
  EXPECT_EQ(counter(report, 0, "fragments_fetched"), 2 * kEvents);
}

TEST_F(HltApplicationTest, InFullModeEveryGroupIsARobOfItsOwn) {
  constexpr std::uint64_t kEvents = 400;
  start(configuration(bus_.path(), kEvents, "type = \"full\"\nworkers = 2"));
  FragmentsClient node(bus_.path(), "readout1.hlt");
  const auto robs = node.describe().robs;
  ASSERT_EQ(robs.size(), 16u);
  EXPECT_EQ(robs[7], SourceId{0x00610008});
  EXPECT_EQ(robs[8], SourceId{0x00620000});
  EXPECT_EQ(take_all(node, kEvents, 1), 16 * kEvents);
  EXPECT_EQ(counter(ended(), 0, "cleared"), 16 * kEvents);
}

TEST_F(HltApplicationTest, SeveralHandlersServeTheirOwnRobsFromOneReadout) {
  constexpr std::uint64_t kEvents = 300;
  const std::string other = fmt::format(
      "robs = [0x00610001]\n[[readout.consumer]]\ntype = \"hlt_request_handler\"\nname = \"other\"\n"
      "max_fragments = 100\nrobs = [0x00620000]\nbus = \"{}\"\n",
      bus_.path());
  start(configuration(bus_.path(), kEvents, "type = \"gbt\"\nchunk_size = 40\nwindow = 256", other));
  std::jthread second([&] {
    FragmentsClient node(bus_.path(), "readout1.other");
    EXPECT_EQ(node.describe().robs, std::vector<SourceId>{{0x00620000}});
    EXPECT_EQ(take_all(node, kEvents, 8), 8 * kEvents);
  });
  FragmentsClient node(bus_.path(), "readout1.hlt");
  EXPECT_EQ(node.describe().robs, std::vector<SourceId>{{0x00610001}});
  EXPECT_EQ(take_all(node, kEvents, 8), 8 * kEvents);
  second.join();
  const RunReport report = ended();
  for (std::size_t handler = 0; handler < 2; ++handler) {
    EXPECT_EQ(counter(report, handler, "cleared"), kEvents);
    EXPECT_EQ(counter(report, handler, "other_robs"), kEvents);
  }
}

TEST_F(HltApplicationTest, ARunThatNobodyClearsIsHeldBackByTheHandlerAndEndsIncomplete) {
  start(configuration(bus_.path(), 2000, "type = \"gbt\"\nchunk_size = 40\nwindow = 256"));
  while (!held_back_) std::this_thread::sleep_for(1ms);
  application_->stop();
  const RunReport report = ended();
  const auto messages = application_->take_messages();
  EXPECT_TRUE(std::ranges::any_of(messages, [](const std::string& message) {
    return message.find("no farm has cleared any") != std::string::npos;
  })) << "a farm is needed";
  EXPECT_EQ(report.limited_by, "hlt");
  EXPECT_EQ(report.condition, Condition::incomplete);
  EXPECT_EQ(counter(report, 0, "uncleared"), report.fragments);
}

}  // namespace
}  // namespace rodeo::readout
