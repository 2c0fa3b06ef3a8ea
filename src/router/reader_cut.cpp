#include "router/reader_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/sentence.h"

namespace rodeo::router {
namespace {

constexpr std::uint64_t kVirtual = std::uint64_t{1} << 35;
constexpr int kBelowConnector = 36;

ReaderLinks by_card(std::span<const Fid> links) {
  ReaderLinks cards;
  for (const Fid link : links) {
    const auto card = std::ranges::find_if(cards, [&](const std::vector<Fid>& one) {
      return one.front().value >> kBelowConnector == link.value >> kBelowConnector;
    });
    (card == cards.end() ? cards.emplace_back() : *card).push_back(link);
  }
  return cards;
}

/// How many readers each card gets: one more for that whose readers have most to do, until all are given.
std::vector<std::size_t> shares(const ReaderLinks& cards, std::size_t readers) {
  std::vector<std::size_t> given(cards.size(), 1);
  for (std::size_t left = readers - cards.size(); left > 0; --left) {
    std::size_t most = 0;
    for (std::size_t card = 1; card < cards.size(); ++card) {
      if (cards[card].size() * given[most] > cards[most].size() * given[card]) most = card;
    }
    ++given[most];
  }
  return given;
}

}  // namespace

Result<ReaderLinks> cut_into_readers(std::span<const Fid> links, std::uint32_t readers) {
  if (links.empty())
    return std::unexpected(Error{"router.no_links", "the input has no links to publish", "", "see what router.input reads"});
  ReaderLinks cards = by_card(links);
  if (readers == 0 || readers == cards.size()) return cards;
  const auto refuse = [&](std::string why) {
    return std::unexpected(Error{"router.readers", fmt::format("router.readers is {}, but {}", readers, why), "",
                                 "leave it out: it is then one for each card"});
  };
  if (readers < cards.size())
    return refuse(fmt::format("the links are of {}, and a reader reads one", base::counted(cards.size(), "card")));
  if (readers > links.size()) return refuse(fmt::format("there are {}", base::counted(links.size(), "link")));
  const std::vector<std::size_t> given = shares(cards, readers);
  ReaderLinks out;
  for (std::size_t card = 0; card < cards.size(); ++card) {
    const std::span<const Fid> all = cards[card];
    for (std::size_t share = 0; share < given[card]; ++share) {
      const std::size_t begin = all.size() * share / given[card];
      const std::size_t end = all.size() * (share + 1) / given[card];
      out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  return out;
}

Fid trigger_list_fid(std::span<const Fid> links) {
  return Fid{(links.front().value >> kBelowConnector << kBelowConnector) | kVirtual};
}

}  // namespace rodeo::router
