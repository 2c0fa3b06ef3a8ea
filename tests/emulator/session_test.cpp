// A conversation without a socket: bytes in any pieces, and the assignment of descriptors to messages.
#include "emulator/session.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace {

using namespace rodeo;
namespace vfio = formats::vfio_user;

/// Region 0 has 4 KiB of memory and a descriptor; there are no other regions.
class MemoryDevice final : public emulator::Device {
 public:
  MemoryDevice() : fd_(::memfd_create("rodeo-test", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(fd_.get(), 4096), 0);
    regions_[0] = {.bytes = 4096, .mappable = {{0, 4096}}, .fd = fd_.get()};
  }
  const emulator::Region& region(unsigned index) const override { return regions_[index]; }
  unsigned vectors() const override { return 8; }
  void read(emulator::ClientId, unsigned, std::uint64_t offset, std::span<std::byte> bytes) override {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = memory_[offset + i];
  }
  void write(emulator::ClientId, unsigned, std::uint64_t offset, std::span<const std::byte> bytes) override {
    for (std::size_t i = 0; i < bytes.size(); ++i) memory_[offset + i] = bytes[i];
  }
  void reset() override { memory_.clear(); }
  void left(emulator::ClientId client) override { gone_.push_back(client); }
  const std::vector<emulator::ClientId>& gone() const { return gone_; }

 private:
  base::UniqueFd fd_;
  std::array<emulator::Region, emulator::kRegions> regions_;
  std::map<std::uint64_t, std::byte> memory_;
  std::vector<emulator::ClientId> gone_;
};

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    hear(message(vfio::Version{.capabilities = {.max_msg_fds = 8}}));
    ASSERT_EQ(replies().size(), 1U);
  }

  std::vector<std::byte> message(const vfio::Request& request, std::uint32_t flags = 0) {
    writer_.clear();
    writer_.request(++id_, request, flags);
    return {writer_.bytes().begin(), writer_.bytes().end()};
  }
  std::vector<std::byte> map_message(std::uint64_t address) {
    return message(vfio::DmaMap{.flags = 3, .address = address, .size = 4096});
  }

  /// Passes the bytes as one recvmsg() would, with this number of descriptors of a page of memory each.
  void hear(std::span<const std::byte> bytes, unsigned descriptors = 0) {
    base::ReceivedFds fds;
    for (unsigned i = 0; i < descriptors; ++i) {
      fds.fds.emplace_back(::memfd_create("rodeo-test", MFD_CLOEXEC));
      ASSERT_EQ(::ftruncate(fds.fds.back().get(), 4096), 0);
    }
    while (!bytes.empty()) {
      const auto room = session_.room();
      ASSERT_FALSE(room.empty());
      const std::size_t some = std::min(room.size(), bytes.size());
      std::copy_n(bytes.begin(), some, room.begin());
      session_.received(some, fds);
      bytes = bytes.subspan(some);
    }
    while (session_.handle_message()) {
    }
  }

  /// Errors of the current replies, in order, and the number of descriptors sent.
  std::vector<int> replies() {
    std::vector<int> errors;
    EXPECT_TRUE(session_.send_replies([&](std::span<const std::byte> bytes, std::span<const int> fds) {
      sent_fds_ += fds.size();
      while (!bytes.empty()) {
        const vfio::Header header = vfio::read_header(bytes);
        EXPECT_TRUE(header.is_reply());
        errors.push_back(header.is_error() ? static_cast<int>(header.error) : 0);
        bytes = bytes.subspan(header.size);
      }
      return true;
    }));
    return errors;
  }

  using Errors = std::vector<int>;
  MemoryDevice device_;
  emulator::DmaMaps maps_{16};
  emulator::Interrupts interrupts_;
  emulator::VfioUserSession session_{1, device_, maps_, interrupts_};
  vfio::MessageWriter writer_;
  std::uint16_t id_ = 0;
  std::size_t sent_fds_ = 0;
};

