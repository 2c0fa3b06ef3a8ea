// CardDma of the public API with emulated cards: owners of a channel, the end of ownership, and what stays valid after it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "emulated_card.h"
#include "rodeo/card.h"

namespace rodeo {
namespace {

constexpr std::uint32_t kSuperpage = 64 << 10;

template <typename Call>
std::string code_of(Call&& call) {
  try {
    call();
  } catch (const CardError& error) {
    return error.code();
  }
  return "nothing";
}

class PublicCardDma : public card::EmulatedCard {
 protected:
  void SetUp() override {
    ::setenv("RODEO_RUNTIME_DIR", directory_.path().c_str(), 1);
    EmulatedCard::SetUp();
    handle_.emplace(CardHandle::open("3b:00.0"));
    options_.channel = kind_.channel;
    options_.buffer_bytes = std::size_t{16} * kSuperpage;
    options_.superpage_bytes = kSuperpage;
  }
  void TearDown() override { ::unsetenv("RODEO_RUNTIME_DIR"); }

  CardDma open() { return CardDma::open(*handle_, options_); }
  static CardSpan wait(CardDma& dma) {
    std::optional<CardSpan> span;
    EXPECT_TRUE(eventually([&] { return (span = dma.next()).has_value(); }));
    return span.value_or(CardSpan{});
  }
  static unsigned sum(std::span<const std::byte> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), 0U,
                           [](unsigned sum, std::byte byte) { return sum + std::to_integer<unsigned>(byte); });
  }

  std::optional<CardHandle> handle_;
  CardDmaOptions options_;
};

TEST_P(PublicCardDma, AClosedChannelIsFreeAndItsSpansStayReadable) {
  CardDma dma = open();
  EXPECT_EQ(code_of([&] { (void)open(); }), "card.locked");
  dma.start();
  const CardSpan span = wait(dma);
  dma.close();
  const unsigned before = sum(span.bytes);
  EXPECT_FALSE(dma.running());
  CardDma next_owner = open();
  next_owner.start();
  (void)wait(next_owner);
  EXPECT_EQ(sum(span.bytes), before) << "the card cannot write to it any more";
  EXPECT_FALSE(dma.next());
  dma.release_before(1);
  dma.stop();
  dma.close();
  EXPECT_EQ(code_of([&] { dma.start(); }), "card.closed");
}

TEST_P(PublicCardDma, TheBufferOutlivesItsOwnerInTheHandsOfWhoeverKeepsIt) {
  std::optional<CardDma> dma(open());
  dma->start();
  const CardSpan span = wait(*dma);
  const auto kept = dma->memory();
  dma.reset();
  EXPECT_NO_FATAL_FAILURE((void)sum(span.bytes));
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_P(PublicCardDma, StartsAgainAfterAStop) {
  CardDma dma = open();
  std::uint64_t after = 0;
  for (int run = 0; run < 3; ++run) {
    dma.start();
    dma.start();
    for (int i = 0; i < 40;) {
      const CardSpan span = wait(dma);
      if (!span.last) continue;
      dma.release_before(span.superpage + 1);
      ++i;
    }
    dma.stop();
    while (const auto span = dma.next()) after = span->superpage;
    dma.release_before(after + 1);
  }
}

TEST_P(PublicCardDma, RefusesSuperpagesThatTheCardDoesNotTake) {
  for (const std::uint32_t bytes : {0U, 36864U, 1U << 21}) {
    options_.superpage_bytes = bytes;
    EXPECT_EQ(code_of([&] { (void)open(); }), "card.bad_dma") << bytes;
  }
  options_.superpage_bytes = kSuperpage;
  EXPECT_EQ(code_of([&] { (void)open(); }), "nothing") << "a refused call owns nothing";
}

TEST_P(PublicCardDma, EndsQuietlyWhenTheCardIsGone) {
  {
    CardDma dma = open();
    dma.start();
    (void)wait(dma);
    emulator_.reset();
  }
  EXPECT_EQ(code_of([&] { (void)open(); }), "card.gone");
}

TEST_P(PublicCardDma, CloseSaysThatTheCardIsGoneAndClosesAllTheSame) {
  CardDma dma = open();
  dma.start();
  const CardSpan span = wait(dma);
  emulator_.reset();
  // A FELIX card's mapped registers do not change.
  EXPECT_EQ(code_of([&] { dma.close(); }), kind_.type == emulator::CardType::felix ? "card.timeout" : "card.gone");
  EXPECT_EQ(code_of([&] { dma.close(); }), "nothing");
  (void)sum(span.bytes);
}

// A child may do anything with its copies: the parent's run continues, and the parent's resources end with the parent.
TEST_P(PublicCardDma, AForkedChildDoesNothingToTheCard) {
  std::optional<CardDma> dma(open());
  dma->start();
  const CardSpan first = wait(*dma);
  std::array<int, 2> stay{};
  ASSERT_EQ(::pipe(stay.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(stay[1]);
    const auto forked = [](auto&& call) { return code_of(call) == "card.forked"; };
    unsigned refused = 0;
    refused += forked([&] { dma->start(); }) ? 1 : 0;
    refused += forked([&] { (void)dma->next(); }) ? 1 : 0;
    refused += forked([&] { dma->release_before(1); }) ? 1 : 0;
    refused += forked([&] { dma->stop(); }) ? 1 : 0;
    refused += forked([&] { (void)handle_->read(0, 0); }) ? 1 : 0;
    refused += forked([&] { handle_->write(0, 0, 0); }) ? 1 : 0;
    refused += forked([&] { (void)open(); }) ? 1 : 0;
    (void)sum(first.bytes);
    dma->close();
    dma.reset();
    handle_.reset();
    char nothing = 0;
    (void)!::read(stay[0], &nothing, 1);  // keeps the parent's resources until the parent has opened the channel again
    ::_exit(refused == 7 ? 0 : 1);
  }
  ::close(stay[0]);
  for (int i = 0; i < 100;) {
    const CardSpan span = wait(*dma);
    if (!span.last) continue;
    dma->release_before(span.superpage + 1);
    ++i;
  }
  dma.reset();
  EXPECT_EQ(code_of([&] { (void)open(); }), "nothing");
  ::close(stay[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(PublicCardDma, AChannelIsFreeWhenItsOwnerDiesWhateverChildrenItHas) {
  std::array<int, 2> stay{};
  std::array<int, 2> said{};
  ASSERT_EQ(::pipe(stay.data()), 0);
  ASSERT_EQ(::pipe(said.data()), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::close(stay[1]);
    CardHandle handle = CardHandle::open("3b:00.0");
    CardDma dma = CardDma::open(handle, options_);
    dma.start();
    const pid_t child = ::fork();
    if (child == 0) {
      char nothing = 0;
      (void)!::write(said[1], "c", 1);
      (void)!::read(stay[0], &nothing, 1);
      ::_exit(0);
    }
    (void)wait(dma);
    char nothing = 0;
    (void)!::read(stay[0], &nothing, 1);
    ::_exit(1);
  }
  ::close(stay[0]);
  char nothing = 0;
  ASSERT_EQ(::read(said[0], &nothing, 1), 1);
  EXPECT_EQ(code_of([&] { (void)open(); }), "card.locked");
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  EXPECT_EQ(code_of([&] { (void)open(); }), "nothing") << "the living child does not matter";
  for (const int file : {stay[1], said[0], said[1]}) ::close(file);
}

INSTANTIATE_TEST_SUITE_P(AllCards, PublicCardDma, testing::Values(card::kCru, card::kCrorc, card::kFelix),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace rodeo
