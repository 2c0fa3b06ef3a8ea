#include "readout/consumer/event_sampler.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "formats/full_event.h"
#include "formats/rob.h"
#include "readout/collecting_consumer.h"
#include "readout/consumer/sample_client.h"
#include "readout/fragment_pool.h"

namespace rodeo::readout {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using test::CollectingConsumer;
using test::counter_of;
using test::FragmentPool;

/// The time limit for anything that a test waits for. It is generous, because no test measures time.
std::chrono::milliseconds patience() {
  const char* const scale = std::getenv("RODEO_TEST_TIMEOUT_SCALE");
  return std::chrono::milliseconds(static_cast<long>(10'000 * (scale != nullptr ? std::atof(scale) : 1)));
}

class Sampler : public testing::Test {
 protected:
  Sampler() {
    std::string pattern = (fs::temp_directory_path() / "rodeo-sampler-XXXXXX").string();
    scratch_ = ::mkdtemp(pattern.data());
    ::setenv("RODEO_RUNTIME_DIR", scratch_.c_str(), 1);
  }
  ~Sampler() override {
    end_.clear();
    sampler_.reset();
    EXPECT_TRUE(fs::is_empty(scratch_)) << "the socket is gone";
    fs::remove_all(scratch_);
    EXPECT_EQ(pool_.out(), 0u) << "every reference returned";
  }
  EventSampler& start(SamplerSettings settings = {}) {
    settings.max_rate_hz = 0;
    sampler_ = std::make_unique<EventSampler>(settings);
    sampler_->link(&end_);
    sampler_->start();
    return *sampler_;
  }
  std::uint64_t count(std::string_view name) const { return counter_of(sampler_->status().counters, name); }

  SampleClient connect(std::size_t readers = 1) {
    auto client = SampleClient::connect("readout");
    EXPECT_TRUE(client) << client.error().message();
    while (count("readers") != readers) std::this_thread::sleep_for(1ms);
    return std::move(*client);
  }
  /// Inserts a fragment and waits until the sampler has handled it, so that the next sample finds the reader free.
  void insert_and_settle(FragmentPtr fragment) {
    sampler_->insert(std::move(fragment));
    while (sampler_->status().queue_fill > 0) std::this_thread::sleep_for(1ms);
  }
  Sample next(SampleClient& client) {
    Sample sample;
    const auto outcome = client.next(sample, patience());
    EXPECT_TRUE(outcome && *outcome == SampleClient::Outcome::sample);
    return sample;
  }

  fs::path scratch_;
  FragmentPool pool_{{.links = 6, .links_per_part = 2}};
  CollectingConsumer end_;
  std::unique_ptr<EventSampler> sampler_;
};

TEST_F(Sampler, ShowsWholeEventsToAReader) {
  start({.frame = {.run_number = 77}});
  SampleClient client = connect();
  for (Sequence i = 0; i < 20; ++i) insert_and_settle(pool_.make(i));
  sampler_->stop();
  for (Sequence i = 0; i < 20; ++i) {
    const Sample sample = next(client);
    EXPECT_EQ(sample.header.sequence, i);
    EXPECT_EQ(sample.header.missed, 0u);
    const auto event = formats::decode_full_event(sample.event);
    ASSERT_TRUE(event);
    EXPECT_TRUE(event->checksum_holds());
    EXPECT_EQ(event->run_number, 77u);
    EXPECT_EQ(event->l1id.value, i);
    const auto rod = formats::decode_rob(event->payload.bytes())->rod();
    ASSERT_TRUE(rod);
    const FragmentPtr expected = pool_.make(i);
    std::vector<std::byte> data(expected->payload_bytes());
    expected->copy_to(data.data());
    EXPECT_TRUE(std::equal(data.begin(), data.end(), rod->data.bytes().begin(), rod->data.bytes().end()));
  }
  Sample sample;
  const auto outcome = client.next(sample, patience());
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, SampleClient::Outcome::end) << "the run is over";
  EXPECT_EQ(end_.size(), 20u) << "all fragments went on";
}

TEST_F(Sampler, TakesNothingWhileNobodyLooks) {
  start();
  for (Sequence i = 0; i < 100; ++i) sampler_->insert(pool_.make(i));
  EXPECT_EQ(count("samples_taken"), 0u);
  EXPECT_EQ(end_.size(), 100u);
}

TEST_F(Sampler, NeverWaitsForAReaderThatDoesNotRead) {
  start({.samples = 4});
  SampleClient idle = connect();
  // These are far more than sockets and places hold. insert() returns although the client does not read.
  constexpr Sequence kMany = 20'000;
  for (Sequence i = 0; i < kMany; ++i) {
    sampler_->insert(pool_.make(i));
    if (i % 1000 == 0) end_.clear();
  }
  sampler_->stop();
  EXPECT_EQ(count("samples_taken") + count("samples_skipped_queue_full"), kMany);
  EXPECT_EQ(count("samples_sent") + count("samples_missed_by_readers"), count("samples_taken"));
  EXPECT_EQ(sampler_->status().stalls, 0u);
}

TEST_F(Sampler, TellsAReaderWhatItMissedAndServesAnotherOneMeanwhile) {
  start({.samples = 256});
  SampleClient slow = connect();
  SampleClient quick = connect(2);
  std::uint64_t sent = 0;
  while (count("samples_missed_by_readers") == 0) {
    insert_and_settle(pool_.make(sent));
    EXPECT_EQ(next(quick).header.sequence, sent);
    ++sent;
    end_.clear();
    std::this_thread::sleep_for(1ms);
    if (sent > 100'000) FAIL() << "the socket never fills";
  }
  // Samples from before the gap are still there. The first sample after the gap states the number of missing ones.
  std::uint64_t received = 0;
  Sample sample;
  while (true) {
    const auto outcome = slow.next(sample, 50ms);
    ASSERT_TRUE(outcome);
    if (*outcome != SampleClient::Outcome::sample) break;
    EXPECT_EQ(sample.header.sequence, received++);
  }
  insert_and_settle(pool_.make(sent));
  const Sample after = next(slow);
  EXPECT_EQ(after.header.sequence, sent);
  EXPECT_EQ(after.header.missed, sent - received);
}

TEST_F(Sampler, SelectsByStatusTriggerTypeAndPrescale) {
  start({.prescale = 3, .status_mask = fragment_status::kTimeout | fragment_status::kOverflow, .trigger_types = {7}});
  SampleClient client = connect();
  Sequence matching = 0;
  std::vector<Sequence> expected;
  for (Sequence i = 0; i < 200; ++i) {
    FragmentPtr fragment = pool_.make(i, i % 2 == 0 ? 5 : 6);
    fragment->trigger_type = static_cast<std::uint8_t>(i % 4 == 0 ? 7 : 8);
    if (i % 4 == 0 && matching++ % 3 == 0) expected.push_back(i);
    insert_and_settle(std::move(fragment));
  }
  sampler_->stop();
  for (const Sequence sequence : expected) EXPECT_EQ(next(client).header.sequence, sequence);
  EXPECT_EQ(count("samples_taken"), expected.size());
}

TEST_F(Sampler, CopiesWhatItShowsSoThatOthersMayChangeTheFragment) {
  start();
  SampleClient client = connect();
  insert_and_settle(pool_.make(3));
  ASSERT_EQ(end_.size(), 1u);
  EXPECT_EQ(end_[0].references, 1u);
}

TEST_F(Sampler, SkipsAndCountsPayloadsBeyondItsLimit) {
  start({.max_payload_bytes = 64});
  SampleClient client = connect();
  sampler_->insert(pool_.make(1));
  EXPECT_EQ(count("samples_skipped_too_large"), 1u);
  EXPECT_EQ(end_.size(), 1u);
}

TEST_F(Sampler, GoesOnWhenAReaderLeaves) {
  start();
  {
    const SampleClient gone = connect();
  }
  while (count("readers") != 0) std::this_thread::sleep_for(1ms);
  SampleClient client = connect();
  insert_and_settle(pool_.make(9));
  EXPECT_EQ(next(client).header.sequence, 9u);
  EXPECT_EQ(count("readers_seen"), 2u);
}

TEST_F(Sampler, RefusesANameThatAnotherReadoutUses) {
  start();
  EXPECT_THROW(EventSampler(SamplerSettings{}), SetupError);
  EXPECT_TRUE(SampleClient::connect("readout")) << "the first one is not disturbed";
}

TEST_F(Sampler, ReplacesTheSocketOfADeadProcess) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (scratch_ / "readout.events").string();
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(fd);
  start();
  connect();
}

TEST(SampleClientAlone, SaysThatNoReadoutRuns) {
  ::setenv("RODEO_RUNTIME_DIR", "/nonexistent/rodeo", 1);
  for (const char* name : {"", "readout"}) {
    const auto client = SampleClient::connect(name);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code, "readout.no_sampler");
  }
}

TEST(SampleMessage, SurvivesItsEncodingAndRefusesOthers) {
  const SampleHeader header{
      .event_bytes = 123, .sequence = 1ULL << 40, .unix_ns = 5, .missed = 6, .ids = {.bits = 32, .has_resets = false}};
  auto bytes = encode_sample_header(header);
  EXPECT_EQ(decode_sample_header(bytes), header);
  for (const std::size_t at : {0u, 4u, 11u}) {  // magic, version, a size of gigabytes
    auto damaged = bytes;
    damaged[at] ^= std::byte{0x80};
    EXPECT_FALSE(decode_sample_header(damaged)) << at;
  }
  bytes[6] = std::byte{39};
  EXPECT_FALSE(decode_sample_header(bytes)) << "a header that is too small";
}

}  // namespace
}  // namespace rodeo::readout