std::vector<std::byte> operator+(std::vector<std::byte> left, const std::vector<std::byte>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

TEST_F(SessionTest, TheDeviceHearsThatAClientIsGoneWhenItsMemoryIs) {
  {
    emulator::VfioUserSession other(7, device_, maps_, interrupts_);
    EXPECT_TRUE(device_.gone().empty());
  }
  EXPECT_EQ(device_.gone(), std::vector<emulator::ClientId>{7});
}

TEST_F(SessionTest, TakesMessagesInAnyPieces) {
  const std::array value{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  const auto both = message(vfio::RegionWrite{{.offset = 8, .region = 0, .count = 4}, value}) +
                    message(vfio::RegionRead{{.offset = 8, .region = 0, .count = 4}});
  for (std::size_t cut = 1; cut < both.size(); ++cut) {
    hear(std::span(both).first(cut));
    hear(std::span(both).subspan(cut));
    EXPECT_EQ(replies(), (Errors{0, 0})) << cut;
  }
  for (const std::byte byte : both) hear(std::span(&byte, 1));
  EXPECT_EQ(replies(), (Errors{0, 0}));
}

TEST_F(SessionTest, DescriptorsBelongToTheLastMessageOfTheirRead) {
  // The kernel joins earlier data without descriptors to a message with descriptors, but no later data.
  hear(message(vfio::DeviceInfo{}) + message(vfio::RegionRead{{.offset = 0, .region = 0, .count = 4}}) + map_message(0x1000),
       1);
  EXPECT_EQ(replies(), (Errors{0, 0, 0}));
  hear(map_message(0x2000) + map_message(0x3000), 1);
  EXPECT_EQ(replies(), (Errors{EOPNOTSUPP, 0}));
  EXPECT_EQ(maps_.maps(), 2U);
}

TEST_F(SessionTest, DescriptorsSentWithSeveralMessagesGoToTheOneThatTakesThem) {
  hear(map_message(0x1000) + message(vfio::DeviceInfo{}), 1);
  EXPECT_EQ(replies(), (Errors{0, 0}));
  hear(message(vfio::DeviceInfo{}) + message(vfio::DeviceInfo{}), 1);
  EXPECT_EQ(replies(), (Errors{0, EINVAL})) << "no message takes the descriptors: the last is wrong";
  EXPECT_EQ(maps_.maps(), 1U);
}

TEST_F(SessionTest, DescriptorsOfAMessageInPiecesAreItsOwn) {
  const auto map = map_message(0x1000);
  for (const std::size_t cut : {1U, 7U, 16U, 20U, 47U}) {
    hear(std::span(map).first(cut), 1);
    hear(std::span(map).subspan(cut));
    EXPECT_EQ(replies(), (Errors{0})) << cut;
    hear(message(vfio::DmaUnmap{.address = 0x1000, .size = 4096}));
    EXPECT_EQ(replies(), (Errors{0})) << cut;
    // After another message, the rest comes with more descriptors than a map accepts.
    const auto info = message(vfio::DeviceInfo{});
    hear(info + std::vector(map.begin(), map.begin() + static_cast<std::ptrdiff_t>(cut)), 1);
    hear(std::span(map).subspan(cut), 1);
    EXPECT_EQ(replies(), (Errors{0, EINVAL})) << cut;
  }
  EXPECT_EQ(maps_.maps(), 0U);
}

TEST_F(SessionTest, DescriptorsThatNobodyTakesAreClosed) {
  const base::UniqueFd lowest(::dup(0));
  const int before = lowest.get();
  {
    base::UniqueFd gone(::dup(0));
    EXPECT_EQ(gone.get(), before + 1);
  }
  hear(message(vfio::DeviceInfo{}), 3);
  EXPECT_EQ(replies(), (Errors{EINVAL}));
  hear(message(vfio::DeviceInfo{}));
  EXPECT_EQ(replies(), (Errors{0}));
  const base::UniqueFd next(::dup(0));
  EXPECT_EQ(next.get(), before + 1);
}

TEST_F(SessionTest, MoreDescriptorsThanAnyMessageTakesEndIt) {
  const auto info = message(vfio::DeviceInfo{});
  for (std::size_t i = 0; i < 4; ++i) hear(std::span(info).subspan(i, 1), 32);
  EXPECT_TRUE(session_.over());
  EXPECT_EQ(session_.read(emulator::ServerCounter::hung_up), 1U);
}

TEST_F(SessionTest, NobodyAnswersWhatWantsNoReply) {
  const std::array value{std::byte{1}};
  hear(message(vfio::RegionWrite{{.offset = 0, .region = 0, .count = 1}, value}, vfio::Header::kNoReply) +
       message(vfio::RegionWrite{{.offset = 4096, .region = 0, .count = 1}, value}, vfio::Header::kNoReply) +
       message(vfio::RegionInfo{.argsz = 64, .index = 0}, vfio::Header::kNoReply) + message(vfio::DeviceInfo{}));
  EXPECT_EQ(replies(), (Errors{0}));
  EXPECT_EQ(sent_fds_, 0U);
  EXPECT_EQ(session_.read(emulator::ServerCounter::errors), 1U);
  hear(message(vfio::RegionInfo{.argsz = 64, .index = 0}));
  EXPECT_EQ(replies(), (Errors{0}));
  EXPECT_EQ(sent_fds_, 1U);
}

TEST_F(SessionTest, AHeaderThatIsNoneEndsItAtOnce) {
  std::array<std::byte, vfio::kHeaderBytes> bytes{};
  const vfio::Header header{.id = 1, .command = 9, .size = 0xfffffff0};
  std::memcpy(bytes.data(), &header, sizeof header);
  hear(bytes);
  EXPECT_TRUE(session_.over());
  EXPECT_TRUE(replies().empty());
  EXPECT_LE(session_.room().size(), vfio::max_message_bytes(vfio::kDefaultTransferBytes));
}

}  // namespace
